package bot

import (
	"context"
	"strings"

	"countersign/approvers/desk"
	"countersign/store"
)

// lostPlace names the channel that the bot lost, if that is why Slack refused a surface there: by its id, or as the policy does where Slack does not say
// more. It is empty for direct messages.
func (b *Bot) lostPlace(ctx context.Context, sight desk.Sight, code string) string {
	kind, where, _ := strings.Cut(sight.Surface.To, ":")
	switch {
	case !away[code]:
		return ""
	case kind == "conversation" && !sight.Conversation.DM:
		return sight.Conversation.Channel
	case kind != "channel":
		return ""
	}
	if id, err := b.places.channel(ctx, where); err == nil {
		return id
	}
	return where
}

// placeLost and placeBack are the events that tell of a channel that the bot can't write in any more, or can again. Whoever is removed themselves gets
// channel_left or group_left. The people of a public channel that is taken out of the archive have to come anew.
var (
	placeLost = map[string]string{
		"channel_left": "the bot was removed from it", "group_left": "the bot was removed from it", "member_left_channel": "the bot was removed from it",
		"channel_archive": "it was archived", "group_archive": "it was archived", "channel_deleted": "it was deleted", "group_deleted": "it was deleted",
	}
	placeBack = map[string]bool{"member_joined_channel": true, "group_unarchive": true}
)

// aboutPlace reports whether an event says that the bot lost a channel, or is back in it.
func (b *Bot) aboutPlace(e event) bool {
	if e.Type == channelShared || e.Type == channelUnshared {
		return e.channelID() != ""
	}
	if placeLost[e.Type] == "" && !placeBack[e.Type] || e.channelID() == "" {
		return false
	}
	if e.Type != "member_left_channel" && e.Type != "member_joined_channel" {
		return true
	}
	me, known := b.self.known()
	return !known || e.userID() == me.User
}

// movePlace tells the desk that the bot lost a channel, or is back in it.
func (b *Bot) movePlace(ctx context.Context, row store.Inbox, e event) error {
	if e.Type == channelShared || e.Type == channelUnshared {
		return b.moveShared(ctx, row, e)
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	channel := e.channelID()
	switch {
	case strings.HasPrefix(e.Type, "member_") && e.userID() != me.User:
		return b.Desk.Done(ctx, row.ID, "somebody else")
	case placeBack[e.Type]:
		return b.Desk.PlaceBack(ctx, row.ID, channel)
	}
	var names []string
	if name, err := b.places.name(ctx, channel); err == nil && name != "" {
		names = []string{"#" + name}
	}
	return b.Desk.PlaceLost(ctx, row.ID, channel, placeLost[e.Type], names...)
}
