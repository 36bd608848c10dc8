package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// pausable changes a policy so that the members of the role team-lead may pause everything.
func pausable(p *approvers.Policy) { p.PausedBy = []string{"team-lead"} }

// wantPaused checks that an action was refused because everything is paused.
func wantPaused(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, workflow.ErrPaused) {
		t.Errorf("got %v; want that everything is paused", err)
	}
}

// During a pause, no tool call starts, not even an approved call, and no model is called. Decisions are accepted, and
// deadlines apply. An approved call expires if it can't start in time. After the pause, all delayed work continues.
func TestPauseHoldsEverything(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	cs := h.propose(turn, `search_orders {}`, `apply_discount {}`, `issue_refund {"amount":1}`, `issue_refund {"amount":2}`)
	h.approve(support, cs[1].Request)
	thinking := h.sayIn("200.1", bob, "and this").Turn
	brief := h.begin(thinking)
	h.ok(h.Pauses.Pause(h.ctx(), approvers.Operator("root"), "an incident"))

	for _, c := range cs[:2] {
		_, run, err := h.Runs.Claim(h.ctx(), c.Execution)
		wantPaused(t, err)
		if run || h.execution(c.Execution).State != approvers.ExecutionNone {
			t.Errorf("%s was started", c.Tool)
		}
	}
	h.wantState(cs[1].Request, approvers.Approved)
	_, err := h.Turns.Begin(h.ctx(), thinking)
	wantPaused(t, err)
	wantPaused(t, h.Turns.Answer(h.ctx(), thinking, brief.Turn.Step, "Too late.", nil, 1))
	wantPaused(t, h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: thinking, Step: brief.Turn.Step, Calls: calls(`search_orders {}`)}))
	wantPaused(t, h.Turns.Stop(h.ctx(), thinking, brief.Turn.Step, "it failed", true))
	wantPaused(t, h.Turns.Postpone(h.ctx(), thinking, brief.Turn.Step, h.clock.Now()))
	h.wantTurn(thinking, approvers.TurnThinking)

	h.approve(lead, cs[2].Request)
	h.clock.pass(runWithin)
	h.due()
	h.wantState(cs[1].Request, approvers.Expired)
	h.wantState(cs[2].Request, approvers.Expired)
	h.reject(lead, cs[3].Request)

	h.ok(h.Pauses.Resume(h.ctx(), approvers.Operator("root"), ""))
	h.run(cs[0].Execution, "found")
	h.wantTurn(turn, approvers.TurnThinking)
	h.answer(turn)
	h.answer(thinking)
	h.wantKinds(approvers.InstallationChain, "paused resumed")
}

// Only members of the roles that the policy names may pause and resume. Slack's current data determine who is a member.
// If two people pause at the same moment, only the first click counts, and the second person is told who was first.
func TestWhoMayPause(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", pausable))
	click := func(who approvers.Identity) workflow.Click {
		c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Reason: "an incident", Channel: "C0001"}
		h.receive(c)
		return c
	}
	changed := func(change func(*approvers.Identity)) approvers.Identity {
		who := lead
		change(&who)
		return who
	}
	for name, c := range map[string]struct {
		who  approvers.Identity
		code approvers.Code
	}{
		"another role": {fin1, approvers.DeniedNoPause},
		"no role":      {alice, approvers.DeniedNoPause},
		"a guest":      {changed(func(w *approvers.Identity) { w.Guest = true }), approvers.DeniedGuest},
		"a stranger":   {changed(func(w *approvers.Identity) { w.Foreign = true }), approvers.DeniedForeign},
		"a bot":        {changed(func(w *approvers.Identity) { w.Bot = true }), approvers.DeniedBot},
		"who has left": {changed(func(w *approvers.Identity) { w.Deleted = true }), approvers.DeniedDeactivated},
		"nobody known": {approvers.Identity{}, approvers.DeniedUnidentified},
	} {
		t.Run(name, func(t *testing.T) {
			wantDenied(t, h.Pauses.PauseBy(h.ctx(), click(c.who)), c.code)
			wantDenied(t, h.Pauses.ResumeBy(h.ctx(), click(c.who)), c.code)
		})
	}
	if p, err := h.Views.Paused(h.ctx()); err != nil || p.On {
		t.Fatalf("paused: %+v (%v)", p, err)
	}

	second := person("U0077")
	h.policy.Store(policy("policy-2", pausable, func(p *approvers.Policy) { p.Approvers[1].Members = append(p.Approvers[1].Members, users("U0077")...) }))
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, c := range []workflow.Click{click(lead), click(second)} {
		wg.Go(func() { errs[i] = h.Pauses.PauseBy(h.ctx(), c) })
	}
	wg.Wait()
	loser := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if loser < 0 || errs[1-loser] != nil {
		t.Fatalf("both won, or none: %v", errs)
	}
	winner := []approvers.Identity{lead, second}[1-loser].ID
	if denied := wantDenied(t, errs[loser], approvers.DeniedPaused); denied.By != winner || denied.At.IsZero() {
		t.Errorf("told of %+v", denied)
	}
	p, err := h.Views.Paused(h.ctx())
	h.ok(err)
	if !p.On || p.By != winner || p.Reason != "an incident" {
		t.Errorf("%+v", p)
	}
	if err := h.Pauses.Pause(h.ctx(), approvers.Operator("root"), "me too"); !errors.Is(err, workflow.ErrNotDue) {
		t.Errorf("paused twice: %v", err)
	}
	h.ok(h.Pauses.ResumeBy(h.ctx(), click(lead)))
	if denied := wantDenied(t, h.Pauses.ResumeBy(h.ctx(), click(second)), approvers.DeniedNotPaused); denied.By != lead.ID {
		t.Errorf("told of %+v", denied)
	}
	kinds := h.kinds(approvers.InstallationChain)
	if strings.Count(kinds, "denied") != 14 || !strings.HasSuffix(kinds, "paused resumed") {
		t.Errorf("the history has %q", kinds)
	}
}

// A pause survives a restart. If an interrupted run of the earlier process can't be repeated, people are asked for its
// outcome during the pause. An interrupted run that can be repeated waits for the end of the pause.
func TestPauseSurvivesARestart(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	cs := h.propose(turn, `search_orders {}`, `apply_discount {}`)
	h.approve(support, cs[1].Request)
	for _, c := range cs {
		_, run, err := h.Runs.Claim(h.ctx(), c.Execution)
		if h.ok(err); !run {
			t.Fatalf("%s does not run", c.Tool)
		}
	}
	h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "an incident"))
	h.reopen()
	if p, err := h.Views.Paused(h.ctx()); err != nil || !p.On || p.By != lead.ID {
		t.Fatalf("%+v (%v)", p, err)
	}
	_, _, err := h.Runs.Claim(h.ctx(), cs[0].Execution)
	wantPaused(t, err)
	h.notRun(cs[1].Execution)
	if got := h.execution(cs[1].Execution).State; got != approvers.ExecutionUnknown {
		t.Errorf("a run that may have acted is %s", got)
	}
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Who: alice, Execution: cs[1].Execution, Reason: "I see it"}, workflow.Happened))
	h.ok(h.Pauses.Resume(h.ctx(), lead.ID, ""))
	h.run(cs[0].Execution, "found")
	h.answer(turn)
}

// If a pause interrupts a run that can be repeated, the bot claims the run again immediately after the pause. The bot
// does not claim runs that have ended.
func TestPutBack(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	c := h.propose(turn, `search_orders {}`)[0]
	_, _, err := h.Runs.Claim(h.ctx(), c.Execution)
	h.ok(err)
	h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "an incident"))
	h.ok(h.Runs.PutBack(h.ctx(), c.Execution))
	if due := h.timers(store.TimerRun)[c.Execution].Due; due.After(h.clock.Now()) {
		t.Errorf("it is due at %s", due)
	}
	h.ok(h.Pauses.Resume(h.ctx(), lead.ID, ""))
	h.run(c.Execution, "found")
	if err := h.Runs.PutBack(h.ctx(), c.Execution); !errors.Is(err, workflow.ErrNotDue) || len(h.timers(store.TimerRun)) != 0 {
		t.Errorf("put back although it has ended: %v", err)
	}
	h.answer(turn)
}

// Idle and NextDue ignore work that a pause delays.
func TestWhatRestsIsNotDue(t *testing.T) {
	h := newHarness(t)
	h.ask(`apply_discount {}`)
	h.sayIn("200.1", bob, "think about this")
	h.propose(h.sayIn("300.1", bob, "look it up").Turn, `search_orders {}`)
	h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "an incident"))
	h.showPause()
	h.showAll()
	h.due()
	if idle, err := h.Idle(h.ctx()); err != nil || !idle {
		t.Errorf("idle: %t (%v)", idle, err)
	}
	if next, err := h.NextDue(h.ctx()); err != nil || !next.Equal(h.clock.Now().Add(escalateAfter)) {
		t.Errorf("the next is due at %s (%v)", next, err)
	}
	h.ok(h.Pauses.Resume(h.ctx(), lead.ID, ""))
	if idle, err := h.Idle(h.ctx()); err != nil || idle {
		t.Errorf("idle after the pause: %t (%v)", idle, err)
	}
}

// The bot stores a message that arrives during a pause, and tells the sender about the pause in the thread. Each turn
// gets only one message about the pause. The requesters of other turns that the pause delays are also told. A turn is
// delayed if it needs a model call when the pause begins, or after a decision during the pause.
func TestStandstill(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	before := h.sayIn("200.1", bob, "think about this")
	h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "an incident"))
	h.showPause()
	during := h.sayIn("300.1", bob, "and this")
	if before.Paused || !during.Paused {
		t.Errorf("said to be paused: %t before, %t meanwhile", before.Paused, during.Paused)
	}
	h.show(h.only(during.Turn, store.OutboxStandstill))
	if again := h.sayIn("300.1", bob, "oh, and that"); again.Turn != during.Turn || h.wanted(during.Turn) == "" {
		t.Errorf("the second message: %+v; to be shown: %q", again, h.wanted(during.Turn))
	}
	for _, turn := range []string{before.Turn, during.Turn} {
		h.show(h.only(turn, store.OutboxStandstill))
	}
	h.reject(support, r.ID)
	h.wantTurn(r.Turn, approvers.TurnThinking)
	h.only(r.Turn, store.OutboxStandstill)

	h.ok(h.Pauses.Resume(h.ctx(), lead.ID, ""))
	h.showPause()
	for _, turn := range []string{before.Turn, during.Turn, r.Turn} {
		if !contains(h.wanted(turn), "standstill") {
			t.Errorf("the message about the pause is not updated: %s", h.wanted(turn))
		}
		h.show(h.only(turn, store.OutboxStandstill))
		h.answer(turn)
	}
}

// showPause runs the timer handler that shows a pause or the end of a pause.
func (h *harness) showPause() {
	h.t.Helper()
	for ref, timer := range h.timers(store.TimerPause) {
		h.ok(h.Pauses.Show(h.ctx(), timer))
		if _, left := h.timers(store.TimerPause)[ref]; left {
			h.t.Fatal("the pause is still to be shown")
		}
	}
}

// The messages of every waiting turn show the pause and its end. Many transactions are needed to show the pause, and
// the test kills the process before the commit of each of them. The short form of the test skips some points.
func TestPauseIsShownEverywhere(t *testing.T) {
	t.Parallel()
	const waiting = 45 // requests on three pages; each step has three of them
	script := make([]string, 0, 3)
	for i := range 3 {
		script = append(script, fmt.Sprintf(`issue_refund {"amount":%d}`, i+1))
	}
	for n := 1; ; n += testkit.Stride() {
		armed, count, kills := false, 0, 0
		h := newHarness(t)
		h.policy.Store(policy("policy-1", pausable))
		wrap := func(s store.Store) store.Store {
			return &mortal{Store: s, reach: func(point string) {
				if armed && strings.HasSuffix(point, testkit.BeforeCommit) {
					if count++; count == n {
						panic(stopped{})
					}
				}
			}}
		}
		h.ok(h.store.Close())
		h.open(wrap)
		var requests []string
		for i := range waiting / len(script) {
			turn := h.sayIn(fmt.Sprintf("%d.1", i), alice, "please").Turn
			for _, c := range h.propose(turn, script...) {
				requests = append(requests, c.Request)
			}
		}
		auto := h.propose(h.sayIn("auto.1", alice, "look it up").Turn, `search_orders {}`)[0]
		queued := h.sayIn("queued.1", alice, "wait").Turn
		h.showAll()
		for _, on := range []bool{true, false} {
			if on {
				h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "an incident"))
			} else {
				h.ok(h.Pauses.Resume(h.ctx(), lead.ID, ""))
			}
			armed, count = true, 0
			for len(h.timers(store.TimerPause)) > 0 {
				if !h.survives(h.showPause) {
					kills++
					h.ok(h.store.Close())
					h.open(wrap)
				}
			}
			armed = false
			for _, id := range requests {
				call := h.call(h.request(id).Call)
				if got := h.wanted(call.Turn); !contains(got, "bundle") || !contains(got, "step") {
					t.Fatalf("%s, killed in transaction %d: only %q is shown again", id, n, got)
				}
			}
			if got := h.wanted(auto.Turn); !contains(got, "step") {
				t.Fatalf("killed in transaction %d: a call that would run shows %q", n, got)
			}
			if got := h.wanted(queued); !contains(got, "standstill") {
				t.Fatalf("killed in transaction %d: a turn that would think shows %q", n, got)
			}
			h.showAll()
		}
		if kills == 0 {
			t.Logf("fewer than %d transactions", n+1)
			return
		}
	}
}

// showAll acts as Slack, and shows every message that waits for delivery.
func (h *harness) showAll() {
	h.t.Helper()
	for timers := h.timers(store.ShowTimers...); len(timers) > 0; timers = h.timers(store.ShowTimers...) {
		for id := range timers {
			s := h.message(id)
			if role, ok := strings.CutPrefix(s.To, "role:"); ok {
				r, _ := h.policy.Load().Role(role)
				h.ok(h.Outbox.Expand(h.ctx(), id, persons(r.Members[0].Value)))
				continue
			}
			h.show(s)
		}
	}
}

// h.survives calls fn. If fn kills the process, survives returns false.
func (h *harness) survives(fn func()) (alive bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stopped); !ok {
				panic(p)
			}
			alive = false
		}
	}()
	fn()
	return true
}

// Each person who may end a pause gets one notice about the pause. If a new policy allows other people to end the
// pause, the other people also get a notice.
func TestPausersAreTold(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", pausable))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "an incident"))
	p, err := h.Views.Paused(h.ctx())
	h.ok(err)
	h.showAll()
	if got := h.messagesOf(p.Ref()); len(got) != 2 || got[0].To != "role:team-lead" || got[1].To != "user:U0002" {
		t.Fatalf("%+v", got)
	}
	h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.PausedBy = []string{"team-lead", "finance-director"} }))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if got := h.wanted(p.Ref()); got != "pause role:finance-director" {
		t.Errorf("to be told: %q", got)
	}
	h.showAll()
	h.ok(h.Pauses.Resume(h.ctx(), fin1.ID, ""))
	if got := h.wanted(p.Ref()); got != "pause user:U0002, pause user:U0003" {
		t.Errorf("to be told that it is over: %q", got)
	}
	h.clock.pass(time.Minute)
	h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "another"))
	again, err := h.Views.Paused(h.ctx())
	h.ok(err)
	if again.Ref() == p.Ref() || h.wanted(again.Ref()) == "" {
		t.Errorf("a second pause is shown as %q: %s", again.Ref(), h.wanted(again.Ref()))
	}
}
