package invariants

import (
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// turnIsWhole checks that each call of a turn has exactly one result, or has a request or a timer that will lead to a
// result.
func turnIsWhole(r store.Reader, turn approvers.Turn) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("turn %s (%s): "+format, append([]any{turn.ID, turn.State}, args...)...))
	}
	conv, err := r.Conversation(turn.Conversation)
	if err != nil {
		return err
	}
	if !turn.Ended() && conv.Turn != turn.ID {
		fault("it is under way, but its conversation names %q as the current turn", conv.Turn)
	}
	if turn.Ended() && conv.Turn == turn.ID {
		fault("it has ended, but its conversation still names it as the current turn")
	}
	messages, err := r.Messages(conv.ID, 0)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.State == store.MessageQueued && conv.Turn == "" {
			fault("message %d waits, but no turn is under way", m.Seq)
		}
	}
	calls, err := r.Calls(turn.ID)
	if err != nil {
		return err
	}
	missing := 0
	for _, c := range calls {
		if c.Outcome == "" {
			missing++
			if c.Step != turn.Step || turn.State != approvers.TurnWaiting {
				fault("call %s of step %d has no result", c.Tool, c.Step)
			}
			if err := stuck(r, c); err != nil {
				fault("call %s waits for nothing: %w", c.Tool, err)
			}
		}
		n, err := countResults(r, c)
		if err != nil {
			return err
		}
		if done := c.Outcome != ""; n > 1 || done != (n == 1) {
			fault("call %s was returned %d times with outcome %q", c.Tool, n, c.Outcome)
		}
	}
	if turn.State == approvers.TurnWaiting && missing == 0 {
		fault("every call has its result, but the turn does not continue")
	}
	if turn.State == approvers.TurnQueued || turn.State == approvers.TurnThinking {
		if _, err := r.Timer(store.TimerThink, turn.ID); err != nil {
			fault("the model is never called: %w", err)
		}
	}
	return errors.Join(faults...)
}

// stuck returns an error if a call will never get a result, because the call has neither a result, nor an open request,
// nor a timer.
func stuck(r store.Reader, c store.Call) error {
	if c.Request != "" {
		req, err := r.Request(c.Request)
		if err != nil || req.State.Open() {
			return err // requestsHaveTimers checks the request
		}
	}
	if c.ModelQuestion != nil {
		_, err := r.Timer(store.TimerModelQuestion, c.ID)
		return err
	}
	e, err := r.Execution(c.Execution)
	if err != nil {
		return err
	}
	kind := store.TimerRun
	switch {
	case e.State == approvers.ExecutionUnknown:
		kind = store.TimerLeave
	case e.Caller != "":
		kind = store.TimerOutcome
	}
	_, err = r.Timer(kind, e.ID)
	return err
}

// countResults counts the audit records of a call's result. The record of a result can be in the audit chain of the
// call, the execution or the request.
func countResults(r store.Reader, c store.Call) (int, error) {
	n := 0
	for i, chain := range []string{c.ID, c.Execution, c.Request} {
		if chain == "" || i > 0 && chain == c.ID { // a caller's request has the id of its call
			continue
		}
		records, err := r.Audit(chain)
		if err != nil {
			return 0, err
		}
		for _, a := range records {
			if a.Kind == approvers.AuditReturned {
				n++
			}
		}
	}
	return n, nil
}
