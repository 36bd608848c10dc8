package desk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// books checks what must be true of a store at any moment between two transactions, whatever happened before:
// everything that has to be done has its timer, no timer is left for what is over, and every chain verifies.
func (o *office) books() {
	o.t.Helper()
	if err := o.faults(); err != nil {
		o.t.Errorf("the books do not add up:\n%v", err)
	}
}

func (o *office) faults() error {
	ctx := context.Background()
	return errors.Join(o.store.Check(ctx), o.store.View(ctx, func(r store.Reader) error {
		return errors.Join(chains(r), timersNameSomething(r), o.turnsAreWhole(r), requestsHaveTimers(r), requestsAreShown(r), grantsAddUp(r))
	}))
}

// chains verifies every audit chain with its payloads.
func chains(r store.Reader) error {
	ids, err := r.AuditChains("", 10_000)
	if err != nil {
		return err
	}
	var faults []error
	for _, id := range ids {
		records, err := r.Audit(id)
		if err != nil {
			return err
		}
		faults = append(faults, approvers.VerifyChain(records))
		if records[0].Kind != firstRecord(id) {
			faults = append(faults, fmt.Errorf("chain %s begins with %s", id, records[0].Kind))
		}
		for _, a := range records {
			if a.PayloadHash == "" {
				continue
			}
			p, err := r.AuditPayload(id, a.Seq)
			if err != nil {
				return err
			}
			if p.Hash() != a.PayloadHash || len(p.Salt) != 16 {
				faults = append(faults, fmt.Errorf("chain %s, record %d: its payload is another", id, a.Seq))
			}
		}
	}
	return errors.Join(faults...)
}

// firstRecord is what a chain begins with.
func firstRecord(chain string) approvers.AuditKind {
	switch {
	case strings.HasPrefix(chain, "absence:"):
		return approvers.AuditAway
	case strings.HasPrefix(chain, "grant:"):
		return approvers.AuditGranted
	}
	return approvers.AuditProposed
}

// timersNameSomething finds timers for what is over. A run's timer may outlive its request: the next claim clears it.
func timersNameSomething(r store.Reader) error {
	alive := map[store.TimerKind]func(ref string) (bool, error){
		store.TimerInbox: func(ref string) (bool, error) {
			row, err := r.Inbox(ref)
			return row.HandledAt.IsZero(), err
		},
		store.TimerThink: func(ref string) (bool, error) {
			turn, err := r.Turn(ref)
			return turn.State == approvers.TurnQueued || turn.State == approvers.TurnThinking, err
		},
		store.TimerRun: func(ref string) (bool, error) {
			e, err := r.Execution(ref)
			return e.State == approvers.ExecutionNone || e.State == approvers.ExecutionExecuting, err
		},
		store.TimerExpire: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State.Open(), err
		},
		store.TimerEscalate: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending && !req.EscalateAt.IsZero(), err
		},
		store.TimerRemind: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending && !req.RemindNext().IsZero(), err
		},
		store.TimerMuster: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending, err
		},
		store.TimerAway: func(ref string) (bool, error) {
			a, err := r.Absence(approvers.PersonID(ref))
			return a.Until.After(a.From), err
		},
		store.TimerGrant: func(ref string) (bool, error) {
			g, err := r.Grant(ref)
			return g.State.Open(), err
		},
		store.TimerLeave: func(ref string) (bool, error) {
			e, err := r.Execution(ref)
			return e.State == approvers.ExecutionUnknown, err
		},
		store.TimerShow: func(ref string) (bool, error) {
			s, err := r.Surface(ref)
			return s.State == store.SurfaceWanted, err
		},
	}
	var faults []error
	for kind, isAlive := range alive {
		timers, err := r.Timers(kind, 10_000)
		if err != nil {
			return err
		}
		for _, t := range timers {
			ok, err := isAlive(t.Ref)
			if err != nil {
				return err
			}
			if !ok {
				faults = append(faults, fmt.Errorf("a timer to %s is left for %s, which is over", kind, t.Ref))
			}
		}
	}
	return errors.Join(faults...)
}

// requestsHaveTimers finds open requests that nothing would ever end, or that an ended turn left behind.
func requestsHaveTimers(r store.Reader) error {
	requests, err := r.OpenRequests(store.RequestCursor{}, 10_000)
	if err != nil {
		return err
	}
	var faults []error
	for _, req := range requests {
		if _, err := r.Timer(store.TimerExpire, req.ID); err != nil {
			faults = append(faults, fmt.Errorf("%s request %s never expires: %w", req.State, req.ID, err))
		}
		if req.State == approvers.Approved {
			if _, err := r.Timer(store.TimerRun, req.Execution); err != nil {
				faults = append(faults, fmt.Errorf("approved request %s is never run: %w", req.ID, err))
			}
		}
		if req.State == approvers.Pending && !req.EscalateAt.IsZero() {
			if _, err := r.Timer(store.TimerEscalate, req.ID); err != nil {
				faults = append(faults, fmt.Errorf("request %s is never escalated: %w", req.ID, err))
			}
		}
		if req.State == approvers.Pending && !req.RemindNext().IsZero() {
			if _, err := r.Timer(store.TimerRemind, req.ID); err != nil {
				faults = append(faults, fmt.Errorf("request %s is never called to mind: %w", req.ID, err))
			}
		}
		turn, err := r.Turn(req.Turn)
		if err != nil {
			return err
		}
		if turn.State != approvers.TurnWaiting {
			faults = append(faults, fmt.Errorf("request %s is %s in a turn that is %s", req.ID, req.State, turn.State))
		}
		e, err := r.Execution(req.Execution)
		if err != nil {
			return err
		}
		if e.State != approvers.ExecutionNone || e.Digest != req.Digest {
			faults = append(faults, fmt.Errorf("request %s is %s over an execution that is %s", req.ID, req.State, e.State))
		}
	}
	return errors.Join(faults...)
}

// turnsAreWhole goes through the turns that the test began.
func (o *office) turnsAreWhole(r store.Reader) error {
	var faults []error
	for _, id := range o.turns {
		turn, err := r.Turn(id)
		if err != nil {
			return err
		}
		faults = append(faults, turnIsWhole(r, turn))
	}
	return errors.Join(faults...)
}

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
		fault("it is under way, and its conversation goes on with %q", conv.Turn)
	}
	if turn.Ended() && conv.Turn == turn.ID {
		fault("it has ended, and its conversation still waits for it")
	}
	messages, err := r.Messages(conv.ID, 0)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.State == store.MessageQueued && conv.Turn == "" {
			fault("message %d waits for no turn", m.Seq)
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
			if err := moves(r, c); err != nil {
				fault("call %s waits for nothing: %w", c.Tool, err)
			}
		}
		n, err := returned(r, c)
		if err != nil {
			return err
		}
		if n != b2i(c.Outcome != "") {
			fault("call %s was returned %d times with outcome %q", c.Tool, n, c.Outcome)
		}
	}
	if turn.State == approvers.TurnWaiting && missing == 0 {
		fault("every call has its result, and it does not go on")
	}
	if turn.State == approvers.TurnQueued || turn.State == approvers.TurnThinking {
		if _, err := r.Timer(store.TimerThink, turn.ID); err != nil {
			fault("the model is never called: %w", err)
		}
	}
	return errors.Join(faults...)
}

// moves says why nothing will ever give a call its result, or nil.
func moves(r store.Reader, c store.Call) error {
	if c.Request != "" {
		req, err := r.Request(c.Request)
		if err != nil || req.State.Open() {
			return err // requestsHaveTimers looks at the rest
		}
	}
	e, err := r.Execution(c.Execution)
	if err != nil {
		return err
	}
	kind := store.TimerRun
	if e.State == approvers.ExecutionUnknown {
		kind = store.TimerLeave
	}
	_, err = r.Timer(kind, e.ID)
	return err
}

// returned counts the records of a call's result over all chains that could hold one.
func returned(r store.Reader, c store.Call) (int, error) {
	n := 0
	for _, chain := range []string{c.ID, c.Execution, c.Request} {
		if chain == "" {
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
