package workflow

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// Withdraw withdraws a request for one of its requesters.
func (w *Requests) Withdraw(ctx context.Context, c Click) (approvers.Request, error) {
	var out approvers.Request
	err := w.click(ctx, "withdraw", c, func(t *tx) (*approvers.Denied, error) {
		r, err := t.Request(c.Request)
		if errors.Is(err, store.ErrNotFound) {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		after, events, denied := r.Withdraw(t.deciding(), c.Who, false, c.Reason)
		out = after
		if denied != nil {
			return denied, t.auditDenied(r.ID, "withdraw", c, denied)
		}
		return nil, t.apply(after, events)
	})
	return out, err
}

// WithdrawAll withdraws all requests and questions for which a turn waits. WithdrawAll ends no run. The model then
// reads the messages that waited for the end of the turn. A requester of the turn, or the author of a waiting message,
// can call WithdrawAll.
func (w *Requests) WithdrawAll(ctx context.Context, c Click) error {
	return w.click(ctx, "withdraw all", c, func(t *tx) (*approvers.Denied, error) {
		turn, err := t.Turn(c.Turn)
		if errors.Is(err, store.ErrNotFound) {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		if turn.State != approvers.TurnWaiting {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		if c.Who.ID == "" || c.Who.Deleted { // the same denial as in Withdraw, but before anything is written
			return &approvers.Denied{Code: approvers.DeniedUnidentified}, nil
		}
		queued, err := t.turns.queued(turn.Conversation)
		if err != nil {
			return nil, err
		}
		sender := slices.ContainsFunc(queued, func(m store.Message) bool { return m.Author == c.Who.ID })
		if !sender && !slices.Contains(turn.Requesters, c.Who.ID) {
			return &approvers.Denied{Code: approvers.DeniedNotRequester}, nil
		}
		if turn, err = t.turns.takeQueued(turn, queued); err != nil {
			return nil, err
		}
		calls, err := t.Calls(turn.ID)
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			if call.Step != turn.Step || call.Outcome != "" {
				continue
			}
			if denied, err := t.turns.withdrawCall(call, c, "the conversation continued with something else"); denied != nil || err != nil {
				return denied, err
			}
		}
		return nil, t.outbox.changedTurn(turn.ID, store.OutboxQueued, 0)
	})
}

// t.queued lists the messages that wait for the current turn of a conversation to end.
func (t turnsTx) queued(conversation string) ([]store.Message, error) {
	messages, err := t.Messages(conversation, 0)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(messages, func(m store.Message) bool { return m.State != store.MessageQueued }), nil
}

// takeQueued adds the waiting messages to the turn.
func (t turnsTx) takeQueued(turn approvers.Turn, queued []store.Message) (approvers.Turn, error) {
	for _, m := range queued {
		m.State, m.Turn = store.MessageTaken, turn.ID
		turn = turn.Speak(m.Author)
		if err := t.PutMessage(m); err != nil {
			return turn, err
		}
	}
	if err := t.PutTurn(turn); err != nil {
		return turn, err
	}
	turn.Version++
	return turn, nil
}

// withdrawCall ends a turn's wait for one call. If the call has an open request, withdrawCall withdraws the request. If
// the outcome of the call's run is unknown, withdrawCall tells the model that the outcome is unknown. A run that has
// begun continues, but its questions to people end. If the run is lost, or its request is lost before the run begins,
// the call gets the result of a lost call.
func (t turnsTx) withdrawCall(call store.Call, c Click, why string) (*approvers.Denied, error) {
	r, err := t.damage.requestOf(call)
	if err != nil {
		return nil, err
	}
	if r != nil && r.State.Open() {
		after, events, denied := r.Withdraw(t.deciding(), c.Who, true, why)
		if denied != nil {
			return denied, t.auditDenied(r.ID, "withdraw", c, denied)
		}
		return nil, t.apply(after, events)
	}
	if call.ModelQuestion != nil {
		return nil, t.questions.closeModelQuestion(call, approvers.OutcomeWithdrawn, why)
	}
	e, err := t.Execution(call.Execution)
	if errors.Is(err, store.ErrNotFound) {
		return nil, t.damage.closeCall(call)
	}
	if err != nil {
		return nil, err
	}
	if e.State == approvers.ExecutionUnknown {
		return nil, t.runs.leave(e)
	}
	if e.State == approvers.ExecutionNone && call.Request != "" && r == nil {
		return nil, t.damage.closeCall(call)
	}
	return nil, t.questions.cancelElicitations(e.ID, why) // the run continues, and only its questions to people end
}

// WithdrawSome withdraws several requests of one step, for one of the step's requesters. WithdrawSome skips requests
// that have ended. If all requests have ended, WithdrawSome returns the denial for the last request.
func (w *Requests) WithdrawSome(ctx context.Context, c Click, requests []string) (approvers.Request, error) {
	var last approvers.Request
	err := w.click(ctx, "withdraw some", c, func(t *tx) (*approvers.Denied, error) {
		last = approvers.Request{}
		nothing := &approvers.Denied{Code: approvers.DeniedNothing}
		taken := 0
		for _, id := range requests {
			r, err := t.Request(id)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			if err != nil || r.Turn != c.Turn {
				continue // the form did not offer this request
			}
			last = r
			if !r.State.Open() {
				nothing = r.Over()
				continue
			}
			after, events, denied := r.Withdraw(t.deciding(), c.Who, false, c.Reason)
			if denied != nil { // the remaining requests would be denied for the same reason
				return denied, t.auditDenied(r.ID, "withdraw", c, denied)
			}
			if err := t.apply(after, events); err != nil {
				return nil, err
			}
			taken++
		}
		if taken == 0 {
			return nothing, nil
		}
		return nil, nil
	})
	return last, err
}
