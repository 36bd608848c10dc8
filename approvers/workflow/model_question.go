package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// askPeople asks the requesters a question of the model, and waits for their answer.
func (t questionsTx) askPeople(call store.Call, args map[string]any) error {
	p, _ := t.policy.Tool(call.Tool, "")
	q := &approvers.ModelQuestion{Options: []string{"Yes", "No"}, ExpiresAt: t.now.Add(p.ExpiresAfter)}
	q.Question, _ = args["question"].(string)
	if options, ok := args["options"].([]any); ok {
		q.Options = nil
		for _, o := range options {
			text, _ := o.(string) // the schema allows only strings
			q.Options = append(q.Options, text)
		}
	}
	call.ModelQuestion = q
	if err := t.PutCall(call); err != nil {
		return err
	}
	facts := map[string]string{"tool": call.Tool, "verdict": "inquiry", "conversation": call.Conversation}
	if err := t.audit(call.ID, approvers.AuditProposed, "", facts, []byte(call.Args)); err != nil {
		return err
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerModelQuestion, Ref: call.ID, Due: q.ExpiresAt}); err != nil {
		return err
	}
	return t.outbox.add(store.OutboxMessage{Kind: store.OutboxModelQuestion, Ref: call.ID, To: store.ToConversation + call.Conversation})
}

// Answer answers a question of the model with one of its options. Only a requester can.
func (w *Questions) Answer(ctx context.Context, c Click, option int) error {
	return w.click(ctx, "choose", c, func(t *tx) (*approvers.Denied, error) {
		call, err := t.Call(c.Call)
		if errors.Is(err, store.ErrNotFound) || err == nil && call.ModelQuestion == nil {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		turn, err := t.Turn(call.Turn)
		if err != nil {
			return nil, err
		}
		switch {
		case c.Who.ID == "" || c.Who.Deleted || c.Who.Foreign || c.Who.Bot:
			return &approvers.Denied{Code: approvers.DeniedUnidentified}, nil
		case !slices.Contains(turn.Requesters, c.Who.ID):
			return &approvers.Denied{Code: approvers.DeniedNotAsked}, nil
		case call.Outcome != "" || option < 0 || option >= len(call.ModelQuestion.Options):
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		return nil, t.questions.answered(call, c.Who, call.ModelQuestion.Options[option])
	})
}

// answerByWriting takes a message as the answer to the model's question, if the turn waits only for the question, and
// the author is a requester who was shown it before writing.
func (t questionsTx) answerByWriting(turn approvers.Turn, m store.Message, u IncomingMessage) (bool, error) {
	if turn.State != approvers.TurnWaiting || !slices.Contains(turn.Requesters, u.Who.ID) {
		return false, nil
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return false, err
	}
	var open []store.Call
	for _, c := range calls {
		if c.Outcome == "" {
			open = append(open, c)
		}
	}
	if len(open) != 1 || open[0].ModelQuestion == nil {
		return false, nil
	}
	messages, err := t.OutboxMessagesOf(open[0].ID)
	if err != nil || !shownBefore(messages, store.OutboxModelQuestion, 0, turn, u) {
		return false, err
	}
	m.State, m.Turn = store.MessageAnswer, turn.ID
	if err := t.PutMessage(m); err != nil {
		return false, err
	}
	return true, t.answered(open[0], u.Who, u.Text)
}

// answered gives a person's answer to the model.
func (t questionsTx) answered(call store.Call, who approvers.Identity, answer string) error {
	q := *call.ModelQuestion
	q.Answer, q.By, q.Name, q.At = answer, who.ID, who.Name, t.now
	call.ModelQuestion = &q
	body := map[string]any{"answer": answer, "one_of_the_options": slices.Contains(q.Options, answer), "answered_by": who.Name}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := t.audit(call.ID, approvers.AuditAnswered, who.ID, map[string]string{"tool": call.Tool}, text); err != nil {
		return err
	}
	return t.settleModelQuestion(call, approvers.OutcomeExecuted, string(text))
}

// Expire expires a question that nobody answered in time. Answers received before the deadline are handled
// first.
func (w *Questions) Expire(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "lapse", func(t *tx) error {
		call, err := t.Call(timer.Ref)
		if err != nil || call.Outcome != "" || call.ModelQuestion == nil {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerModelQuestion, timer.Ref))
		}
		if t.now.Before(call.ModelQuestion.ExpiresAt) {
			return t.SetTimer(store.Timer{Kind: store.TimerModelQuestion, Ref: call.ID, Due: call.ModelQuestion.ExpiresAt})
		}
		if early, err := t.handledFirst(timer, call.ModelQuestion.ExpiresAt); early || err != nil {
			return err
		}
		return t.questions.closeModelQuestion(call, approvers.OutcomeExpired, "nobody answered in time")
	})
}

// closeModelQuestion ends a question without an answer.
func (t questionsTx) closeModelQuestion(call store.Call, outcome approvers.Outcome, reason string) error {
	res := approvers.Result{Status: outcome, Tool: call.Tool, Reason: reason, Guidance: "There is no answer. Don't guess one; say what you would need to continue."}
	return t.settleModelQuestion(call, outcome, res.Text())
}

func (t questionsTx) settleModelQuestion(call store.Call, outcome approvers.Outcome, text string) error {
	if err := t.ClearTimer(store.TimerModelQuestion, call.ID); err != nil {
		return err
	}
	if err := t.turns.giveResult(call, outcome, text); err != nil {
		return err
	}
	if err := t.outbox.changedRef(call.ID); err != nil {
		return err
	}
	return t.outbox.changedTurn(call.Turn, store.OutboxStep, call.Step)
}
