package workflow_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// spoil damages records of the store, and starts a new process on the damaged store. The parameters are the bucket and
// the id of each record.
func (h *harness) spoil(records ...string) {
	h.t.Helper()
	h.flip(records...)
	h.ok(h.Runs.Recover(h.ctx(), store.AllShares))
}

// flip is like spoil, but the new process only opens the store.
func (h *harness) flip(records ...string) {
	h.t.Helper()
	h.ok(h.store.Close())
	db, err := bbolt.Open(h.path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	h.ok(err)
	err = db.Update(func(tx *bbolt.Tx) error {
		for pair := range slices.Chunk(records, 2) {
			b := tx.Bucket([]byte(pair[0]))
			value := bytes.Clone(b.Get([]byte(pair[1])))
			if value == nil {
				return errors.New("there is no such record: " + strings.Join(pair, " "))
			}
			value[len(value)/2] ^= 1
			if err := b.Put([]byte(pair[1]), value); err != nil {
				return err
			}
		}
		return nil
	})
	h.ok(errors.Join(err, db.Close()))
	h.open(nil)
}

// remove removes the records of a bucket whose keys begin with a prefix, except for the first ones, and starts a new
// process on the store.
func (h *harness) remove(bucket, prefix string, except int) {
	h.t.Helper()
	h.ok(h.store.Close())
	db, err := bbolt.Open(h.path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	h.ok(err)
	err = db.Update(func(tx *bbolt.Tx) (err error) {
		var keys [][]byte
		rows := tx.Bucket([]byte(bucket))
		all := rows.Cursor()
		for k, _ := all.Seek([]byte(prefix)); bytes.HasPrefix(k, []byte(prefix)); k, _ = all.Next() {
			keys = append(keys, bytes.Clone(k))
		}
		for _, k := range keys[except:] {
			err = errors.Join(err, rows.Delete(k))
		}
		return err
	})
	h.ok(errors.Join(err, db.Close()))
	h.open(nil)
	h.ok(h.Runs.Recover(h.ctx(), store.AllShares))
}

// The test damages one record of a caller's request, in each state of the request. The call must run at most once, and
// only if it was allowed. The result of a call that has run must not say that the call did not run. The caller must get
// a result of the call. A repetition with the same key must find the call.
func TestCallersDamaged(t *testing.T) {
	const refund, search = `issue_refund {"amount": 5}`, `search_orders {}`
	for state, spec := range map[string]string{
		"pending": refund, "approved": refund, "running": refund, "reported": refund, "rejected": refund,
		"automatic": search, "automatic running": search, "automatic reported": search,
	} {
		for _, bucket := range []string{"conversations", "turns", "calls", "requests", "executions", "settings"} {
			if bucket == "requests" && spec == search {
				continue
			}
			t.Run(state+" "+bucket, func(t *testing.T) {
				h := newCallerHarness(t)
				id := h.callerAsks(callerCall("k", spec))
				if spec == refund && state == "rejected" {
					h.reject(lead, id)
				} else if spec == refund && state != "pending" {
					h.approve(lead, id)
				}
				began := strings.HasSuffix(state, "running") || strings.HasSuffix(state, "reported")
				runs := 0
				if began {
					h.ok(h.claims(id))
					runs++
				}
				if strings.HasSuffix(state, "reported") {
					h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "done"))
				}
				v := h.callerView("ci", id)
				click := workflow.Click{}
				if v.Request != nil {
					click = h.clickOn(lead, approvers.Approve, id)
				}
				record := map[string]string{
					"conversations": v.Conversation.ID, "turns": v.Call.Turn, "calls": id, "requests": id, "executions": v.Execution.ID, "settings": store.SettingReceiptKeys,
				}[bucket]
				if bucket == "settings" {
					h.ok(h.Callers.PublishReceiptKey(h.ctx(), "key", []byte("public")))
					if spec == refund {
						record = store.SettingCaller + "ci"
					}
				}
				hash := hashText(v.Execution.Args)
				h.spoil(bucket, record)

				// After the damage, people decide the request, and the caller runs the call.
				var denied *approvers.Denied
				var problem *workflow.CallerProblem
				if v.Request != nil {
					if _, err := h.Requests.Decide(h.ctx(), click); err != nil && !errors.As(err, &denied) {
						t.Errorf("the click: %v", err)
					}
				}
				for range 2 {
					switch err := h.Callers.Claim(h.ctx(), ci, id, hash); {
					case err == nil:
						runs++
					case !errors.As(err, &problem):
						t.Errorf("the claim: %v", err)
					}
				}
				if runs > 1 {
					t.Errorf("it was claimed %d times", runs)
				}
				if state == "rejected" && runs > 0 {
					t.Error("it was claimed after a rejection")
				}
				if runs > 0 {
					if err := h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "done"); err != nil && !errors.As(err, &problem) {
						t.Errorf("the report: %v", err)
					}
				}
				h.ok(h.Callers.PublishReceiptKey(h.ctx(), "key", []byte("public")))
				h.clock.pass(expiresAfter + time.Hour)
				h.due()
				got, again, err := h.Callers.Propose(h.ctx(), callerCall("k", spec))
				if err != nil || !again || got != id {
					t.Errorf("the same key: %s, %t, %v; want %s", got, again, err, id)
				}
				h.callerAsks(callerCall("another", `issue_refund {"amount": 6}`)) // reads the limits
				for range 3 {                                                     // each read closes damaged records
					_, err := h.Views.Caller(h.ctx(), "ci", id)
					h.Callers.Mend(h.ctx(), err)
				}
				h.Callers.Mend(h.ctx(), h.store.View(h.ctx(), func(r store.Reader) error {
					_, err := r.Turn(v.Call.Turn)
					return err
				}))
				v = h.callerView("ci", id)
				if v.Call.Outcome == "" || v.Conversation.Turn != "" || h.turn(v.Call.Turn).State == approvers.TurnWaiting {
					t.Errorf("the call has the outcome %q, in a turn that is %s", v.Call.Outcome, h.turn(v.Call.Turn).State)
				}
				if runs > 0 && (v.Execution == nil || v.Execution.Unrun || v.Execution.State == approvers.ExecutionNone) {
					t.Errorf("it ran, and the run is %+v", v.Execution)
				}
				if runs == 0 && v.Execution != nil && v.Execution.State == approvers.ExecutionSucceeded {
					t.Errorf("it did not run, and the run is %+v", v.Execution)
				}
			})
		}
	}
}

// A client runs a call, and the records of the call, its request and its run are lost. The client gets the status
// unknown, and can neither claim the call again nor report an outcome. These answers are final, so the client does not
// try again.
func TestCallersRunLost(t *testing.T) {
	h := newCallerHarness(t)
	id := h.callerAsks(callerCall("k", `issue_refund {"amount": 5}`))
	h.approve(lead, id)
	h.ok(h.claims(id))
	e := h.callerView("ci", id).Execution
	h.spoil("calls", id)
	h.spoil("requests", id)
	h.spoil("executions", e.ID)
	h.clock.pass(expiresAfter + time.Hour)
	h.due()
	for range 3 { // each read closes damaged records
		_, err := h.Views.Caller(h.ctx(), "ci", id)
		h.Callers.Mend(h.ctx(), err)
	}
	if v := h.callerView("ci", id); v.Status() != view.CallerUnknown || !v.Lost() {
		t.Errorf("the status is %s: %s", v.Status(), v.Call.Result)
	}
	var problem *workflow.CallerProblem
	if err := h.Callers.Claim(h.ctx(), ci, id, hashText(e.Args)); !errors.As(err, &problem) || problem.Code != workflow.CallerNotApproved {
		t.Errorf("the claim: %v", err)
	}
	if err := h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "done"); !errors.As(err, &problem) || problem.Code != workflow.CallerOutcomeKnown || !contains(problem.Detail, "are lost") {
		t.Errorf("the report: %v", err)
	}
}

// A client claims a call that needs no approval, and the run's record is damaged. The bot asks people
// about the outcome, and the reason is the damaged record.
func TestCallersRunDamaged(t *testing.T) {
	h := newCallerHarness(t)
	id := h.callerAsks(callerCall("k", `search_orders {}`))
	h.ok(h.claims(id))
	e := h.callerView("ci", id).Execution
	h.spoil("executions", e.ID)
	_, err := h.Views.Caller(h.ctx(), "ci", id)
	h.Callers.Mend(h.ctx(), err)
	if e := h.callerView("ci", id).Execution; e.State != approvers.ExecutionUnknown || e.Loss != approvers.LossDamaged {
		t.Errorf("the run is %s, because it was %s", e.State, e.Loss)
	}
}

// A request waits, and the records of the call, the request and the run are lost. The complete history shows that the
// run had not begun, so the client is told that the call was voided. The request or the call is read first.
func TestCallersPendingLost(t *testing.T) {
	for _, first := range []string{"request", "call"} {
		h := newCallerHarness(t)
		id := h.callerAsks(callerCall("k", `issue_refund {"amount": 5}`))
		v := h.callerView("ci", id)
		h.spoil("calls", id)
		h.spoil("requests", v.Request.ID)
		h.spoil("executions", v.Execution.ID)
		if first == "request" {
			_, err := h.Views.Request(h.ctx(), v.Request.ID)
			h.Callers.Mend(h.ctx(), err)
		}
		for range 3 { // each read closes damaged records
			_, err := h.Views.Caller(h.ctx(), "ci", id)
			h.Callers.Mend(h.ctx(), err)
		}
		if v := h.callerView("ci", id); v.Status() != string(approvers.OutcomeVoided) || v.Lost() {
			t.Errorf("the %s is read first: the status is %s (lost: %t): %s", first, v.Status(), v.Lost(), v.Call.Result)
		}
		var problem *workflow.CallerProblem
		if err := h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "done"); !errors.As(err, &problem) || problem.Code != workflow.CallerNotClaimed || !contains(problem.Detail, "before it was claimed") {
			t.Errorf("the %s is read first: the report: %v", first, err)
		}
		if r := h.request(v.Request.ID); r.State != approvers.Voided {
			t.Errorf("the %s is read first: the request is %s", first, r.State)
		}
	}
}

// A run is lost, and the bot still shows the answer and the messages about the run's request and step. In the first
// case, the call and the request are lost too, and are rebuilt without a run. In the second case, both name the lost
// run.
func TestMessagesOfLostRun(t *testing.T) {
	for _, all := range []bool{true, false} {
		h := newBareHarness(t, t.TempDir()) // a store with lost records does not have all invariants
		r := h.approve(lead, h.ask(`issue_refund {"amount":40}`).ID)
		h.run(r.Execution, "done")
		h.spoil("executions", r.Execution)
		if all {
			h.spoil("calls", r.Call)
			h.spoil("requests", r.ID)
			for range 3 { // each read closes damaged records
				_, err := h.Views.Request(h.ctx(), r.ID)
				h.Callers.Mend(h.ctx(), err)
			}
		} else {
			h.ok(h.store.Update(h.ctx(), func(x store.Tx) error {
				_, _, err := x.(store.SetAside).SetAside("executions", r.Execution)
				return err
			}))
		}
		h.answer(r.Turn)
		answer := h.only(r.Turn, store.OutboxAnswer)
		answer.Channel, answer.TS = "C", "ts"
		if err := h.Outbox.Delivered(h.ctx(), answer, workflow.SentMessage{Body: []byte(`{"text":"done"}`)}); err != nil {
			t.Errorf("the answer can't be recorded as shown: %v", err)
		}
		for _, s := range slices.Concat(h.messagesOf(r.ID), h.messagesOf(r.Turn)) {
			m, err := h.Views.Message(h.ctx(), s.ID)
			if err != nil {
				t.Errorf("the %s can't be drawn: %v", s.Kind, err)
				continue
			}
			if m.Request != nil && (m.Request.State != approvers.Consumed || m.Execution != nil) {
				t.Errorf("the %s shows a request that is %s, and the run %+v", s.Kind, m.Request.State, m.Execution)
			}
		}
	}
}

// The call of a question of the model is lost. The question is voided, because the call certainly had no run.
func TestDamagedModelQuestion(t *testing.T) {
	h := newHarness(t)
	_, c := h.askPeople()
	h.spoil("calls", c.ID)
	h.clock.pass(expiresAfter + time.Hour)
	h.due() // reads the call
	if c := h.call(c.ID); c.Outcome != approvers.OutcomeVoided {
		t.Errorf("the question is %s: %s", c.Outcome, c.Result)
	}
}

// The tool of an approved call was not called, because its definition had changed. Then the records of the run, the
// request and the history are lost. The rebuilt records do not say that the call ran, or may have run.
func TestDamagedUnrun(t *testing.T) {
	for _, lost := range []string{"executions", "executions audit", "requests", "requests executions", "requests executions audit", "requests executions messages"} {
		for _, unrun := range []bool{true, false} {
			h := newBareHarness(t, t.TempDir()) // a store with lost records does not have all invariants
			r := h.approve(lead, h.ask(`issue_refund {"amount":40}`).ID)
			if _, run, err := h.Runs.Claim(h.ctx(), r.Execution); err != nil || !run {
				t.Fatal(run, err)
			}
			if unrun {
				h.ok(h.Runs.Unrun(h.ctx(), r.Execution, "the definition changed"))
			} else {
				h.ok(h.Runs.Finish(h.ctx(), r.Execution, false, "the bank refuses"))
			}
			if strings.Contains(lost, "audit") {
				h.remove("audit", r.ID, 0)
			}
			if strings.Contains(lost, "messages") { // nothing leads to the run, so it is not rebuilt
				h.answer(r.Turn)
				h.remove("messages", r.Conversation, 0)
				h.remove("audit", r.ID, 1) // the record that names the call is left
			}
			if strings.Contains(lost, "requests") {
				h.spoil("requests", r.ID)
			}
			if strings.Contains(lost, "executions") {
				h.spoil("executions", r.Execution)
			}
			for range 3 { // each read closes damaged records
				_, err := h.Views.Request(h.ctx(), r.ID)
				h.Callers.Mend(h.ctx(), err)
				h.Callers.Mend(h.ctx(), h.store.View(h.ctx(), func(s store.Reader) error {
					_, err := s.Execution(r.Execution)
					return err
				}))
			}
			if !strings.Contains(lost, "messages") {
				if e := h.execution(r.Execution); e.State != approvers.ExecutionFailed || e.Unrun != unrun {
					t.Errorf("without its %s, unrun %t: the run is %s, unrun %t", lost, unrun, e.State, e.Unrun)
				}
			}
			r = h.request(r.ID)
			if voided := r.State == approvers.Voided; r.Damaged && voided != unrun || !r.Damaged && r.State != approvers.Consumed {
				t.Errorf("without its %s, unrun %t: the request is %s: %s", lost, unrun, r.State, r.Reason)
			}
		}
	}
}

// A turn waits for a call whose run is lost, perhaps with its request, and nothing else closes the call. A person ends
// the wait, or stops the turn, and the call gets the outcome unknown. If only the request is lost, and the run has not
// begun, the call is voided.
func TestEndOfLostRun(t *testing.T) {
	for _, lost := range []string{"executions", "executions requests", "requests"} {
		for name, end := range map[string]func(*harness, workflow.Click) error{
			"withdraw": func(h *harness, c workflow.Click) error { return h.Requests.WithdrawAll(h.ctx(), c) },
			"stop":     func(h *harness, c workflow.Click) error { return h.Turns.StopBy(h.ctx(), c) },
		} {
			h := newBareHarness(t, t.TempDir()) // a store with lost records does not have all invariants
			r, want := h.ask(`issue_refund {"amount":40}`), approvers.OutcomeVoided
			if lost != "requests" {
				r, want = h.approve(lead, r.ID), approvers.OutcomeUnknown
				if _, run, err := h.Runs.Claim(h.ctx(), r.Execution); err != nil || !run {
					t.Fatal(run, err)
				}
			}
			for _, bucket := range strings.Fields(lost) {
				id := map[string]string{"executions": r.Execution, "requests": r.ID}[bucket]
				h.flip(bucket, id)
				h.ok(h.store.Update(h.ctx(), func(x store.Tx) error {
					_, _, err := x.(store.SetAside).SetAside(bucket, id)
					return err
				}))
			}
			if err := end(h, workflow.Click{At: h.clock.Now(), Who: alice, Turn: r.Turn}); err != nil {
				t.Errorf("%s without %s: %v", name, lost, err)
				continue
			}
			if c := h.call(r.Call); c.Outcome != want {
				t.Errorf("%s without %s: the call is %q: %s", name, lost, c.Outcome, c.Result)
			}
		}
	}
}
