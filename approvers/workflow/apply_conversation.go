package workflow

import (
	"countersign/approvers"
	"countersign/store"
)

// updateCall updates the request's call after an edit and after a tool preview. After an edit, the call gets a new
// execution.
func (t turnsTx) updateCall(r approvers.Request, events []approvers.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case approvers.ArgsEdited:
			if err := t.requests.replaceExecution(r); err != nil {
				return err
			}
		case approvers.PreviewMade:
			if !e.Headline {
				continue
			}
			call, err := t.Call(r.Call)
			if err != nil {
				return err
			}
			call.Preview = r.Preview
			if err := t.PutCall(call); err != nil {
				return err
			}
		}
	}
	return nil
}

// updateTurn schedules an update of the request's step in its thread. When the request is closed, updateTurn gives the
// call its result. For a new request, updateTurn schedules no update, because the use case that proposes the request
// shows the step.
func (t turnsTx) updateTurn(r approvers.Request, events []approvers.Event) error {
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	if !approvers.HasEvent[approvers.RequestOpened](events) {
		for _, kind := range []store.OutboxKind{store.OutboxStep, store.OutboxMessageEdit} {
			if err := t.outbox.changedTurn(r.Turn, kind, call.Step); err != nil {
				return err
			}
		}
	}
	if closed, ok := approvers.FindEvent[approvers.RequestClosed](events); ok {
		return t.giveResult(call, approvers.Outcome(closed.State), r.ClosedResult(t.policy).Text())
	}
	return nil
}

// giveResult gives a call its result. If the call has a result already, giveResult changes nothing. After the last
// result of a step, giveResult schedules the next model call, or ends the turn.
func (t turnsTx) giveResult(call store.Call, outcome approvers.Outcome, text string) error {
	if call.Outcome != "" {
		return nil
	}
	call.Outcome, call.Result, call.ReturnedAt = outcome, text, t.now
	if err := t.PutCall(call); err != nil {
		return err
	}
	t.callers.called(call.ID)
	chain := call.Request
	if chain == "" {
		chain = call.Execution
	}
	if chain == "" {
		chain = call.ID
	}
	if err := t.audit(chain, approvers.AuditReturned, "", map[string]string{"outcome": string(outcome)}, []byte(text)); err != nil {
		return err
	}
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return err
	}
	if turn.State != approvers.TurnWaiting || turn.Step != call.Step {
		return nil
	}
	calls, err := t.Calls(call.Turn)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Step == turn.Step && c.Outcome == "" {
			return nil
		}
	}
	if ofCaller(turn.Conversation) {
		if err := t.ClearTimer(store.TimerOutcome, call.Execution); err != nil {
			return err
		}
		return t.callers.end(turn)
	}
	if turn.Stopping != "" {
		return t.stopStored(turn, turn.Stopping, true)
	}
	if turn, err = turn.Think(); err != nil {
		return err
	}
	if err := t.PutTurn(turn); err != nil {
		return err
	}
	return t.think(turn)
}
