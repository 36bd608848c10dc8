package workflow

import (
	"slices"

	"countersign/approvers/workflow/view"
	"countersign/store"
)

// The message of a step may be late because of Slack's rate limits. If the turn's answer is posted first, the answer
// describes the step, and the step needs no message of its own.

// toldOf ends the delivery of steps that an answer describes.
func (t outboxTx) toldOf(answer store.OutboxMessage) error {
	if len(answer.Steps) == 0 {
		return nil
	}
	messages, err := t.OutboxMessagesOf(answer.Ref)
	if err != nil {
		return err
	}
	for _, s := range messages {
		if !view.IsUntold(s) || !slices.Contains(answer.Steps, s.Step) {
			continue
		}
		s.State = store.OutboxRemoved
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		if err := t.shownAsWanted(s); err != nil {
			return err
		}
	}
	return nil
}
