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
					h.ok(h.Callers.Report(h.ctx(), ci, id, approvers.ExecutionSucceeded, "done"))
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
					if err := h.Callers.Report(h.ctx(), ci, id, approvers.ExecutionSucceeded, "done"); err != nil && !errors.As(err, &problem) {
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
	if err := h.Callers.Report(h.ctx(), ci, id, approvers.ExecutionSucceeded, "done"); !errors.As(err, &problem) || problem.Code != workflow.CallerOutcomeKnown || !contains(problem.Detail, "are lost") {
		t.Errorf("the report: %v", err)
	}
}

// The conversation of a call is damaged. An identical call without a key gets the stored result until the result is
// delivered, and is then a new request. With the same key, the call stays the same request.
func TestCallersConversationDamaged(t *testing.T) {
	executes := func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }
	forPerson := func(c *workflow.CallerCall) { c.Client.ActsFor = "U0300" }
	const refund = `issue_refund {"amount": 5}`
	for name, call := range map[string]workflow.CallerCall{
		"automatic": heldCall(`search_orders {}`), "approved": heldCall(refund), "for a person": heldCall(refund, forPerson), "key": callerCall("k", refund, executes),
	} {
		t.Run(name, func(t *testing.T) {
			h := newCallerHarness(t)
			id := h.repeats(call, "")
			v := h.callerView("ci", id)
			if v.Request != nil {
				h.approve(lead, id)
			}
			h.run(v.Execution.ID, "done")
			h.spoil("conversations", v.Conversation.ID)
			_, err := h.Views.Caller(h.ctx(), "ci", id)
			h.Callers.Mend(h.ctx(), err)
			h.repeats(call, id)
			h.ok(h.Callers.Delivered(h.ctx(), call.Client, id))
			h.clock.pass(24 * time.Hour)
			want := ""
			if call.Key != "" {
				want = id
			}
			h.repeats(call, want)
		})
	}
}

// A token proves that a client acts for a person, and the conversation of an automatic call is damaged. Afterwards, the
// call still belongs to this person only.
func TestCallersPersonDamaged(t *testing.T) {
	h := newCallerHarness(t, withOAuth)
	own := h.policy.Load().Clients[0]
	forUser := func(user string) approvers.Client {
		c := own
		c.ActsFor = user
		return c
	}
	call := func(key string, c approvers.Client) workflow.CallerCall {
		return callerCall(key, `search_orders {}`, func(call *workflow.CallerCall) { call.Client = c })
	}
	id, clients := h.callerAsks(call("k", forUser("U0300"))), h.callerAsks(call("k", own))
	for _, id := range []string{id, clients} {
		v := h.callerView("ci", id)
		h.spoil("conversations", v.Conversation.ID)
		_, err := h.Views.Caller(h.ctx(), "ci", id)
		h.Callers.Mend(h.ctx(), err)
	}
	for _, c := range []approvers.Client{own, forUser("U0200"), forUser("U0100")} {
		wantProblem(t, h.Callers.Withdraw(h.ctx(), c, id, ""), workflow.CallerNotFound)
	}
	wantProblem(t, h.Callers.Withdraw(h.ctx(), forUser("U0300"), clients, ""), workflow.CallerNotFound)
	h.repeats(call("k", forUser("U0300")), id)
	h.repeats(call("k", own), clients)
	wantProblem(t, h.Callers.Withdraw(h.ctx(), forUser("U0300"), id, ""), workflow.CallerOver) // it was voided
	wantProblem(t, h.Callers.Withdraw(h.ctx(), own, clients, ""), workflow.CallerOver)
}

// A client names a person, and its automatic call has an unknown outcome. Then the conversation is damaged, and somebody
// asks for the call again. The named person can't approve the new request. If the conversation was rebuilt from a record
// that does not name the person, the call can't be asked for again, and belongs to no token if the client's tokens can
// name people.
func TestCallersClaimedPersonDamaged(t *testing.T) {
	for _, lost := range []bool{false, true} {
		h := newCallerHarness(t, withOAuth, func(p *approvers.Policy) { p.Approvers[0].Members = users("U0001", "U0300") })
		h.tools.effect("update_address", approvers.Unprotected)
		own := h.policy.Load().Clients[0]
		id := h.callerAsks(callerCall("k", `update_address {}`, func(c *workflow.CallerCall) {
			c.Client, c.For, c.Mode = own, "U0300", approvers.ExecuteMode
		}))
		v := h.callerView("ci", id)
		_, run, err := h.Runs.Claim(h.ctx(), v.Execution.ID)
		if h.ok(err); !run {
			t.Fatal("it does not run")
		}
		h.ok(h.Runs.MarkUnknown(h.ctx(), v.Execution.ID))
		facts, _ := h.lastFacts(v.Execution.ID, approvers.AuditProposed)
		if facts["for"] != "T0001/U0300" || facts["proven"] != "" {
			t.Errorf("the call is recorded as %v", facts)
		}
		h.spoil("conversations", v.Conversation.ID)
		_, err = h.Views.Caller(h.ctx(), "ci", id)
		h.Callers.Mend(h.ctx(), err)
		if lost {
			h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
				conv := h.callerView("ci", id).Conversation
				conv.Caller.Caller.For, conv.Caller.Caller.PersonLost = "", true
				return tx.PutConversation(conv)
			}))
		}
		err = h.again(alice, v.Execution.ID)
		if lost {
			if d := wantDenied(t, err, approvers.DeniedNotAgain); !contains(d.Detail, "the person for whom the agent asked is lost") {
				t.Errorf("the reason is %s", d.Detail)
			}
			wantProblem(t, h.Callers.Withdraw(h.ctx(), own, id, ""), workflow.CallerNotFound)
			continue
		}
		h.ok(err)
		retry := h.callerView("ci", id).Request.ID
		_, err = h.Requests.Decide(h.ctx(), h.clickOn(person("U0300"), approvers.Approve, retry))
		wantDenied(t, err, approvers.DeniedSelf)
		h.approve(support, retry)
	}
}

// The facts of the record about the proposal show for whom a caller acted. Version 0.1.0 recorded only a proven person.
func TestRestorePeople(t *testing.T) {
	const client, owner, user = "caller:ci", "T/U1", "T/U2"
	for _, c := range []struct {
		requesters, person, proven string
		want                       approvers.Caller
	}{
		{client + "," + owner, "nobody", "", approvers.Caller{Owner: owner}},
		{client + "," + owner, user, "", approvers.Caller{Owner: owner, For: user}},
		{client + "," + owner + "," + user, user, "true", approvers.Caller{Owner: owner, For: user, Proven: true}},
		{client + "," + owner, owner, "true", approvers.Caller{Owner: owner, For: owner, Proven: true}},
		{client + "," + owner + "," + user, "", "", approvers.Caller{Owner: owner, For: user, Proven: true}},
		{client + "," + owner, "", "", approvers.Caller{Owner: owner, PersonLost: true}},
		{"", "", "", approvers.Caller{PersonLost: true}},
	} {
		got := approvers.Caller{Name: "ci"}
		workflow.RestorePeople(&got, map[string]string{"requesters": c.requesters, "for": c.person, "proven": c.proven})
		if c.want.Name = "ci"; got != c.want {
			t.Errorf("%s for %s (proven: %s) is %+v", c.requesters, c.person, c.proven, got)
		}
	}
}

// The conversation, the request and the run of a call are damaged together. The call is closed, and its key still names
// it. If the conversation was lost before, the call and its turn are closed, too.
func TestCallersAllButCallDamaged(t *testing.T) {
	const refund, search = `issue_refund {"amount": 5}`, `search_orders {}`
	for _, c := range []struct {
		name, spec  string
		runs, early bool // the run has begun; the conversation was lost before
	}{
		{"pending", refund, false, false}, {"running", refund, true, false}, {"automatic", search, false, false}, {"automatic running", search, true, false},
		{"no conversation", refund, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newCallerHarness(t)
			id := h.callerAsks(callerCall("k", c.spec))
			v := h.callerView("ci", id)
			if c.runs && v.Request != nil {
				h.approve(lead, id)
			}
			if c.runs {
				h.ok(h.claims(id))
			}
			records := []string{"conversations", v.Conversation.ID, "executions", v.Execution.ID}
			if v.Request != nil {
				records = append(records, "requests", id)
			}
			h.spoil(records...)
			if c.early {
				h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
					_, _, err := tx.(store.SetAside).SetAside("conversations", v.Conversation.ID)
					return err
				}))
			}
			for _, read := range []func() error{
				func() error { _, err := h.Views.Caller(h.ctx(), "ci", id); return err },
				func() error { _, err := h.Views.Request(h.ctx(), id); return err },
			} {
				for range 3 { // each read closes damaged records
					h.Callers.Mend(h.ctx(), read())
				}
			}
			if !c.early {
				h.repeats(callerCall("k", c.spec), id)
			}
			if c.runs {
				h.runs(id, approvers.ExecutionUnknown)
				h.clock.pass(expiresAfter)
				h.due() // nobody reports the outcome
				h.wantOutcome(id, approvers.OutcomeUnknown)
			} else {
				h.wantOutcome(id, approvers.OutcomeVoided)
			}
			h.wantTurn(v.Call.Turn, approvers.TurnAnswered)
			if ids, err := h.Views.CallerPending(h.ctx(), "ci"); err != nil || len(ids) > 0 {
				t.Errorf("the client's pending requests are %v, %v", ids, err)
			}
		})
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
