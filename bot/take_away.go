package bot

import (
	"context"
	"fmt"

	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render"
	"countersign/bot/slackapi"
)

// takeAway deletes the Slack message of an outbox message whose time is over. If Slack does not allow that, the message
// is changed to say so.
func (b *Bot) takeAway(ctx context.Context, me directory.Self, vm workflow.ViewModel, d render.Rendered) error {
	s := vm.Message
	if s.TS == "" {
		at, err := b.destinationOf(ctx, vm)
		if err != nil {
			return err
		}
		sent, err := b.findPosted(ctx, me, s, at)
		if err != nil {
			return err
		}
		s.Channel, s.TS = at.channel, sent[0]
	}
	if s.TS == "" {
		return b.Workflow.Removed(ctx, s)
	}
	_, _, err := b.api.DeleteMessageContext(ctx, s.Channel, s.TS)
	switch code := slackapi.ErrorCode(err); {
	case err == nil, slackapi.IsMessageLost(code), slackapi.IsUnreachable(code):
	case code == "":
		return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(err))
	default:
		b.Log.Info("a message can't be deleted, so it says that it is over", "message", string(s.Kind), "cause", code)
		if err := b.update(ctx, s, d); err != nil && !slackapi.IsMessageLost(slackapi.ErrorCode(err)) && !slackapi.IsNotEditable(slackapi.ErrorCode(err)) {
			return err
		}
	}
	return b.Workflow.Removed(ctx, s)
}
