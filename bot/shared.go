package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/slackapi"
	"countersign/store"
)

// A Slack Connect channel includes people of other organisations, who must not see what cards contain. Cards are
// therefore not posted there unless the policy names the channel. Each approver gets theirs by direct message, as if
// the bot could not write in the channel. A conversation stays in the channel where it began.

// mayShare reports whether the policy allows cards in a channel with people of other organisations. names are the
// channel's names.
func mayShare(p *approvers.Policy, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.SharedChannels, name) })
}

// amongOurselves checks that a card in a channel is seen only by people of the bot's own organisation. A message that
// is already there is deleted.
func (b *Bot) amongOurselves(ctx context.Context, vm workflow.ViewModel) error {
	s := vm.Message
	named, inChannel := strings.CutPrefix(s.To, "channel:")
	if !inChannel || s.Kind == store.OutboxHead || vm.Policy.SharedChannels != nil && mayShare(vm.Policy, named, s.Channel) {
		return nil
	}
	id, err := b.channels.ID(ctx, named)
	if err != nil {
		return err
	}
	shared, err := b.channels.IsShared(ctx, id, false)
	if err != nil || !shared || mayShare(vm.Policy, id) {
		return err
	}
	if err := b.Workflow.ChannelShared(ctx, "", id, named); err != nil {
		return err
	}
	return fmt.Errorf("%w: people of another organisation are in it", slackapi.ErrSharedChannel)
}

// learnPlaces looks up the channels in which the policy posts cards, so that the first critical card does not wait for
// a lookup while Slack's rate limit is exhausted. A lookup that fails now is repeated when a card needs it.
func (b *Bot) learnPlaces(ctx context.Context) {
	ctx = slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityLast})
	for _, r := range b.Workflow.Policy().Approvers {
		if r.Cards == "" || r.Cards == approvers.CardsDM {
			continue
		}
		id, err := b.channels.ID(ctx, r.Cards)
		if err == nil {
			_, err = b.channels.IsShared(ctx, id, false)
		}
		if err != nil {
			b.Log.Debug("a channel for cards could not be looked at in advance", "channel", r.Cards, "error", err)
		}
	}
}

// moveShared handles an event that says that a channel is now, or is no longer, shared. It asks Slack for the current
// state: the channel may be shared within the enterprise only, or still with others.
func (b *Bot) moveShared(ctx context.Context, row store.Inbox, e event) error {
	channel := e.channelID()
	shared, err := b.channels.IsShared(ctx, channel, true)
	if err != nil {
		return err
	}
	if !shared {
		return b.Workflow.ChannelRestored(ctx, row.ID, channel)
	}
	names := []string{channel}
	if name, err := b.channels.Name(ctx, channel); err == nil && name != "" {
		names = append(names, "#"+name)
	}
	if mayShare(b.Workflow.Policy(), names...) {
		return b.Workflow.Done(ctx, row.ID, "the policy lets cards stand there")
	}
	return b.Workflow.ChannelShared(ctx, row.ID, channel, names...)
}
