package bot

import (
	"context"
	"strings"

	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/store"
)

// channelEvent returns the event for the loss of a channel, if that is why Slack refused an outbox message. It names
// the channel by its id, or as in the policy if Slack does not say more. It is empty for direct messages.
func (b *Bot) channelEvent(ctx context.Context, vm workflow.ViewModel, code string) string {
	kind, where, _ := strings.Cut(vm.Message.To, ":")
	switch {
	case !slackapi.IsChannelLost(code):
		return ""
	case kind == "conversation" && !vm.Conversation.DM:
		return vm.Conversation.Channel
	case kind != "channel":
		return ""
	}
	if id, err := b.channels.ID(ctx, where); err == nil {
		return id
	}
	return where
}

// channelLostEvents and channelRestoredEvents are the events that say that the bot can no longer write in a channel, or
// can again. A removed member gets channel_left or group_left. After a public channel is unarchived, its members must
// join again.
var (
	channelLostEvents = map[string]string{
		"channel_left": "the bot was removed from it", "group_left": "the bot was removed from it", "member_left_channel": "the bot was removed from it",
		"channel_archive": "it was archived", "group_archive": "it was archived", "channel_deleted": "it was deleted", "group_deleted": "it was deleted",
	}
	channelRestoredEvents = map[string]bool{"member_joined_channel": true, "group_unarchive": true}
)

// aboutChannel reports whether an event says that the bot lost or regained a channel.
func (b *Bot) aboutChannel(e event) bool {
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

// moveChannel tells the workflow that the bot lost or regained a channel.
func (b *Bot) moveChannel(ctx context.Context, row store.Inbox, e event) error {
	if e.Type == directory.ChannelShared || e.Type == directory.ChannelUnshared {
		return b.moveShared(ctx, row, e)
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	channel := e.channelID()
	switch {
	case strings.HasPrefix(e.Type, "member_") && e.userID() != me.User:
		return b.Workflow.Done(ctx, row.ID, "somebody else")
	case channelRestoredEvents[e.Type]:
		return b.Workflow.ChannelRestored(ctx, row.ID, channel)
	}
	var names []string
	if name, err := b.channels.Name(ctx, channel); err == nil && name != "" {
		names = []string{"#" + name}
	}
	return b.Workflow.ChannelLost(ctx, row.ID, channel, channelLostEvents[e.Type], names...)
}
