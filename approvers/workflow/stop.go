package workflow

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// ErrStopped means that a person stopped a turn. The contexts of the turn's handlers are cancelled with this cause.
var ErrStopped = errors.New("workflow: somebody stopped the turn")

// StopBy stops a turn for a person who may use the turn's agent. StopBy ends a running model call and drops the output.
// StopBy withdraws open requests, and calls whose runs have not begun. StopBy interrupts running tools. The turn ends
// when every call has its result. Messages that waited for the end of the turn then start the next turn.
func (w *Turns) StopBy(ctx context.Context, c Click) error {
	return w.click(ctx, "stop turn", c, func(t *tx) (*approvers.Denied, error) {
		turn, denied, err := t.turns.askersTurn(c)
		if denied != nil || err != nil {
			return denied, err
		}
		if turn.Ended() || turn.Stopping != "" {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		conv, err := t.Conversation(turn.Conversation)
		if err != nil {
			return nil, err
		}
		return t.turns.stopBy(turn, conv, c)
	})
}

// askersTurn returns the turn of a click. If the person may not use the turn's agent, askersTurn returns a denial.
func (t turnsTx) askersTurn(c Click) (turn approvers.Turn, denied *approvers.Denied, err error) {
	turn, err = t.Turn(c.Turn)
	if errors.Is(err, store.ErrNotFound) {
		return turn, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil {
		return turn, nil, err
	}
	agent, ok := t.policy.Agent(turn.Agent)
	if !ok {
		return turn, &approvers.Denied{Code: approvers.DeniedChannel}, nil
	}
	return turn, agent.MayAsk(c.Who), nil
}

// stopBy stops a turn that has not ended.
func (t turnsTx) stopBy(turn approvers.Turn, conv store.Conversation, c Click) (*approvers.Denied, error) {
	sentence := c.Who.Name + " stopped this."
	if turn.State != approvers.TurnWaiting {
		t.interrupts[handled{store.TimerThink, turn.ID}] = true
		return nil, t.stop(turn, conv, sentence, true)
	}
	turn, err := turn.BeginStop(sentence)
	if err != nil {
		return nil, err
	}
	if err := t.PutTurn(turn); err != nil {
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
		if denied, err := t.withdrawCall(call, c, "the agent was stopped"); denied != nil || err != nil {
			return denied, err
		}
		if err := t.runs.cutRun(call.ID); err != nil {
			return nil, err
		}
	}
	if err := t.outbox.changedTurn(turn.ID, store.OutboxStep, turn.Step); err != nil { // removes the stop button
		return nil, err
	}
	return nil, t.outbox.changedTurn(turn.ID, store.OutboxQueued, 0)
}

// cutRun ends a call because its turn was stopped. cutRun interrupts a run that has begun, and withdraws a run that has
// not begun.
func (t runsTx) cutRun(id string) error {
	call, err := t.Call(id) // withdrawCall may have changed the call
	if err != nil || call.Outcome != "" || call.Execution == "" {
		return err
	}
	e, err := t.Execution(call.Execution)
	if err != nil {
		return err
	}
	switch e.State {
	case approvers.ExecutionExecuting:
		if err := t.questions.cancelElicitations(e.ID, whyTurnStopped); err != nil {
			return err
		}
		t.interrupts[handled{store.TimerRun, e.ID}] = true
		timer, err := t.Timer(store.TimerRun, e.ID)
		if err == nil && !timer.Due.After(t.now) { // the run waits for the end of a pause, and can end now
			err = t.SetTimer(timer)
		}
		return store.IgnoreNotFound(err)
	case approvers.ExecutionNone:
		res := approvers.NewResult(approvers.OutcomeWithdrawn, call.Tool, "the agent was stopped before it ran", "")
		if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
			return err
		}
		if err := t.turns.giveResult(call, approvers.OutcomeWithdrawn, res.Text()); err != nil {
			return err
		}
		return t.outbox.changedTurn(call.Turn, store.OutboxStep, call.Step)
	}
	return nil
}

// isStopped reports whether a person stopped a run's turn during the run.
func isStopped(r store.Reader, e approvers.Execution) (bool, error) {
	turn, err := r.Turn(e.Turn)
	return turn.Stopping != "" && turn.State == approvers.TurnWaiting, store.IgnoreNotFound(err)
}

// cutOff ends a run that was interrupted because its turn was stopped. A run of a read-only tool fails. The outcome of
// any other run is unknown, so the bot asks people for the outcome. The turn does not wait for their answer.
func (t runsTx) cutOff(e approvers.Execution) error {
	if e.Effect == approvers.ReadOnly {
		e, err := e.Finish(false, "it was stopped before it answered", t.now)
		if err != nil {
			return err
		}
		return t.finished(e)
	}
	if err := t.markUnknown(e, approvers.LossTurnStopped); err != nil {
		return err
	}
	e, err := t.Execution(e.ID)
	if err != nil {
		return err
	}
	return t.leave(e)
}
