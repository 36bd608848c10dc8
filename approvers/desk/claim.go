package desk

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// lease is how long past its own timeout a run may take before it counts as lost.
const lease = time.Minute

// Claim uses up the permission for one run, and makes executing durable before the tool is called. It reports false where
// there is nothing to run: the request is not approved any more, the automatic runs are used up and people are
// asked instead, or an earlier run was lost and a person must say what happened. While everything is paused it gives ErrPaused instead of starting anything.
func (d *Desk) Claim(ctx context.Context, execution string) (e approvers.Execution, run bool, err error) {
	givers, err := d.givers(ctx, execution)
	if err != nil {
		return e, false, err
	}
	err = d.update(ctx, "claim", func(t *tx) error {
		run = false
		var err error
		e, err = t.Execution(execution)
		if errors.Is(err, store.ErrNotFound) {
			return t.ClearTimer(store.TimerRun, execution)
		}
		if err != nil {
			return err
		}
		if pausable(e) {
			if err := ifPaused(t); err != nil {
				return err
			}
		}
		switch e.State {
		case approvers.ExecutionNone:
			run, err = t.claim(&e, givers)
		case approvers.ExecutionExecuting:
			run, err = t.recover(&e)
		default:
			err = t.ClearTimer(store.TimerRun, execution)
		}
		return err
	})
	return e, run, err
}

func (t *tx) claim(e *approvers.Execution, givers givers) (bool, error) {
	call, err := t.Call(e.Call)
	if err != nil {
		return false, err
	}
	if call.Outcome != "" { // it has its one result: nothing of it runs any more
		return false, t.ClearTimer(store.TimerRun, e.ID)
	}
	allowed := false
	if e.Request != "" {
		allowed, err = t.consume(*e)
	} else {
		allowed, err = t.automatic(call, e, givers)
	}
	if err != nil || !allowed {
		return false, err
	}
	return t.start(e, approvers.Execution.Start)
}

// start makes executing durable. Bytes that don't match their digest never run.
func (t *tx) start(e *approvers.Execution, move func(approvers.Execution, string, time.Time) (approvers.Execution, error)) (bool, error) {
	started, err := move(*e, t.d.owner, t.now)
	if errors.Is(err, approvers.ErrDigest) {
		t.note(slog.LevelError, "the stored arguments of a call do not match what was signed; it was not run", "tool", e.Tool, "request", e.Request, "execution", e.ID)
		e.State, e.Result, e.FinishedAt = approvers.ExecutionFailed, err.Error(), t.now
		return false, t.finished(*e)
	}
	if err != nil {
		return false, err
	}
	if err := t.PutExecution(started); err != nil {
		return false, err
	}
	*e = started
	e.Version++
	if err := t.lease(*e, t.now); err != nil {
		return false, err
	}
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "process": e.Owner, "try": strconv.Itoa(e.Tries)}
	if e.Grant != "" {
		facts["grant"] = e.Grant
	}
	if err := t.audit(e.Chain(), approvers.AuditExecuting, "", facts, nil); err != nil {
		return false, err
	}
	return true, t.changedStep(*e)
}

// consume uses a request's approval up, under the policy and the tool as they are now.
func (t *tx) consume(e approvers.Execution) (bool, error) {
	before, r, denied, err := t.current(e.Request)
	if err != nil {
		return false, err
	}
	if denied == nil && r.State == approvers.Approved && r.Execution == e.ID {
		args, err := approvers.StrictArgs(e.Args, false)
		if err != nil {
			return false, err
		}
		r = r.Recheck(t.deciding(), args)
	}
	if r.State == approvers.Approved && r.Execution == e.ID {
		consumed, denied := r.Consume(t.deciding())
		if denied == nil {
			return true, t.follow(before, consumed)
		}
		r, _ = r.Expire(t.deciding())
	}
	if err := t.followIfChanged(before, r); err != nil {
		return false, err
	}
	return false, t.ClearTimer(store.TimerRun, e.ID)
}
