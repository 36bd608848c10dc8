package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// lease is added to the timeout of a run. If a run has not ended after its timeout and lease, the run counts as lost.
const lease = time.Minute

// Claim uses up the permission for one run, and stores the state executing. The tool is called after Claim has
// returned. If the call may not run, run is false. Examples: the request is no longer approved; the limit of automatic
// runs is reached, so Claim has opened a request; the process stopped during an earlier run, and a person must report
// the outcome of that run. During a pause, Claim returns ErrPaused.
func (w *Runs) Claim(ctx context.Context, execution string) (e approvers.Execution, run bool, err error) {
	givers, err := w.grantOwners(ctx, execution)
	if err != nil {
		return e, false, err
	}
	err = w.update(ctx, "claim", func(t *tx) error {
		run = false
		var err error
		e, err = t.Execution(execution)
		if errors.Is(err, store.ErrNotFound) {
			return t.ClearTimer(store.TimerRun, execution)
		}
		if err != nil {
			return err
		}
		if e.Caller != "" { // the call's caller claims the execution: see Callers.Claim
			return t.ClearTimer(store.TimerRun, execution)
		}
		if waits, err := pausable(t, e); err != nil {
			return err
		} else if waits {
			if err := ifPaused(t); err != nil {
				return err
			}
		}
		switch e.State {
		case approvers.ExecutionNone:
			run, err = t.runs.claim(&e, givers)
		case approvers.ExecutionExecuting:
			run, err = t.runs.recover(&e)
		default:
			err = t.ClearTimer(store.TimerRun, execution)
		}
		return err
	})
	return e, run, err
}

func (t runsTx) claim(e *approvers.Execution, givers grantOwners) (bool, error) {
	call, err := t.Call(e.Call)
	if err != nil {
		return false, err
	}
	if call.Outcome != "" { // a call with a result never runs
		return false, t.ClearTimer(store.TimerRun, e.ID)
	}
	allowed := false
	if e.Request != "" {
		allowed, err = t.consume(*e)
	} else if begun, known := t.begun(*e); begun {
		t.note(slog.LevelError, "a run is stored as not started, but its history records a start; it is treated as interrupted",
			"execution", e.ID, "conversation", e.Conversation, "tool", e.Tool)
		e.State = approvers.ExecutionExecuting
		return t.recover(e)
	} else if !known {
		return false, t.proposals.voidCall(call, *e, whyDamaged)
	} else {
		allowed, err = t.proposals.automatic(call, e, givers)
	}
	if err != nil || !allowed {
		return false, err
	}
	return t.start(e, approvers.Execution.Start)
}

// matchesRequest returns ErrDigest if an execution has other arguments than its request, or if the request is missing.
func (t runsTx) matchesRequest(e approvers.Execution) error {
	if e.Request == "" {
		return nil
	}
	r, err := t.Request(e.Request)
	if errors.Is(err, store.ErrNotFound) || err == nil && r.Digest != e.Digest {
		return approvers.ErrDigest
	}
	return err
}

// begun reports whether a run that needed no approval has begun, according to its audit records. If the audit records
// can't be read, known is false.
func (t runsTx) begun(e approvers.Execution) (begun, known bool) {
	chain, err := t.Audit(e.ID)
	if err != nil || approvers.VerifyChain(chain) != nil {
		return false, false
	}
	return slices.ContainsFunc(chain, func(a approvers.AuditRecord) bool {
		return a.Kind == approvers.AuditExecuting && a.Facts["execution"] == e.ID
	}), true
}

// start stores the state executing. If the arguments don't match their digest, or the request has another digest, start
// returns false. The execution then fails, or its outcome is unknown because an earlier try may have acted.
func (t runsTx) start(e *approvers.Execution, transition func(approvers.Execution, string, time.Time) (approvers.Execution, error)) (bool, error) {
	owner := t.w.owner
	if e.Caller != "" {
		owner = ""
	}
	started, err := transition(*e, owner, t.now)
	if err == nil {
		err = t.matchesRequest(*e)
	}
	if errors.Is(err, approvers.ErrDigest) {
		t.note(slog.LevelError, "the stored arguments of a call do not match their digest; it was not run", "request", e.Request, "execution", e.ID, "conversation", e.Conversation, "tool", e.Tool)
		if e.State == approvers.ExecutionExecuting {
			return false, t.markUnknown(*e, approvers.LossStopped)
		}
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
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "process": e.Owner, "try": strconv.Itoa(e.Tries)}
	if e.Caller != "" {
		facts["runs"] = e.Caller
		err = t.callers.wait(*e)
	} else {
		err = t.questions.setLease(*e, t.now)
	}
	if err != nil {
		return false, err
	}
	t.callers.called(e.Call)
	if e.Grant != "" {
		facts["grant"] = e.Grant
	}
	if err := t.audit(e.Chain(), approvers.AuditExecuting, "", facts, nil); err != nil {
		return false, err
	}
	return true, t.changedStep(*e)
}

// t.consume checks a request against the current policy and tool definition, and then uses up the request's approval.
// If the call may not run, consume returns false.
func (t runsTx) consume(e approvers.Execution) (bool, error) {
	cur, denied, err := t.requests.current(e.Request)
	if err != nil {
		return false, err
	}
	runnable := func() bool { return cur.now.State == approvers.Approved && cur.now.Execution == e.ID }
	if denied == nil && runnable() {
		args, err := approvers.StrictArgs(e.Args, false)
		if err != nil {
			return false, err
		}
		cur.now, cur.events = cur.now.Recheck(t.deciding(), args)
	}
	if runnable() {
		consumed, events, denied := cur.now.Consume(t.deciding())
		if denied == nil {
			return true, t.apply(consumed, events)
		}
		cur.now, cur.events, _ = cur.now.Expire(t.deciding())
	}
	if err := t.requests.applyIfChanged(cur); err != nil {
		return false, err
	}
	return false, t.ClearTimer(store.TimerRun, e.ID)
}
