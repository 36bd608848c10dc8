package workflow_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// TestFromTheMessageToTheAnswer checks the usual path of a call that needs approval.
func TestFromTheMessageToTheAnswer(t *testing.T) {
	h := newHarness(t)
	heard := h.say(alice, "refund ORD-1")
	if heard.Turn == "" || heard.Queued {
		t.Fatalf("the message's result is %+v", heard)
	}
	const args = "{ \"order_id\" : \"<ORD-1> & co\",\n  \"amount\": 49.90 }" // bytes that a careless encoder would change
	c := h.propose(heard.Turn, "issue_refund "+args)[0]
	h.wantTurn(heard.Turn, approvers.TurnWaiting)
	r := h.request(c.Request)
	if string(r.Args) != args || r.Preview != "Refund of 49.9" || r.Facts.Asker != alice.ID || r.Facts.Quote != "refund ORD-1" {
		t.Errorf("request %+v", r)
	}
	if got := h.approve(lead, r.ID); got.State != approvers.Approved {
		t.Fatalf("%s after the approval", got.State)
	}
	e, run, err := h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	if !run || string(e.Args) != args || e.State != approvers.ExecutionExecuting {
		t.Fatalf("run %t with %q as %s", run, e.Args, e.State)
	}
	h.wantState(r.ID, approvers.Consumed)
	h.wantTurn(heard.Turn, approvers.TurnWaiting)
	h.ok(h.Runs.Finish(h.ctx(), e.ID, true, "refunded"))
	if c = h.wantOutcome(c.ID, approvers.OutcomeExecuted); c.Result != "refunded" {
		t.Errorf("the model is told %q", c.Result)
	}
	h.wantTurn(heard.Turn, approvers.TurnThinking)
	b := h.begin(heard.Turn)
	if len(b.Messages) != 2 || len(b.Calls[heard.Turn]) != 1 || b.Turn.Step != 1 {
		t.Errorf("brief with %d messages, %d calls, step %d", len(b.Messages), len(b.Calls[heard.Turn]), b.Turn.Step)
	}
	h.answer(heard.Turn)
	h.wantTurn(heard.Turn, approvers.TurnAnswered)
	h.wantKinds(r.ID, "proposed decided approved executing executed returned")
}

// TestEveryOutcome checks calls that end in different ways.
func TestEveryOutcome(t *testing.T) {
	const refund = `issue_refund {"amount":1}`
	tests := []struct {
		name    string
		spec    string
		do      func(*harness, store.Call)
		outcome approvers.Outcome
		kinds   string
	}{
		{"run without asking", `search_orders {}`, func(h *harness, c store.Call) { h.run(c.Execution, "found") },
			approvers.OutcomeExecuted, "proposed executing executed returned"},
		{"the tool says no", `search_orders {}`, func(h *harness, c store.Call) {
			_, _, err := h.Runs.Claim(h.ctx(), c.Execution)
			h.ok(err)
			h.ok(h.Runs.Finish(h.ctx(), c.Execution, false, "no such order"))
		}, approvers.OutcomeError, "proposed executing executed returned"},
		{"rejected", refund, func(h *harness, c store.Call) { h.reject(lead, c.Request) },
			approvers.OutcomeRejected, "proposed decided closed returned"},
		{"expired", refund, func(h *harness, c store.Call) { h.clock.pass(expiresAfter); h.due() },
			approvers.OutcomeExpired, "proposed closed returned"},
		{"approved and not started in time", refund, func(h *harness, c store.Call) {
			h.approve(lead, c.Request)
			h.clock.pass(runWithin)
			h.due()
			h.wantState(c.Request, approvers.Expired)
			h.notRun(c.Execution)
		}, approvers.OutcomeExpired, "proposed decided approved closed returned"},
		{"not started in time, seen by the executor", refund, func(h *harness, c store.Call) {
			h.approve(lead, c.Request)
			h.clock.pass(runWithin)
			h.notRun(c.Execution)
		}, approvers.OutcomeExpired, "proposed decided approved closed returned"},
		{"withdrawn", refund, func(h *harness, c store.Call) {
			_, err := h.Requests.Withdraw(h.ctx(), h.clickOn(alice, "", c.Request))
			h.ok(err)
		}, approvers.OutcomeWithdrawn, "proposed closed returned"},
		{"withdrawn after the approval", refund, func(h *harness, c store.Call) {
			h.approve(lead, c.Request)
			_, err := h.Requests.Withdraw(h.ctx(), h.clickOn(alice, "", c.Request))
			h.ok(err)
			h.notRun(c.Execution)
		}, approvers.OutcomeWithdrawn, "proposed decided approved closed returned"},
		{"voided: the tool changed", refund, func(h *harness, c store.Call) {
			h.approve(lead, c.Request)
			h.tools.change("issue_refund", func(t *workflow.Tool) { t.Hash = "another" })
			h.notRun(c.Execution)
		}, approvers.OutcomeVoided, "proposed decided approved closed returned"},
		{"voided: the tool changed, run without asking", `search_orders {}`, func(h *harness, c store.Call) {
			h.tools.change("search_orders", func(t *workflow.Tool) { t.Hash = "another" })
			h.notRun(c.Execution)
		}, approvers.OutcomeVoided, "proposed returned"},
		{"refused", `cancel_account {}`, nil, approvers.OutcomeRefused, "proposed closed returned"},
		{"unknown", refund, func(h *harness, c store.Call) {
			h.approve(lead, c.Request)
			_, _, err := h.Runs.Claim(h.ctx(), c.Execution)
			h.ok(err)
			h.ok(h.Runs.MarkUnknown(h.ctx(), c.Execution))
			h.clock.pass(expiresAfter)
			h.due()
		}, approvers.OutcomeUnknown, "proposed decided approved executing unknown returned"},
		{"arguments that are not JSON", `issue_refund {"amount":`, nil, approvers.OutcomeError, "proposed returned"},
		{"arguments that the schema refuses", `issue_refund {"nonsense":1}`, nil, approvers.OutcomeError, "proposed returned"},
		{"an unknown tool", `make_coffee {}`, nil, approvers.OutcomeError, "proposed returned"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			if tt.outcome == approvers.OutcomeRefused {
				h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers = p.Approvers[:2] }))
			}
			turn := h.say(alice, "please").Turn
			c := h.propose(turn, tt.spec)[0]
			if tt.do != nil {
				h.wantTurn(turn, approvers.TurnWaiting)
				tt.do(h, c)
			}
			c = h.wantOutcome(c.ID, tt.outcome)
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
			h.wantKinds(chain, tt.kinds)
			h.wantTurn(turn, approvers.TurnThinking)
			h.answer(turn)
		})
	}
}

// TestMixedDecisions checks several calls of one step that end differently. Calls that wait for approval don't delay
// calls that need no approval.
func TestMixedDecisions(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "do it all").Turn
	cs := h.propose(turn, `search_orders {}`, `issue_refund {"amount":1}`, `cancel_account {}`, `apply_discount {"a":1,"A":2}`, `update_address {}`, `apply_discount {}`)
	due := readStore(h, func(r store.Reader) ([]store.Timer, error) {
		return r.TimersIn(store.AllShares, store.TimerRun, h.clock.Now(), 10)
	})
	if len(due) != 2 {
		t.Fatalf("%d runs are due immediately; want the two that nobody is asked about", len(due))
	}
	h.run(cs[0].Execution, "found")
	h.run(cs[4].Execution, "changed")
	h.wantTurn(turn, approvers.TurnWaiting)
	h.reject(fin1, cs[2].Request)
	h.approve(lead, cs[1].Request)
	h.run(h.request(cs[1].Request).Execution, "refunded")
	h.wantTurn(turn, approvers.TurnWaiting)
	_, err := h.Requests.Withdraw(h.ctx(), h.clickOn(alice, "", cs[5].Request))
	h.ok(err)
	h.wantTurn(turn, approvers.TurnThinking)
	for i, want := range []approvers.Outcome{
		approvers.OutcomeExecuted, approvers.OutcomeExecuted, approvers.OutcomeRejected, approvers.OutcomeError, approvers.OutcomeExecuted, approvers.OutcomeWithdrawn,
	} {
		h.wantOutcome(cs[i].ID, want)
	}
	b := h.begin(turn)
	got := b.Calls[turn]
	if len(got) != 6 {
		t.Fatalf("the model is given %d results for 6 calls", len(got))
	}
	for i, c := range got {
		if c.Index != i || c.Outcome == "" {
			t.Errorf("call %d comes as number %d with outcome %q", c.Index, i, c.Outcome)
		}
	}
	h.answer(turn)
}

func TestModelIDsAreMadeUnique(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "search").Turn
	b := h.begin(turn)
	h.ok(h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: turn, Step: b.Turn.Step, Calls: []workflow.ModelCall{
		{ID: "a", Tool: "search_orders", Args: `{}`}, {ID: "a", Tool: "search_orders", Args: `{}`}, {ID: "", Tool: "search_orders", Args: `{}`}, {Tool: "x", Fault: "cut off"},
	}}))
	seen := map[string]bool{}
	for _, c := range h.callsOf(turn) {
		if c.ModelID == "" || seen[c.ModelID] {
			t.Errorf("model id %q is empty or used twice", c.ModelID)
		}
		seen[c.ModelID] = true
	}
	if !seen["a"] {
		t.Error("the first of the same ids was not kept")
	}
}

// The next model call gets the reasoning of each earlier step, also after a restart and in later turns.
func TestReasoningIsStored(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "search").Turn
	of := func(text string, calls ...string) *store.Reasoning {
		return &store.Reasoning{Source: "m", Text: text, Calls: calls}
	}
	h.ok(h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: turn, Step: h.begin(turn).Turn.Step, Calls: calls(`search_orders {}`), Reasoning: of("I look.", `{"a":1}`)}))
	h.run(h.callsOf(turn)[0].Execution, "found")
	h.reopen()
	h.ok(h.Turns.Answer(h.ctx(), turn, h.begin(turn).Turn.Step, "Found.", of("That is all."), 1))
	var got []*store.Reasoning
	for _, m := range h.begin(h.say(alice, "and now?").Turn).Messages {
		got = append(got, m.Reasoning)
	}
	if want := []*store.Reasoning{nil, of("I look.", `{"a":1}`), of("That is all."), nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// TestAStepIsTakenOnce checks that a second Propose of the same step changes nothing.
func TestAStepIsTakenOnce(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "search").Turn
	b := h.begin(turn)
	p := workflow.Proposal{Turn: turn, Step: b.Turn.Step, Calls: calls(`search_orders {}`)}
	h.ok(h.Turns.Propose(h.ctx(), p))
	for name, again := range map[string]func() error{
		"propose":  func() error { return h.Turns.Propose(h.ctx(), p) },
		"answer":   func() error { return h.Turns.Answer(h.ctx(), turn, b.Turn.Step, "x", nil, 1) },
		"stop":     func() error { return h.Turns.Stop(h.ctx(), turn, b.Turn.Step, "x", true) },
		"postpone": func() error { return h.Turns.Postpone(h.ctx(), turn, b.Turn.Step, h.clock.Now()) },
		"begin":    func() error { _, err := h.Turns.Begin(h.ctx(), turn); return err },
	} {
		if err := again(); !errors.Is(err, workflow.ErrNotDue) {
			t.Errorf("%s while it waits: %v; want ErrNotDue", name, err)
		}
	}
	c := h.callsOf(turn)
	if len(c) != 1 {
		t.Fatalf("%d calls were written; want 1", len(c))
	}
	h.run(c[0].Execution, "found")
	if err := h.Turns.Propose(h.ctx(), p); !errors.Is(err, workflow.ErrNotDue) {
		t.Errorf("the first step again, in the second: %v; want ErrNotDue", err)
	}
	if err := h.Runs.Finish(h.ctx(), c[0].Execution, true, "again"); !errors.Is(err, approvers.ErrNotRunning) {
		t.Errorf("finishing again: %v", err)
	}
	h.notRun(c[0].Execution)
	h.answer(turn)
	if _, err := h.Turns.Begin(h.ctx(), turn); !errors.Is(err, workflow.ErrNotDue) {
		t.Errorf("an answered turn begins: %v", err)
	}
}

// Slack's deliveries come over several connections and can overtake each other. A message that was written in a thread
// before the first mention of the bot is not for the bot. The bot must ignore the message even if it arrives after the
// mention.
func TestOvertakenMessage(t *testing.T) {
	h := newHarness(t)
	said := func(ts, text string, mention bool) workflow.IncomingMessage {
		return workflow.IncomingMessage{
			Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", Thread: "100.1", TS: ts, Who: alice, Text: text, Start: mention,
			Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		}
	}
	h.hear(said("200.000005", "help me", true))
	for _, c := range []struct {
		u       workflow.IncomingMessage
		ignored bool
	}{
		{said("200.000004", "not for the bot", false), true},
		{said("199.000009", "nor this", false), true},
		{said("200.000003", "but this is", true), false},
		{said("200.000004", "and what follows it is", false), false},
		{said("201.000001", "and this", false), false},
	} {
		if heard := h.hear(c.u); heard.Ignored != c.ignored {
			t.Errorf("%s %q: ignored %t", c.u.TS, c.u.Text, heard.Ignored)
		}
	}
}

func TestDeliveriesAreHandledOnce(t *testing.T) {
	h := newHarness(t)
	row := store.Inbox{ID: "Ev1", Kind: store.InboxEvent, ReceivedAt: h.clock.Now(), Payload: []byte("x")}
	for i, want := range []bool{true, false} {
		if fresh, err := h.Intake.Receive(h.ctx(), row, "l"); err != nil || fresh != want {
			t.Errorf("delivery %d: fresh %t, %v", i+1, fresh, err)
		}
	}
	u := workflow.IncomingMessage{Inbox: "Ev1", At: row.ReceivedAt, Team: "T0001", Thread: "1", TS: "1", Who: alice, Text: "hi", Start: true,
		Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"}}
	first, err := h.Intake.ReceiveMessage(h.ctx(), u)
	h.ok(err)
	again, err := h.Intake.ReceiveMessage(h.ctx(), u)
	if err != nil || !again.Duplicate || again.Turn != "" {
		t.Errorf("the same delivery again: %+v, %v", again, err)
	}
	if fresh, err := h.Intake.Receive(h.ctx(), row, "l"); err != nil || fresh {
		t.Errorf("redelivered after it was handled: fresh %t, %v", fresh, err)
	}
	// Slack sends a mention as two events: a message event and a mention event. The two events have different ids and
	// the same ts.
	u.Inbox = "Ev2"
	if twin := h.hear(u); !twin.Duplicate {
		t.Errorf("the same message in another event: %+v", twin)
	}
	if got := readStore(h, func(r store.Reader) ([]store.Message, error) { return r.Messages(first.Conversation, 0) }); len(got) != 1 {
		t.Errorf("%d messages; want 1", len(got))
	}
	if n := len(h.timers(store.TimerInbox)); n != 0 {
		t.Errorf("%d deliveries are still due", n)
	}

	r := h.requestIn(first.Turn, `issue_refund {"amount":1}`)
	c := h.clickOn(lead, approvers.Approve, r.ID)
	_, err = h.Requests.Decide(h.ctx(), c)
	h.ok(err)
	if _, err = h.Requests.Decide(h.ctx(), c); !errors.Is(err, workflow.ErrHandled) {
		t.Errorf("the same click again: %v; want ErrHandled", err)
	}
	h.wantKinds(r.ID, "proposed decided approved")
	if err := h.Intake.Done(h.ctx(), c.Inbox, "x"); !errors.Is(err, workflow.ErrHandled) {
		t.Errorf("done again: %v", err)
	}
}

// requestIn makes the model of a turn request one call. The call needs approval.
func (h *harness) requestIn(turn, spec string) approvers.Request {
	h.t.Helper()
	return h.request(h.propose(turn, spec)[0].Request)
}

func TestPostponedThoughtIsDueLater(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "hi").Turn
	b := h.begin(turn)
	until := h.clock.Now().Add(20 * time.Second)
	h.ok(h.Turns.Postpone(h.ctx(), turn, b.Turn.Step, until))
	if got := h.timers(store.TimerThink)[turn].Due; !got.Equal(until) {
		t.Errorf("due at %s; want %s", got, until)
	}
	if got := h.turn(turn).Failures; got != 1 {
		t.Errorf("%d failures; want 1", got)
	}
}
