package workflow_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// TestAnyOrder calls random methods of the workflow in random order, and checks the invariants after each call. The
// flag -rapid.checks=N tries N sequences.
func TestAnyOrder(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		h := &harness{t: t, path: filepath.Join(dir, fmt.Sprint(n)), tools: newToolbox(), clock: &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}, quiet: map[string]time.Time{}}
		h.policy.Store(policy("policy-0"))
		h.open(nil)
		defer func() { h.ok(h.store.Close()) }()
		c := &chaos{harness: h, ran: map[string]int{}}
		rt.Repeat(map[string]func(*rapid.T){
			"":             c.check,
			"say":          c.say,
			"think":        c.think,
			"think2":       c.think,
			"decide":       c.decide,
			"decide2":      c.decide,
			"all":          c.decideAllOf,
			"unbundle":     c.unbundle,
			"run":          c.run,
			"run2":         c.run,
			"finish":       c.finish,
			"withdraw":     c.withdraw,
			"withdraw all": c.withdrawAll,
			"try again":    c.tryAgain,
			"report":       c.report,
			"show":         c.show,
			"pass":         c.pass,
			"away":         c.leave,
			"quiet":        c.disturb,
			"policy":       c.change,
			"tool":         c.drift,
			"restart":      c.restart,
		})
	})
}

type chaos struct {
	*harness
	changes int
	running []string       // executions that this process has claimed
	ran     map[string]int // by execution: how often it was allowed to run
}

// c.fine fails the test for any error except a denial or ErrNotDue.
func (c *chaos) fine(t *rapid.T, err error) {
	var denied *approvers.Denied
	if err == nil || errors.As(err, &denied) || errors.Is(err, workflow.ErrNotDue) {
		return
	}
	t.Fatalf("%v", err)
}

func (c *chaos) check(t *rapid.T) {
	if err := c.faults(); err != nil {
		t.Fatalf("the invariants do not hold:\n%v", err)
	}
	for id, n := range c.ran {
		if e := c.execution(id); n > 1 && e.Effect == approvers.Unprotected {
			t.Fatalf("%s was run %d times", e.Tool, n)
		}
	}
}

func (c *chaos) who(t *rapid.T) approvers.Identity {
	guest := lead
	guest.Guest = true
	return rapid.SampledFrom([]approvers.Identity{alice, bob, support, lead, fin1, fin2, guest, {}}).Draw(t, "who")
}

func (c *chaos) say(t *rapid.T) {
	thread := fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "thread"))
	h := c.sayIn(thread, rapid.SampledFrom([]approvers.Identity{alice, bob}).Draw(t, "who"), "please")
	if h.Turn == "" {
		t.Fatalf("the message began or joined no turn: %+v", h)
	}
}

// c.one returns the Ref of a random timer of a kind. If there is no timer of this kind, the result is "".
func (c *chaos) one(t *rapid.T, kind store.TimerKind) string {
	timers := readStore(c.harness, func(r store.Reader) ([]store.Timer, error) { return r.Timers(kind, 100) })
	if len(timers) == 0 {
		return ""
	}
	return timers[rapid.IntRange(0, len(timers)-1).Draw(t, string(kind))].Ref
}

func (c *chaos) think(t *rapid.T) {
	turn := c.one(t, store.TimerThink)
	if turn == "" {
		return
	}
	b, err := c.Turns.Begin(c.ctx(), turn)
	c.fine(t, err)
	if err != nil {
		return
	}
	var authors []approvers.PersonID
	for _, m := range b.Messages {
		if m.Author != "" {
			authors = append(authors, m.Author)
		}
	}
	switch rapid.IntRange(0, 6).Draw(t, "reply") {
	case 0:
		c.fine(t, c.Turns.Answer(c.ctx(), turn, b.Turn.Step, "Done.", nil, 1))
		c.follow(turn)
	case 1:
		c.fine(t, c.Turns.Stop(c.ctx(), turn, b.Turn.Step, "no", rapid.Bool().Draw(t, "retry")))
		c.follow(turn)
	case 2:
		c.fine(t, c.Turns.Postpone(c.ctx(), turn, b.Turn.Step, c.clock.Now().Add(time.Second)))
	default:
		specs := rapid.SliceOfN(rapid.SampledFrom([]string{
			`search_orders {}`, `update_address {}`, `update_address {"a": 1}`, `apply_discount {}`, `issue_refund {"amount":5}`, `issue_refund {"amount":900}`,
			`cancel_account {}`, `format_disk {}`, `issue_refund {"amount"`, `nothing {}`,
		}), 1, 3).Draw(t, "calls")
		c.fine(t, c.Turns.Propose(c.ctx(), workflow.Proposal{Turn: turn, Step: b.Turn.Step, Calls: calls(specs...), Authors: authors}))
	}
}

// c.follow records the turn that waiting messages have started.
func (c *chaos) follow(turn string) {
	id := c.turn(turn).Conversation
	if next := readStore(c.harness, func(r store.Reader) (store.Conversation, error) { return r.Conversation(id) }).Turn; next != "" {
		c.turns = append(c.turns, next)
	}
}

func (c *chaos) openRequest(t *rapid.T) (approvers.Request, bool) {
	open := readStore(c.harness, func(r store.Reader) ([]approvers.Request, error) { return r.OpenRequests(store.RequestCursor{}, 100) })
	if len(open) == 0 {
		return approvers.Request{}, false
	}
	return open[rapid.IntRange(0, len(open)-1).Draw(t, "request")], true
}

func (c *chaos) decide(t *rapid.T) {
	r, ok := c.openRequest(t)
	if !ok {
		return
	}
	kind := rapid.SampledFrom([]approvers.DecisionKind{approvers.Approve, approvers.Approve, approvers.Approve, approvers.Reject, approvers.Modify}).Draw(t, "kind")
	click := c.clickOn(c.who(t), kind, r.ID)
	click.Args = []byte(fmt.Sprintf(`{"amount":%d}`, rapid.SampledFrom([]int{1, 5, 900}).Draw(t, "amount")))
	if rapid.IntRange(0, 9).Draw(t, "later") == 0 {
		c.clock.pass(time.Minute) // the click waits in the inbox
	}
	_, err := c.Requests.Decide(c.ctx(), click)
	c.fine(t, err)
}

func (c *chaos) run(t *rapid.T) {
	id := c.one(t, store.TimerRun)
	for _, r := range c.running {
		if r == id {
			return // this process already runs the execution
		}
	}
	if id == "" {
		return
	}
	e, run, err := c.Runs.Claim(c.ctx(), id)
	c.fine(t, err)
	if run {
		if e.Digest != approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args) {
			t.Fatalf("%s runs with other bytes than were signed", e.Tool)
		}
		if e.Request != "" && c.request(e.Request).State != approvers.Consumed {
			t.Fatalf("%s runs while its request is %s", e.Tool, c.request(e.Request).State)
		}
		c.ran[id]++
		c.running = append(c.running, id)
	}
}

func (c *chaos) finish(t *rapid.T) {
	if len(c.running) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.running)-1).Draw(t, "running")
	id := c.running[i]
	c.running = append(c.running[:i:i], c.running[i+1:]...)
	if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
		c.fine(t, c.Runs.MarkUnknown(c.ctx(), id))
		return
	}
	c.fine(t, c.Runs.Finish(c.ctx(), id, rapid.Bool().Draw(t, "ok"), "result"))
}

func (c *chaos) withdraw(t *rapid.T) {
	if r, ok := c.openRequest(t); ok {
		_, err := c.Requests.Withdraw(c.ctx(), c.clickOn(c.who(t), "", r.ID))
		c.fine(t, err)
	}
}

func (c *chaos) someTurn(t *rapid.T) string {
	if len(c.turns) == 0 {
		return "turn_none"
	}
	return c.turns[rapid.IntRange(0, len(c.turns)-1).Draw(t, "turn")]
}

func (c *chaos) withdrawAll(t *rapid.T) {
	c.fine(t, c.Requests.WithdrawAll(c.ctx(), workflow.Click{Turn: c.someTurn(t), Who: c.who(t), At: c.clock.Now()}))
}

func (c *chaos) tryAgain(t *rapid.T) {
	c.fine(t, c.Turns.TryAgain(c.ctx(), workflow.Click{Turn: c.someTurn(t), Who: c.who(t), At: c.clock.Now()}))
}

func (c *chaos) report(t *rapid.T) {
	if id := c.one(t, store.TimerLeave); id != "" {
		what := rapid.SampledFrom([]workflow.Report{workflow.Happened, workflow.DidNot, workflow.Leave}).Draw(t, "what")
		c.fine(t, c.Runs.Report(c.ctx(), workflow.Click{Execution: id, Who: c.who(t), At: c.clock.Now()}, what))
	}
}

func (c *chaos) show(t *rapid.T) {
	id := c.one(t, rapid.SampledFrom(store.ShowTimers).Draw(t, "rank"))
	if id == "" {
		return
	}
	s := c.message(id)
	switch rapid.IntRange(0, 5).Draw(t, "shown") {
	case 0:
		c.ok(c.Outbox.Unreachable(c.ctx(), id, "channel_not_found", ""))
	case 1:
		c.ok(c.Outbox.Expand(c.ctx(), id, persons("U0002", "U0003")))
	default:
		c.harness.show(s)
	}
}

// c.leave makes a person set or end an absence. A new absence begins now or soon.
func (c *chaos) leave(t *rapid.T) {
	who, minutes := c.who(t), rapid.IntRange(0, 40)
	if rapid.IntRange(0, 3).Draw(t, "back") == 0 {
		_, err := c.People.Back(c.ctx(), c.command(), who)
		c.fine(t, err)
		return
	}
	from := c.clock.Now().Add(time.Duration(minutes.Draw(t, "from")) * time.Minute)
	m := workflow.Departure{Inbox: c.command(), Who: who, From: from, Until: from.Add(time.Duration(minutes.Draw(t, "for")) * time.Minute)}
	if other := c.who(t); other.ID != "" {
		m.Delegate = &other
	}
	_, err := c.People.SetAway(c.ctx(), m)
	c.fine(t, err)
}

// disturb sets a person's do-not-disturb for a random time.
func (c *chaos) disturb(t *rapid.T) {
	c.quiet[c.who(t).ID.User()] = c.clock.Now().Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute)
}

func (c *chaos) pass(t *rapid.T) {
	c.clock.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
	c.due()
}

func (c *chaos) change(t *rapid.T) {
	c.changes++
	c.policy.Store(policy(fmt.Sprint("policy-", c.changes), func(p *approvers.Policy) {
		for i := range p.Tools {
			p.Tools[i].Risk = approvers.Risk(rapid.IntRange(1, 4).Draw(t, "risk"))
			p.Tools[i].Confirm = rapid.Bool().Draw(t, "confirm")
		}
		p.Defaults.RemindAfter, p.Defaults.Reminders, p.Defaults.Repeat = 7*time.Minute, rapid.IntRange(0, 3).Draw(t, "reminders"), rapid.IntRange(0, 2).Draw(t, "repeat")
		p.Defaults.OnExpiry = rapid.SampledFrom([]approvers.OnExpiry{approvers.ExpiryRejects, approvers.ExpiryEscalates}).Draw(t, "on expiry")
		p.Caps.Approver = rapid.IntRange(0, 2).Draw(t, "cap")
		if rapid.IntRange(0, 3).Draw(t, "fewer") == 0 {
			p.Approvers = p.Approvers[rapid.IntRange(0, 2).Draw(t, "from"):]
		}
		if rapid.IntRange(0, 3).Draw(t, "staged") == 0 {
			p.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
		}
	}))
	if rapid.Bool().Draw(t, "reconsidered") { // Reevaluate runs in the background, so it may come later
		c.ok(c.Requests.Reevaluate(c.ctx()))
	}
}

func (c *chaos) drift(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
		name := rapid.SampledFrom([]string{"search_orders", "apply_discount", "issue_refund"}).Draw(t, "tool")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			c.tools.change(name, func(tool *workflow.Tool) { tool.Hash += "+" })
		case 1:
			c.tools.change(name, func(tool *workflow.Tool) { tool.Blocked = "its definition changed since it was pinned" })
		case 2:
			c.tools.change(name, func(tool *workflow.Tool) { tool.Blocked = "" }) // the operator has reviewed the tool
		}
		if rapid.Bool().Draw(t, "reconsidered") {
			c.ok(c.Requests.Reevaluate(c.ctx()))
		}
	}
}

func (c *chaos) restart(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "rarely") == 0 {
		c.running = nil
		c.reopen()
	}
}
