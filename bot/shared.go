package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// In a channel of Slack Connect people of other organisations read along. Cards say what they must not know, so none stands there unless the policy
// names the channel: each person gets theirs by direct message, as where the bot can't write. A conversation stays in the channel where it was begun.

// The events that tell that a channel is shared with another organisation, or is not any more.
const (
	channelShared   = "channel_shared"
	channelUnshared = "channel_unshared"
)

// errShared says that a card has no place in a channel.
var errShared = slack.SlackErrorResponse{Err: "shared_channel"}

// mayShare reports whether the policy lets cards stand in a channel with people of other organisations, by any of its names.
func mayShare(p *approvers.Policy, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.SharedChannels, name) })
}

// amongOurselves makes sure that a card that is to be shown in a channel is read by people of the bot's own organisation only. A message that stands there
// already is taken away.
func (b *Bot) amongOurselves(ctx context.Context, sight desk.Sight) error {
	s := sight.Surface
	named, inChannel := strings.CutPrefix(s.To, "channel:")
	if !inChannel || s.Kind == store.SurfaceHead || sight.Policy.SharedChannels != nil && mayShare(sight.Policy, named, s.Channel) {
		return nil
	}
	id, err := b.places.channel(ctx, named)
	if err != nil {
		return err
	}
	shared, err := b.places.shared(ctx, id, false)
	if err != nil || !shared || mayShare(sight.Policy, id) {
		return err
	}
	if err := b.Desk.PlaceShared(ctx, "", id, named); err != nil {
		return err
	}
	return fmt.Errorf("%w: people of another organisation are in it", errShared)
}

// learnPlaces asks Slack about the channels in which the policy has cards stand, so that the first critical card does not have to wait for the answer just when Slack
// takes no more questions. What can't be learnt now is asked when a card wants to stand there.
func (b *Bot) learnPlaces(ctx context.Context) {
	ctx = withErrand(ctx, errand{precedence: last})
	for _, r := range b.Desk.Policy().Approvers {
		if r.Cards == "" || r.Cards == approvers.CardsDM {
			continue
		}
		id, err := b.places.channel(ctx, r.Cards)
		if err == nil {
			_, err = b.places.shared(ctx, id, false)
		}
		if err != nil {
			b.Log.Debug("a channel for cards could not be looked at in advance", "channel", r.Cards, "error", err)
		}
	}
}

// moveShared takes in an event that says that a channel is shared with others, or is not any more. Slack is asked anew how it is now: it may be shared
// within the enterprise only, or still with others.
func (b *Bot) moveShared(ctx context.Context, row store.Inbox, e event) error {
	channel := e.channelID()
	shared, err := b.places.shared(ctx, channel, true)
	if err != nil {
		return err
	}
	if !shared {
		return b.Desk.PlaceBack(ctx, row.ID, channel)
	}
	names := []string{channel}
	if name, err := b.places.name(ctx, channel); err == nil && name != "" {
		names = append(names, "#"+name)
	}
	if mayShare(b.Desk.Policy(), names...) {
		return b.Desk.Done(ctx, row.ID, "the policy lets cards stand there")
	}
	return b.Desk.PlaceShared(ctx, row.ID, channel, names...)
}
