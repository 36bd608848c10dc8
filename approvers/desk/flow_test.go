package desk_test

import (
	"errors"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// TestAFlowFromTheMessageToTheAnswer is the ordinary way of a gated call.
func TestAFlowFromTheMessageToTheAnswer(t *testing.T) {
	o := newOffice(t)
	heard := o.say(alice, "refund ORD-1")
	if heard.Turn == "" || heard.Queued {
		t.Fatalf("heard %+v", heard)
	}
	const args = "{ \"order_id\" : \"<ORD-1> & co\",\n  \"amount\": 49.90 }" // bytes that a careless encoder would change
	c := o.propose(heard.Turn, "issue_refund "+args)[0]
	o.wantTurn(heard.Turn, approvers.TurnWaiting)
	r := o.request(c.Request)
	if string(r.Args) != args || r.Preview != "Refund of 49.9" || r.Facts.Asker != alice.ID || r.Facts.Quote != "refund ORD-1" {
		t.Errorf("request %+v", r)
	}
	if got := o.approve(lead, r.ID); got.State != approvers.Approved {
		t.Fatalf("%s after the approval", got.State)
	}
	e, run, err := o.Claim(o.ctx(), r.Execution)
	o.ok(err)
	if !run || string(e.Args) != args || e.State != approvers.ExecutionExecuting {
		t.Fatalf("run %t with %q as %s", run, e.Args, e.State)
	}
	o.wantState(r.ID, approvers.Consumed)
	o.wantTurn(heard.Turn, approvers.TurnWaiting)
	o.ok(o.Finish(o.ctx(), e.ID, true, "refunded"))
	if c = o.wantOutcome(c.ID, approvers.OutcomeExecuted); c.Result != "refunded" {
		t.Errorf("the model is told %q", c.Result)
	}
	o.wantTurn(heard.Turn, approvers.TurnThinking)
	b := o.begin(heard.Turn)
	if len(b.Messages) != 2 || len(b.Calls[heard.Turn]) != 1 || b.Turn.Step != 1 {
		t.Errorf("brief with %d messages, %d calls, step %d", len(b.Messages), len(b.Calls[heard.Turn]), b.Turn.Step)
	}
	o.answer(heard.Turn)
	o.wantTurn(heard.Turn, approvers.TurnAnswered)
	o.wantKinds(r.ID, "proposed decided approved executing executed returned")
}

// TestEveryOutcome leads a call to each of its ends.
func TestEveryOutcome(t *testing.T) {
	const refund = `issue_refund {"amount":1}`
	tests := []struct {
		name    string
		spec    string
		do      func(*office, store.Call)
		outcome approvers.Outcome
		kinds   string
	}{
		{"run without asking", `search_orders {}`, func(o *office, c store.Call) { o.run(c.Execution, "found") },
			approvers.OutcomeExecuted, "proposed executing executed returned"},
		{"the tool says no", `search_orders {}`, func(o *office, c store.Call) {
			_, _, err := o.Claim(o.ctx(), c.Execution)
			o.ok(err)
			o.ok(o.Finish(o.ctx(), c.Execution, false, "no such order"))
		}, approvers.OutcomeError, "proposed executing executed returned"},
		{"rejected", refund, func(o *office, c store.Call) { o.reject(lead, c.Request) },
			approvers.OutcomeRejected, "proposed decided closed returned"},
		{"expired", refund, func(o *office, c store.Call) { o.clock.pass(expiresAfter); o.due() },
			approvers.OutcomeExpired, "proposed closed returned"},
		{"approved and not started in time", refund, func(o *office, c store.Call) {
			o.approve(lead, c.Request)
			o.clock.pass(runWithin)
			o.due()
			o.wantState(c.Request, approvers.Expired)
			o.notRun(c.Execution)
		}, approvers.OutcomeExpired, "proposed decided approved closed returned"},
		{"not started in time, seen by the executor", refund, func(o *office, c store.Call) {
			o.approve(lead, c.Request)
			o.clock.pass(runWithin)
			o.notRun(c.Execution)
		}, approvers.OutcomeExpired, "proposed decided approved closed returned"},
		{"withdrawn", refund, func(o *office, c store.Call) {
			_, err := o.Withdraw(o.ctx(), o.clickOn(alice, "", c.Request))
			o.ok(err)
		}, approvers.OutcomeWithdrawn, "proposed closed returned"},
		{"withdrawn after the approval", refund, func(o *office, c store.Call) {
			o.approve(lead, c.Request)
			_, err := o.Withdraw(o.ctx(), o.clickOn(alice, "", c.Request))
			o.ok(err)
			o.notRun(c.Execution)
		}, approvers.OutcomeWithdrawn, "proposed decided approved closed returned"},
		{"voided: the tool changed", refund, func(o *office, c store.Call) {
			o.approve(lead, c.Request)
			o.tools.change("issue_refund", func(t *desk.Tool) { t.Hash = "another" })
			o.notRun(c.Execution)
		}, approvers.OutcomeVoided, "proposed decided approved closed returned"},
		{"voided: the tool changed, run without asking", `search_orders {}`, func(o *office, c store.Call) {
			o.tools.change("search_orders", func(t *desk.Tool) { t.Hash = "another" })
			o.notRun(c.Execution)
		}, approvers.OutcomeVoided, "proposed returned"},
		{"refused", `cancel_account {}`, nil, approvers.OutcomeRefused, "proposed closed returned"},
		{"unknown", refund, func(o *office, c store.Call) {
			o.approve(lead, c.Request)
			_, _, err := o.Claim(o.ctx(), c.Execution)
			o.ok(err)
			o.ok(o.Lose(o.ctx(), c.Execution))
			o.clock.pass(expiresAfter)
			o.due()
		}, approvers.OutcomeUnknown, "proposed decided approved executing unknown returned"},
		{"arguments that are no JSON", `issue_refund {"amount":`, nil, approvers.OutcomeError, "proposed returned"},
		{"arguments that the schema refuses", `issue_refund {"nonsense":1}`, nil, approvers.OutcomeError, "proposed returned"},
		{"a tool that there is not", `make_coffee {}`, nil, approvers.OutcomeError, "proposed returned"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t)
			if tt.outcome == approvers.OutcomeRefused {
				o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers = p.Approvers[:2] }))
			}
			turn := o.say(alice, "please").Turn
			c := o.propose(turn, tt.spec)[0]
			if tt.do != nil {
				o.wantTurn(turn, approvers.TurnWaiting)
				tt.do(o, c)
			}
			c = o.wantOutcome(c.ID, tt.outcome)
			if c.Result == "" || c.ReturnedAt.IsZero() {
				t.Errorf("the model is told %q at %s", c.Result, c.ReturnedAt)
			}
			chain := c.Request
			if chain == "" {
				chain = c.Execution
			}
			if chain == "" {
				chain = c.ID
			}
			o.wantKinds(chain, tt.kinds)
			o.wantTurn(turn, approvers.TurnThinking)
			o.answer(turn)
		})
	}
}

// TestMixedDecisions: one step, several calls, each with its own fate. Automatic ones are not held back by gated siblings.
func TestMixedDecisions(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "do it all").Turn
	cs := o.propose(turn, `search_orders {}`, `issue_refund {"amount":1}`, `cancel_account {}`, `apply_discount {"a":1,"A":2}`, `update_address {}`, `apply_discount {}`)
	due := view(o, func(r store.Reader) ([]store.Timer, error) { return r.DueTimers(store.TimerRun, o.clock.Now(), 10) })
	if len(due) != 2 {
		t.Fatalf("%d runs are due at once; want the two that nobody is asked about", len(due))
	}
	o.run(cs[0].Execution, "found")
	o.run(cs[4].Execution, "changed")
	o.wantTurn(turn, approvers.TurnWaiting)
	o.reject(fin1, cs[2].Request)
	o.approve(lead, cs[1].Request)
	o.run(o.request(cs[1].Request).Execution, "refunded")
	o.wantTurn(turn, approvers.TurnWaiting)
	_, err := o.Withdraw(o.ctx(), o.clickOn(alice, "", cs[5].Request))
	o.ok(err)
	o.wantTurn(turn, approvers.TurnThinking)
	for i, want := range []approvers.Outcome{
		approvers.OutcomeExecuted, approvers.OutcomeExecuted, approvers.OutcomeRejected, approvers.OutcomeError, approvers.OutcomeExecuted, approvers.OutcomeWithdrawn,
	} {
		o.wantOutcome(cs[i].ID, want)
	}
	b := o.begin(turn)
	got := b.Calls[turn]
	if len(got) != 6 {
		t.Fatalf("the model is given %d results for 6 calls", len(got))
	}
	for i, c := range got {
		if c.Index != i || c.Outcome == "" {
			t.Errorf("call %d comes as number %d with outcome %q", c.Index, i, c.Outcome)
		}
	}
	o.answer(turn)
}

func TestModelIDsAreMadeUnique(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "search").Turn
	b := o.begin(turn)
	o.ok(o.Propose(o.ctx(), desk.Proposal{Turn: turn, Step: b.Turn.Step, Calls: []desk.ModelCall{
		{ID: "a", Tool: "search_orders", Args: `{}`}, {ID: "a", Tool: "search_orders", Args: `{}`}, {ID: "", Tool: "search_orders", Args: `{}`}, {Tool: "x", Fault: "cut off"},
	}}))
	seen := map[string]bool{}
	for _, c := range o.callsOf(turn) {
		if c.ModelID == "" || seen[c.ModelID] {
			t.Errorf("model id %q is empty or used twice", c.ModelID)
		}
		seen[c.ModelID] = true
	}
	if !seen["a"] {
		t.Error("the first of the same ids was not kept")
	}
}

// TestAStepIsTakenOnce: whatever the model edge sends a second time changes nothing.
func TestAStepIsTakenOnce(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "search").Turn
	b := o.begin(turn)
	p := desk.Proposal{Turn: turn, Step: b.Turn.Step, Calls: calls(`search_orders {}`)}
	o.ok(o.Propose(o.ctx(), p))
	for name, again := range map[string]func() error{
		"propose":  func() error { return o.Propose(o.ctx(), p) },
		"answer":   func() error { return o.Answer(o.ctx(), turn, b.Turn.Step, "x", 1) },
		"stop":     func() error { return o.Stop(o.ctx(), turn, b.Turn.Step, "x", true) },
		"postpone": func() error { return o.Postpone(o.ctx(), turn, b.Turn.Step, o.clock.Now()) },
		"begin":    func() error { _, err := o.Begin(o.ctx(), turn); return err },
	} {
		if err := again(); !errors.Is(err, desk.ErrNotDue) {
			t.Errorf("%s while it waits: %v; want ErrNotDue", name, err)
		}
	}
	c := o.callsOf(turn)
	if len(c) != 1 {
		t.Fatalf("%d calls were written; want 1", len(c))
	}
	o.run(c[0].Execution, "found")
	if err := o.Propose(o.ctx(), p); !errors.Is(err, desk.ErrNotDue) {
		t.Errorf("the first step again, in the second: %v; want ErrNotDue", err)
	}
	if err := o.Finish(o.ctx(), c[0].Execution, true, "again"); !errors.Is(err, approvers.ErrNotRunning) {
		t.Errorf("finishing again: %v", err)
	}
	o.notRun(c[0].Execution)
	o.answer(turn)
	if _, err := o.Begin(o.ctx(), turn); !errors.Is(err, desk.ErrNotDue) {
		t.Errorf("an answered turn begins: %v", err)
	}
}

func TestDeliveriesAreHandledOnce(t *testing.T) {
	o := newOffice(t)
	row := store.Inbox{ID: "Ev1", Kind: store.InboxEvent, ReceivedAt: o.clock.Now(), Payload: []byte("x")}
	for i, want := range []bool{true, false} {
		if fresh, err := o.Receive(o.ctx(), row, "l"); err != nil || fresh != want {
			t.Errorf("delivery %d: fresh %t, %v", i+1, fresh, err)
		}
	}
	u := desk.Utterance{Inbox: "Ev1", At: row.ReceivedAt, Team: "T0001", Thread: "1", TS: "1", Who: alice, Text: "hi", Start: true,
		Place: approvers.Place{Channel: "C0001", Name: "support"}}
	first, err := o.Hear(o.ctx(), u)
	o.ok(err)
	again, err := o.Hear(o.ctx(), u)
	if err != nil || !again.Duplicate || again.Turn != "" {
		t.Errorf("the same delivery again: %+v, %v", again, err)
	}
	if fresh, err := o.Receive(o.ctx(), row, "l"); err != nil || fresh {
		t.Errorf("redelivered after it was handled: fresh %t, %v", fresh, err)
	}
	// Slack sends a mention as two events: the message and the mention, with two ids and one ts.
	u.Inbox = "Ev2"
	if twin := o.hear(u); !twin.Duplicate {
		t.Errorf("the same message in another event: %+v", twin)
	}
	if got := view(o, func(r store.Reader) ([]store.Message, error) { return r.Messages(first.Conversation, 0) }); len(got) != 1 {
		t.Errorf("%d messages; want 1", len(got))
	}
	if n := len(o.timers(store.TimerInbox)); n != 0 {
		t.Errorf("%d deliveries are still due", n)
	}

	r := o.requestIn(first.Turn, `issue_refund {"amount":1}`)
	c := o.clickOn(lead, approvers.Approve, r.ID)
	_, err = o.Decide(o.ctx(), c)
	o.ok(err)
	if _, err = o.Decide(o.ctx(), c); !errors.Is(err, desk.ErrHandled) {
		t.Errorf("the same click again: %v; want ErrHandled", err)
	}
	o.wantKinds(r.ID, "proposed decided approved")
	if err := o.Done(o.ctx(), c.Inbox, "x"); !errors.Is(err, desk.ErrHandled) {
		t.Errorf("done again: %v", err)
	}
}

// requestIn proposes one gated call in a turn.
func (o *office) requestIn(turn, spec string) approvers.Request {
	o.t.Helper()
	return o.request(o.propose(turn, spec)[0].Request)
}

func TestPostponedThoughtIsDueLater(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "hi").Turn
	b := o.begin(turn)
	until := o.clock.Now().Add(20 * time.Second)
	o.ok(o.Postpone(o.ctx(), turn, b.Turn.Step, until))
	if got := o.timers(store.TimerThink)[turn].Due; !got.Equal(until) {
		t.Errorf("due at %s; want %s", got, until)
	}
	if got := o.turn(turn).Failures; got != 1 {
		t.Errorf("%d failures; want 1", got)
	}
}
