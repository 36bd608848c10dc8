package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/jobs"
)

// tamper changes a stored request and its checksum, without an audit record.
func (h *harness) tamper(id string, change func(*approvers.Request)) {
	h.t.Helper()
	r := h.request(id)
	change(&r)
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { return tx.PutRequest(r) }))
}

// If a stored request differs from its audit records, the request is voided and its call does not run. People who try
// to decide the request are told the reason.
func TestChangedRequestFailsClosed(t *testing.T) {
	for what, change := range map[string]func(*approvers.Request){
		"the quorum is 0":       func(r *approvers.Request) { r.Plan.Stages[1].Quorum = 0 },
		"the quorum is 1":       func(r *approvers.Request) { r.Plan.Stages[1].Quorum = 1 },
		"it is approved":        func(r *approvers.Request) { r.State, r.RunBy = approvers.Approved, r.ExpiresAt },
		"it is past its stages": func(r *approvers.Request) { r.Plan.Stages = r.Plan.Stages[:1]; r.Stage = 0 },
	} {
		t.Run(what, func(t *testing.T) {
			h := newHarness(t)
			r := h.ask(`issue_refund {"amount":900}`)
			h.approve(lead, r.ID)
			c := h.clickOn(fin1, approvers.Approve, r.ID)
			h.tamper(r.ID, change)
			_, err := h.Requests.Decide(h.ctx(), c)
			wantDenied(t, err, approvers.DeniedResolved)
			after := h.wantState(r.ID, approvers.Voided)
			if !strings.Contains(after.Reason, "does not match its history") {
				t.Errorf("the reason is %q", after.Reason)
			}
			h.wantOutcome(r.Call, approvers.OutcomeVoided)
			h.notRun(r.Execution)
		})
	}
}

// A claim compares the request with its audit records. If a request was changed in the store after the last decision,
// its call does not run.
func TestChangedAfterTheApproval(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":40}`)
	h.approve(lead, r.ID)
	h.tamper(r.ID, func(r *approvers.Request) { r.Decisions[0].By = fin1.ID })
	h.notRun(r.Execution)
	h.wantState(r.ID, approvers.Voided)
}

// If the stored run of an approved request has other arguments, it fails instead of running, even if its own digest
// matches. If the run was interrupted, it is not repeated, and its outcome is unknown.
func TestRunChangedAfterTheApproval(t *testing.T) {
	h := newHarness(t)
	change := func(execution string) {
		t.Helper()
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
			e, err := tx.Execution(execution)
			if err != nil {
				return err
			}
			e.Effect, e.Args = approvers.Idempotent, json.RawMessage(`{"amount":41}`)
			e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
			return tx.PutExecution(e)
		}))
	}
	r := h.ask(`issue_refund {"amount":40}`)
	h.approve(lead, r.ID)
	change(r.Execution)
	h.notRun(r.Execution)
	interrupted := h.requestIn(h.sayIn("200.1", alice, "please").Turn, `issue_refund {"amount":40}`)
	h.approve(lead, interrupted.ID)
	if _, run, err := h.Runs.Claim(h.ctx(), interrupted.Execution); err != nil || !run {
		t.Fatalf("%t, %v", run, err)
	}
	h.reopen()
	change(interrupted.Execution)
	h.notRun(interrupted.Execution)
	for id, want := range map[string]approvers.ExecutionState{r.Execution: approvers.ExecutionFailed, interrupted.Execution: approvers.ExecutionUnknown} {
		if e := h.execution(id); e.State != want {
			t.Errorf("the run %s is %s, want %s", id, e.State, want)
		}
	}
}

// A timer whose handler panics is tried a few times, and then no more. Other timers are handled as usual.
func TestPanicInAHandler(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		w.put("bad", "good")
		panics, done := 0, 0
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 2, Handle: func(ctx context.Context, timer store.Timer) error {
			if timer.Ref == "bad" {
				panics++
				panic("a stored value is out of range")
			}
			done++
			return w.Intake.Done(ctx, timer.Ref, "")
		}}})
		w.pass(time.Minute)
		if panics != 3 || done != 1 {
			t.Errorf("the one panicked %d times, the other was handled %d times; want 3 and 1", panics, done)
		}
		if left := w.timers(store.TimerInbox); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		bad := readStore(w.harness, func(r store.Reader) (store.Inbox, error) { return r.Inbox("bad") })
		if bad.HandledAt.IsZero() || bad.Payload != nil {
			t.Errorf("the delivery is not closed: %+v", bad)
		}
	})
}

// If the handling of a click fails again and again, the click does not delay the deadlines of requests for ever.
func TestDeadlineAfterClickThatCanNotBeHandled(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		r := w.ask(`issue_refund {"amount":40}`)
		w.receive(workflow.Click{Inbox: "click", At: time.Now(), Who: lead})
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 1, Handle: func(context.Context, store.Timer) error {
			panic("a stored value is out of range")
		}}})
		w.pass(expiresAfter + time.Hour)
		w.wantState(r.ID, approvers.Expired)
	})
}

// tornStore is a store with records that can't be read.
type tornStore struct {
	store.Store
	bad map[string]bool // the unreadable records, each as "bucket id"
}

type tornTx struct {
	store.Tx
	s *tornStore
}

func (s *tornStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(tornTx{tx, s}) })
}

func (x tornTx) hurt(bucket, id string) error {
	if x.s.bad[bucket+" "+id] {
		return &store.DamagedError{Damage: store.Damage{Bucket: bucket, Key: id, ID: id, Why: "a test says so"}}
	}
	return nil
}

func (x tornTx) Request(id string) (approvers.Request, error) {
	if err := x.hurt("requests", id); err != nil {
		return approvers.Request{}, err
	}
	return x.Tx.Request(id)
}

func (x tornTx) Execution(id string) (approvers.Execution, error) {
	if err := x.hurt("executions", id); err != nil {
		return approvers.Execution{}, err
	}
	return x.Tx.Execution(id)
}

func (x tornTx) EraseConversation(id string, limit int) (bool, error) {
	if err := x.hurt("conversations", id); err != nil {
		return false, err
	}
	return x.Tx.EraseConversation(id, limit)
}

func (x tornTx) EraseTurn(turn store.TurnRecords, limit int) (bool, error) {
	if err := x.hurt("turns", turn.ID); err != nil {
		return false, err
	}
	return x.Tx.EraseTurn(turn, limit)
}

func (x tornTx) PruneChain(chain string) (int, error) {
	if err := x.hurt("audit", chain); err != nil {
		return 0, err
	}
	return x.Tx.PruneChain(chain)
}

// SetAside does nothing, so the workflow can't close damaged records.
func (x tornTx) SetAside(string, string) ([]string, bool, error) { return nil, false, nil }

func (x tornTx) EraseSetAside(now, before time.Time, limit int) (int, bool, error) {
	return x.Tx.(store.SetAside).EraseSetAside(now, before, limit)
}

// If a damaged record can't be closed, all work that needs the record fails. After some tries, the bot gives up the
// timers of this work.
func TestDamageThatCannotBeClosed(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		r := w.ask(`issue_refund {"amount":40}`)
		other := w.request(w.propose(w.sayIn("200.1", alice, "please").Turn, `issue_refund {"amount":41}`)[0].Request)
		bad := &tornStore{Store: w.store, bad: map[string]bool{"requests " + r.ID: true}}
		w.Store = bad
		_, err := w.Requests.Decide(w.ctx(), workflow.Click{Who: lead, At: time.Now(), Request: r.ID, Kind: approvers.Approve, Digest: r.Digest, Whole: true})
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(fmt.Sprint(err), r.ID) {
			t.Errorf("the click returned %v; want the damage, with the key", err)
		}
		w.work(nil)
		w.pass(expiresAfter + 10*time.Minute)
		if left := w.timers(store.TimerExpire); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		w.wantState(other.ID, approvers.Expired)
	})
}
