package desk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/internal/campaign"
	"countersign/store"
)

// pausable is the tests' policy with a role whose people may pause everything.
func pausable(p *approvers.Policy) { p.PausedBy = []string{"team-lead"} }

// wantPaused checks that a move was refused because everything is paused.
func wantPaused(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, desk.ErrPaused) {
		t.Errorf("got %v; want that everything is paused", err)
	}
}

// While everything is paused nothing starts, whoever allowed it, and no model is called; decisions are taken and deadlines run on. What was approved
// expires if it can't start in time. Afterwards it goes on where it was.
func TestPauseHoldsEverything(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	cs := o.propose(turn, `search_orders {}`, `apply_discount {}`, `issue_refund {"amount":1}`, `issue_refund {"amount":2}`)
	o.approve(support, cs[1].Request)
	thinking := o.sayIn("200.1", bob, "and this").Turn
	brief := o.begin(thinking)
	o.ok(o.Pause(o.ctx(), approvers.Operator("root"), "an incident"))

	for _, c := range cs[:2] {
		_, run, err := o.Claim(o.ctx(), c.Execution)
		wantPaused(t, err)
		if run || o.execution(c.Execution).State != approvers.ExecutionNone {
			t.Errorf("%s was started", c.Tool)
		}
	}
	o.wantState(cs[1].Request, approvers.Approved)
	_, err := o.Begin(o.ctx(), thinking)
	wantPaused(t, err)
	wantPaused(t, o.Answer(o.ctx(), thinking, brief.Turn.Step, "Too late.", 1))
	wantPaused(t, o.Propose(o.ctx(), desk.Proposal{Turn: thinking, Step: brief.Turn.Step, Calls: calls(`search_orders {}`)}))
	wantPaused(t, o.Stop(o.ctx(), thinking, brief.Turn.Step, "it failed", true))
	wantPaused(t, o.Postpone(o.ctx(), thinking, brief.Turn.Step, o.clock.Now()))
	o.wantTurn(thinking, approvers.TurnThinking)

	o.approve(lead, cs[2].Request)
	o.clock.pass(runWithin)
	o.due()
	o.wantState(cs[1].Request, approvers.Expired)
	o.wantState(cs[2].Request, approvers.Expired)
	o.reject(lead, cs[3].Request)

	o.ok(o.Resume(o.ctx(), approvers.Operator("root"), ""))
	o.run(cs[0].Execution, "found")
	o.wantTurn(turn, approvers.TurnThinking)
	o.answer(turn)
	o.answer(thinking)
	o.wantKinds(approvers.InstallationChain, "paused resumed")
}

// Only people of the roles that the policy names may pause and resume, by what Slack says of them now. Of two at once one is first, and the other
// is told who.
func TestWhoMayPause(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", pausable))
	click := func(who approvers.Identity) desk.Click {
		c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: who, Reason: "an incident", Channel: "C0001"}
		o.receive(c)
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
			wantDenied(t, o.PauseBy(o.ctx(), click(c.who)), c.code)
			wantDenied(t, o.ResumeBy(o.ctx(), click(c.who)), c.code)
		})
	}
	if p, err := o.Paused(o.ctx()); err != nil || p.On {
		t.Fatalf("paused: %+v (%v)", p, err)
	}

	second := person("U0077")
	o.policy.Store(policy("policy-2", pausable, func(p *approvers.Policy) { p.Approvers[1].Members = append(p.Approvers[1].Members, users("U0077")...) }))
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, c := range []desk.Click{click(lead), click(second)} {
		wg.Go(func() { errs[i] = o.PauseBy(o.ctx(), c) })
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
	p, err := o.Paused(o.ctx())
	o.ok(err)
	if !p.On || p.By != winner || p.Reason != "an incident" {
		t.Errorf("%+v", p)
	}
	if err := o.Pause(o.ctx(), approvers.Operator("root"), "me too"); !errors.Is(err, desk.ErrNotDue) {
		t.Errorf("paused twice: %v", err)
	}
	o.ok(o.ResumeBy(o.ctx(), click(lead)))
	if denied := wantDenied(t, o.ResumeBy(o.ctx(), click(second)), approvers.DeniedNotPaused); denied.By != lead.ID {
		t.Errorf("told of %+v", denied)
	}
	kinds := o.kinds(approvers.InstallationChain)
	if strings.Count(kinds, "denied") != 14 || !strings.HasSuffix(kinds, "paused resumed") {
		t.Errorf("the history has %q", kinds)
	}
}

// A pause survives a restart. Meanwhile a run that the earlier process left is asked about at once where a second one would act again; any other
// rests, and is run again afterwards.
func TestPauseSurvivesARestart(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	cs := o.propose(turn, `search_orders {}`, `apply_discount {}`)
	o.approve(support, cs[1].Request)
	for _, c := range cs {
		_, run, err := o.Claim(o.ctx(), c.Execution)
		if o.ok(err); !run {
			t.Fatalf("%s does not run", c.Tool)
		}
	}
	o.ok(o.Pause(o.ctx(), lead.ID, "an incident"))
	o.reopen()
	if p, err := o.Paused(o.ctx()); err != nil || !p.On || p.By != lead.ID {
		t.Fatalf("%+v (%v)", p, err)
	}
	_, _, err := o.Claim(o.ctx(), cs[0].Execution)
	wantPaused(t, err)
	o.notRun(cs[1].Execution)
	if got := o.execution(cs[1].Execution).State; got != approvers.ExecutionUnknown {
		t.Errorf("what may have acted is %s", got)
	}
	o.ok(o.Report(o.ctx(), desk.Click{Who: alice, Execution: cs[1].Execution, Reason: "I see it"}, desk.Happened))
	o.ok(o.Resume(o.ctx(), lead.ID, ""))
	o.run(cs[0].Execution, "found")
	o.answer(turn)
}

// What a pause interrupted, and can be run again, is claimed anew as soon as everything goes on; what has ended is left alone.
func TestPutBack(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	c := o.propose(turn, `search_orders {}`)[0]
	_, _, err := o.Claim(o.ctx(), c.Execution)
	o.ok(err)
	o.ok(o.Pause(o.ctx(), lead.ID, "an incident"))
	o.ok(o.PutBack(o.ctx(), c.Execution))
	if due := o.timers(store.TimerRun)[c.Execution].Due; due.After(o.clock.Now()) {
		t.Errorf("it is due at %s", due)
	}
	o.ok(o.Resume(o.ctx(), lead.ID, ""))
	o.run(c.Execution, "found")
	if err := o.PutBack(o.ctx(), c.Execution); !errors.Is(err, desk.ErrNotDue) || len(o.timers(store.TimerRun)) != 0 {
		t.Errorf("put back although it has ended: %v", err)
	}
	o.answer(turn)
}

// What rests because of a pause is nothing that is still to be done, and its time is not the next one.
func TestWhatRestsIsNotDue(t *testing.T) {
	o := newOffice(t)
	o.ask(`apply_discount {}`)
	o.sayIn("200.1", bob, "think about this")
	o.propose(o.sayIn("300.1", bob, "look it up").Turn, `search_orders {}`)
	o.ok(o.Pause(o.ctx(), lead.ID, "an incident"))
	o.showPause()
	o.showAll()
	o.due()
	if idle, err := o.Idle(o.ctx()); err != nil || !idle {
		t.Errorf("idle: %t (%v)", idle, err)
	}
	if next, err := o.NextDue(o.ctx()); err != nil || !next.Equal(o.clock.Now().Add(escalateAfter)) {
		t.Errorf("the next is due at %s (%v)", next, err)
	}
	o.ok(o.Resume(o.ctx(), lead.ID, ""))
	if idle, err := o.Idle(o.ctx()); err != nil || idle {
		t.Errorf("idle after it goes on: %t (%v)", idle, err)
	}
}

// Who writes while everything is paused is heard, and told so in the thread, once a turn; what waits for the model when the pause begins is told
// so too, and so is whoever waits for the answer to a decision that was taken meanwhile.
func TestStandstill(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	before := o.sayIn("200.1", bob, "think about this")
	o.ok(o.Pause(o.ctx(), lead.ID, "an incident"))
	o.showPause()
	during := o.sayIn("300.1", bob, "and this")
	if before.Paused || !during.Paused {
		t.Errorf("said to be paused: %t before, %t meanwhile", before.Paused, during.Paused)
	}
	o.show(o.only(during.Turn, store.SurfaceStandstill))
	if again := o.sayIn("300.1", bob, "oh, and that"); again.Turn != during.Turn || o.wanted(during.Turn) == "" {
		t.Errorf("the second message: %+v; to be shown: %q", again, o.wanted(during.Turn))
	}
	for _, turn := range []string{before.Turn, during.Turn} {
		o.show(o.only(turn, store.SurfaceStandstill))
	}
	o.reject(support, r.ID)
	o.wantTurn(r.Turn, approvers.TurnThinking)
	o.only(r.Turn, store.SurfaceStandstill)

	o.ok(o.Resume(o.ctx(), lead.ID, ""))
	o.showPause()
	for _, turn := range []string{before.Turn, during.Turn, r.Turn} {
		if !contains(o.wanted(turn), "standstill") {
			t.Errorf("what says that it stands still is to stay: %s", o.wanted(turn))
		}
		o.show(o.only(turn, store.SurfaceStandstill))
		o.answer(turn)
	}
}

// showPause shows a pause, or its end, as its timer does.
func (o *office) showPause() {
	o.t.Helper()
	for ref, timer := range o.timers(store.TimerPause) {
		o.ok(o.ShowPause(o.ctx(), timer))
		if _, left := o.timers(store.TimerPause)[ref]; left {
			o.t.Fatal("it is still to be shown")
		}
	}
}

// Everything that waits shows a pause and its end, however many transactions that takes and in whichever of them the process is killed.
func TestPauseIsShownEverywhere(t *testing.T) {
	const waiting = 45 // three pages of them, with a step for each three
	script := make([]string, 0, 3)
	for i := range 3 {
		script = append(script, fmt.Sprintf(`issue_refund {"amount":%d}`, i+1))
	}
	for n := 1; ; n++ {
		armed, count, kills := false, 0, 0
		o := newOffice(t)
		o.policy.Store(policy("policy-1", pausable))
		wrap := func(s store.Store) store.Store {
			return &mortal{Store: s, reach: func(point string) {
				if armed && strings.HasSuffix(point, campaign.BeforeCommit) {
					if count++; count == n {
						panic(stopped{})
					}
				}
			}}
		}
		o.ok(o.store.Close())
		o.open(wrap)
		var requests []string
		for i := range waiting / len(script) {
			turn := o.sayIn(fmt.Sprintf("%d.1", i), alice, "please").Turn
			for _, c := range o.propose(turn, script...) {
				requests = append(requests, c.Request)
			}
		}
		auto := o.propose(o.sayIn("auto.1", alice, "look it up").Turn, `search_orders {}`)[0]
		queued := o.sayIn("queued.1", alice, "wait").Turn
		o.showAll()
		for _, on := range []bool{true, false} {
			if on {
				o.ok(o.Pause(o.ctx(), lead.ID, "an incident"))
			} else {
				o.ok(o.Resume(o.ctx(), lead.ID, ""))
			}
			armed, count = true, 0
			for len(o.timers(store.TimerPause)) > 0 {
				if !o.survives(o.showPause) {
					kills++
					o.ok(o.store.Close())
					o.open(wrap)
				}
			}
			armed = false
			for _, id := range requests {
				call := o.call(o.request(id).Call)
				if got := o.wanted(call.Turn); !contains(got, "bundle") || !contains(got, "step") {
					t.Fatalf("%s, killed in transaction %d: only %q is shown again", id, n, got)
				}
			}
			if got := o.wanted(auto.Turn); !contains(got, "step") {
				t.Fatalf("killed in transaction %d: a call that would run shows %q", n, got)
			}
			if got := o.wanted(queued); !contains(got, "standstill") {
				t.Fatalf("killed in transaction %d: a turn that would think shows %q", n, got)
			}
			o.showAll()
		}
		if kills == 0 {
			t.Logf("%d transactions", n-1)
			return
		}
	}
}

// showAll shows everything that is to be shown.
func (o *office) showAll() {
	o.t.Helper()
	for timers := o.timers(store.ShowTimers...); len(timers) > 0; timers = o.timers(store.ShowTimers...) {
		for id := range timers {
			s := o.surface(id)
			if role, ok := strings.CutPrefix(s.To, "role:"); ok {
				r, _ := o.policy.Load().Role(role)
				o.ok(o.Expand(o.ctx(), id, []string{r.Members[0].Value}))
				continue
			}
			o.show(s)
		}
	}
}

// survives reports whether the process was not killed meanwhile.
func (o *office) survives(fn func()) (alive bool) {
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

// Those who may end a pause are told of it, each once; when the policy names others meanwhile, they too.
func TestPausersAreTold(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", pausable))
	o.ok(o.Reconsider(o.ctx()))
	o.ok(o.Pause(o.ctx(), lead.ID, "an incident"))
	p, err := o.Paused(o.ctx())
	o.ok(err)
	o.showAll()
	if got := o.surfacesOf(p.Ref()); len(got) != 2 || got[0].To != "role:team-lead" || got[1].To != "user:U0002" {
		t.Fatalf("%+v", got)
	}
	o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.PausedBy = []string{"team-lead", "finance-director"} }))
	o.ok(o.Reconsider(o.ctx()))
	if got := o.wanted(p.Ref()); got != "pause role:finance-director" {
		t.Errorf("to be told: %q", got)
	}
	o.showAll()
	o.ok(o.Resume(o.ctx(), fin1.ID, ""))
	if got := o.wanted(p.Ref()); got != "pause user:U0002, pause user:U0003" {
		t.Errorf("to be told that it is over: %q", got)
	}
	o.clock.pass(time.Minute)
	o.ok(o.Pause(o.ctx(), lead.ID, "another"))
	again, err := o.Paused(o.ctx())
	o.ok(err)
	if again.Ref() == p.Ref() || o.wanted(again.Ref()) == "" {
		t.Errorf("a second pause is shown as %q: %s", again.Ref(), o.wanted(again.Ref()))
	}
}
