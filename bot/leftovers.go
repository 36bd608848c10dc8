package bot

import (
	"context"
	"fmt"

	"countersign/approvers/workflow"
	"countersign/bot/slackapi"
	"countersign/store"
)

// Leftovers repeats the deletion of messages that Slack refused to delete.
type Leftovers struct{ *core }

// mostDeleted limits the deletions of one try, because Slack limits the rate of deletions.
const mostDeleted = 10

// Delete repeats the deletion of the old Slack messages of an outbox message.
func (b *Leftovers) Delete(ctx context.Context, t store.Timer) error {
	list, err := b.Views.Leftovers(ctx, t.Ref)
	if err != nil {
		return err
	}
	ctx = dueFor(ctx, slackapi.PriorityLast, t)
	var tried []workflow.TriedDeletion
	for _, l := range list {
		if l.Next.After(b.Now()) || len(tried) == mostDeleted {
			continue
		}
		refused := ""
		for _, ts := range l.Delete {
			_, _, err := b.api.DeleteMessageContext(ctx, l.Channel, ts)
			switch {
			case err == nil, slackapi.IsMessageLost(slackapi.ErrorCode(err)):
			case slackapi.IsRefused(err), slackapi.IsUnusable(err):
				refused = slackapi.Explain(err)
			default:
				return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(err))
			}
		}
		tried = append(tried, workflow.TriedDeletion{Leftover: l.Leftover, Refused: refused})
	}
	return b.Outbox.TriedLeftovers(ctx, t.Ref, tried)
}
