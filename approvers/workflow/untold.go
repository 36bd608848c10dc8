package workflow

import (
	"context"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// The message of a step may be late because of Slack's rate limits. If the turn's answer is posted first, the answer
// describes the step, and the step needs no message of its own.

// Untold lists the steps of a turn whose first message was postponed and is still to be posted.
func (w *Workflow) Untold(ctx context.Context, turn string) (steps []store.OutboxMessage, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		steps = nil
		messages, err := r.OutboxMessagesOf(turn)
		if err != nil {
			return err
		}
		for _, s := range messages {
			if !untold(s) {
				continue
			}
			t, err := r.Timer(s.Rank.Timer(), s.ID)
			if ignoreNotFound(err) != nil {
				return err
			}
			if err == nil && t.Tries > 0 {
				steps = append(steps, s)
			}
		}
		return nil
	})
	return steps, err
}

// untold reports whether an outbox message is a step that Slack never showed.
func untold(s store.OutboxMessage) bool {
	return s.Kind == store.OutboxStep && s.State == store.OutboxWanted && s.TS == "" && s.Posts == 0 && !s.Drafted
}

// SeeTelling reads the view of an answer that also describes those of the steps that still have no message.
func (w *Workflow) SeeTelling(ctx context.Context, answer string, steps []int) (ViewModel, error) {
	return w.see(ctx, answer, func(r store.Reader, s *store.OutboxMessage) error {
		messages, err := r.OutboxMessagesOf(s.Ref)
		if err != nil {
			return err
		}
		for _, step := range messages {
			if untold(step) && slices.Contains(steps, step.Step) && !slices.Contains(s.Steps, step.Step) {
				s.Steps = append(s.Steps, step.Step)
			}
		}
		slices.Sort(s.Steps)
		return nil
	})
}

// StepSight is a step that an answer describes.
type StepSight struct {
	Step  int
	Text  string // the model's text of the step
	Calls []CallView
}

// seeSteps reads the steps that an answer describes.
func (m *ViewModel) seeSteps(r store.Reader, said map[int]string) error {
	for _, n := range m.Message.Steps {
		step := ViewModel{Policy: m.Policy, Now: m.Now, Message: store.OutboxMessage{Kind: store.OutboxStep}}
		if err := step.viewCalls(r, m.Message.Ref, n); err != nil {
			return err
		}
		m.Steps = append(m.Steps, StepSight{Step: n, Text: said[n], Calls: step.Calls})
	}
	return nil
}

// toldOf ends the delivery of steps that an answer describes.
func (t *tx) toldOf(answer store.OutboxMessage) error {
	if len(answer.Steps) == 0 {
		return nil
	}
	messages, err := t.OutboxMessagesOf(answer.Ref)
	if err != nil {
		return err
	}
	for _, s := range messages {
		if !untold(s) || !slices.Contains(answer.Steps, s.Step) {
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

// Settled reports whether the call's line in the message of its step can no longer change.
func (c CallView) Settled() bool {
	return c.Call.Outcome != "" && c.Call.Outcome != approvers.OutcomeUnknown && (c.Execution == nil || c.Execution.State != approvers.ExecutionUnknown)
}
