package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/store"
)

// channelAccess finds out whether the bot may write in a channel, and tells the workflow. channelAccess follows Slack's
// events about channels, and asks Slack after Slack has refused a message, and before a card is posted. channelAccess
// writes no message.
type channelAccess struct {
	*core
	permissions *Permissions
}

// lostChannel returns the channel that the bot has lost, after Slack has refused an outbox message with code. The
// result is the channel's id or, if the id is unknown, the channel's name in the policy. The result is empty for direct
// messages. It is also empty if the bot is a member of the channel, because Slack then refuses only this message.
func (b *channelAccess) lostChannel(ctx context.Context, vm view.Model, code string) (lost string, err error) {
	kind, where, _ := strings.Cut(vm.Message.To, ":")
	switch {
	case !slackapi.IsChannelLost(code):
		return "", nil
	case kind == "conversation" && !vm.Conversation.DM:
		lost = vm.Conversation.Channel
	case kind != "channel":
		return "", nil
	default:
		if lost, err = b.channels.ID(ctx, where); err != nil {
			return where, nil //nolint:nilerr // the policy's name for the channel is used
		}
	}
	if code != "not_in_channel" {
		return lost, nil
	}
	member, err := b.channels.IsMember(ctx, lost)
	switch {
	case slackapi.IsPutOff(err):
		return "", err
	case err != nil:
		b.Log.DebugContext(ctx, "Slack did not say whether the bot is in a channel",
			"message", string(vm.Message.Kind), "request", vm.Message.Request, "conversation", vm.Conversation.ID, "channel", lost, "error", err)
	case member:
		b.Log.WarnContext(ctx, "Slack refuses one message because the bot is not in the channel, although Slack also says that the bot is a member; only this message goes elsewhere",
			"message", string(vm.Message.Kind), "request", vm.Message.Request, "conversation", vm.Conversation.ID, "channel", lost)
		return "", nil
	}
	return lost, nil
}

// channelLostEvents lists the events after which the bot can't write in a channel. channelRestoredEvents lists the
// events after which the bot can write in a channel. When the bot is removed from a channel, it gets channel_left or
// group_left. After a public channel is unarchived, the bot must join it again.
var (
	channelLostEvents = map[string]string{
		"channel_left": "the bot was removed from it", "group_left": "the bot was removed from it", "member_left_channel": "the bot was removed from it",
		"channel_archive": "it was archived", "group_archive": "it was archived", "channel_deleted": "it was deleted", "group_deleted": "it was deleted",
	}
	channelRestoredEvents = map[string]bool{"member_joined_channel": true, "group_unarchive": true}
)

// aboutChannel reports whether an event concerns the bot's access to a channel.
func (b *core) aboutChannel(e event) bool {
	if e.Type == directory.ChannelShared || e.Type == directory.ChannelUnshared {
		return e.channelID() != ""
	}
	if channelLostEvents[e.Type] == "" && !channelRestoredEvents[e.Type] || e.channelID() == "" {
		return false
	}
	if e.Type != "member_left_channel" && e.Type != "member_joined_channel" {
		return true
	}
	me, known := b.self.known()
	return !known || e.userID() == me.User
}

// moveChannel tells the workflow whether the bot can write in a channel, after an event about the channel.
func (b *channelAccess) moveChannel(ctx context.Context, row store.Inbox, e event) error {
	if e.Type == directory.ChannelShared || e.Type == directory.ChannelUnshared {
		return b.moveShared(ctx, row, e)
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	if strings.HasPrefix(e.Type, "member_") && e.userID() != me.User {
		return b.Intake.Done(ctx, row.ID, "somebody else")
	}
	channel := e.channelID()
	var names []string
	if name, err := b.channels.Name(ctx, channel); err == nil && name != "" {
		names = []string{"#" + name}
	}
	if channelRestoredEvents[e.Type] {
		restored := b.Intake.ChannelRestored
		if e.Type == "member_joined_channel" {
			restored = b.Intake.ChannelJoined
		}
		err := restored(ctx, row.ID, channel, names...)
		b.permissions.retryUnreached(ctx)
		return err
	}
	return b.Intake.ChannelLost(ctx, row.ID, channel, channelLostEvents[e.Type], names...)
}

// A Slack Connect channel includes people of other organisations. People of other organisations must not see the
// content of cards. So the bot posts no card in such a channel, unless the policy names the channel. Instead, each
// approver gets the card by direct message, as if the bot could not write in the channel. A conversation stays in the
// channel where it began, even if the channel is shared.

// mayShare reports whether the policy allows cards in a channel with people of other organisations. names lists the
// channel by name, by id, or both.
func mayShare(p *approvers.Policy, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.SharedChannels, name) })
}

// checkAudience returns an error if people of other organisations could see a message for a channel, such as a card.
// Signed heads are not checked. If the channel is shared, the workflow removes the cards that are already in the
// channel.
func (b *channelAccess) checkAudience(ctx context.Context, vm view.Model) error {
	s := vm.Message
	named, inChannel := strings.CutPrefix(s.To, store.ToChannel)
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
	if err := b.Intake.ChannelShared(ctx, "", id, named); err != nil {
		return err
	}
	return fmt.Errorf("%w: people of another organisation are in it", slackapi.ErrSharedChannel)
}

// lookUpCardChannels looks up the channels in which the policy posts cards. With this early look-up, the first critical
// card does not wait when Slack's rate limit is used up. If a look-up fails here, the bot repeats the look-up when a
// card needs the channel.
func (b *channelAccess) lookUpCardChannels(ctx context.Context) {
	ctx = slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityLast})
	for _, r := range b.Views.Policy().Approvers {
		if r.Cards == "" || r.Cards == approvers.CardsDM {
			continue
		}
		id, err := b.channels.ID(ctx, r.Cards)
		if err == nil {
			_, err = b.channels.IsShared(ctx, id, false)
		}
		if err != nil {
			b.Log.DebugContext(ctx, "a channel for cards could not be looked up in advance", "channel", r.Cards, "error", err)
		}
	}
}

// moveShared handles an event about the sharing of a channel with another organisation. moveShared asks Slack for the
// current state. The event alone is not sufficient. A channel that was shared may be shared only within the enterprise.
// A channel that is no longer shared with one organisation may still be shared with another.
func (b *channelAccess) moveShared(ctx context.Context, row store.Inbox, e event) error {
	channel := e.channelID()
	shared, err := b.channels.IsShared(ctx, channel, true)
	if err != nil {
		return err
	}
	if !shared {
		err := b.Intake.ChannelRestored(ctx, row.ID, channel)
		b.permissions.retryUnreached(ctx)
		return err
	}
	names := []string{channel}
	if name, err := b.channels.Name(ctx, channel); err == nil && name != "" {
		names = append(names, "#"+name)
	}
	if mayShare(b.Views.Policy(), names...) {
		return b.Intake.Done(ctx, row.ID, "the policy allows cards there")
	}
	return b.Intake.ChannelShared(ctx, row.ID, channel, names...)
}
