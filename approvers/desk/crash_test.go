package desk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// stopped is what a process that is killed in a transaction leaves behind: nothing of it, or all of it and nobody who knows.
type stopped struct{}

// mortal is a store whose process is killed in a transaction.
type mortal struct {
	store.Store
	after func() (before, behind bool) // asked in each transaction: is the process killed before the commit, or behind it?
}

func (m *mortal) Update(ctx context.Context, fn func(store.Tx) error) error {
	before, behind := m.after()
	if before {
		panic(stopped{})
	}
	err := m.Store.Update(ctx, fn)
	if behind {
		panic(stopped{})
	}
	return err
}

// outside is the world around the bot, which no crash of the bot resets: Slack, the people, and the shop that tools act on.
type outside struct {
	*office
	kill       func() (before, behind bool)
	deliveries []*delivery
	posts      map[string]posted // by surface
	effects    map[string]int    // by execution: how often its tool was called
	acted      map[string]bool   // what people did already
	crashes    int
	script     []string // what the model asks for in its first step
	silent     bool     // nobody decides anything
	then       []string // and in its second, if anything
	allow      int      // how many more calls the first approver allows
}

type posted struct {
	kind  store.SurfaceKind
	ref   string
	posts int
	shown desk.Posted
}

// delivery is what Slack sends until it is told that it was received.
type delivery struct {
	id       string
	received bool
	act      act
}

// act is what a person does: the payload of a delivery.
type act struct {
	Who     approvers.Identity
	Say     string
	Click   approvers.DecisionKind
	Report  desk.Report
	Away    time.Duration // somebody says that they are away for so long, and StandIn does so for them
	StandIn approvers.Identity
	Allow   int
	Ref     string
	Digest  string
}

func (w *outside) slack(a act) {
	w.deliveries = append(w.deliveries, &delivery{id: w.id("Ev"), act: a})
}

// life runs the bot until the conversation is answered, with a new process after each crash.
func (w *outside) life() {
	w.t.Helper()
	for range 1000 {
		if w.alive() {
			return
		}
		w.crashes++
		w.ok(w.store.Close())
		w.open(func(s store.Store) store.Store { return &mortal{Store: s, after: w.kill} })
		w.turns = w.heard()
		w.books() // between any two transactions
		if w.t.Failed() {
			w.t.Fatalf("after crash %d", w.crashes)
		}
		w.clock.pass(time.Second)
	}
	w.t.Fatal("it never comes to an end")
}

// alive is one process. It reports false if the process was killed.
func (w *outside) alive() (finished bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stopped); !ok {
				panic(p)
			}
			finished = false
		}
	}()
	w.ok(w.Recover(w.ctx()))
	for range 10_000 {
		if !w.step() {
			return true
		}
	}
	w.t.Fatal("there is always something to do")
	return true
}

// step does the next thing that is to be done, if there is any.
func (w *outside) step() bool {
	for _, d := range w.deliveries {
		if !d.received {
			payload, err := json.Marshal(d.act)
			w.ok(err)
			w.clock.pass(time.Millisecond)
			_, err = w.Receive(w.ctx(), store.Inbox{ID: d.id, Kind: store.InboxEvent, ReceivedAt: w.clock.Now(), Payload: payload}, "")
			w.ok(err)
			d.received = true
			return true
		}
	}
	handlers := []struct {
		kind   store.TimerKind
		handle desk.Handler
	}{
		{store.TimerInbox, w.handle}, {store.TimerThink, w.think}, {store.TimerRun, w.runTool}, {store.TimerShow, w.showAt},
		{store.TimerExpire, w.Expire}, {store.TimerEscalate, w.Escalate}, {store.TimerLeave, w.LeaveUnknown},
		{store.TimerMuster, w.muster}, {store.TimerRemind, w.remind}, {store.TimerAway, w.depart},
		{store.TimerGrant, w.LapseGrant},
	}
	for _, h := range handlers {
		due := view(w.office, func(r store.Reader) ([]store.Timer, error) { return r.DueTimers(h.kind, w.clock.Now(), 1) })
		if len(due) > 0 {
			w.clock.pass(time.Millisecond)
			if err := h.handle(w.ctx(), due[0]); err != nil && !errors.Is(err, desk.ErrNotDue) {
				w.t.Fatalf("%s: %v", h.kind, err)
			}
			return true
		}
	}
	return w.people()
}

func (w *outside) handle(ctx context.Context, t store.Timer) error {
	row, err := w.Inbox(ctx, t.Ref)
	w.ok(err)
	var a act
	w.ok(json.Unmarshal(row.Payload, &a))
	c := desk.Click{Inbox: row.ID, At: row.ReceivedAt, Who: a.Who, Request: a.Ref, Execution: a.Ref, Kind: a.Click, Reason: "because", Digest: a.Digest, Whole: true, Typed: true}
	var denied *approvers.Denied
	switch {
	case a.Say != "":
		_, err = w.Hear(ctx, desk.Utterance{
			Inbox: row.ID, At: row.ReceivedAt, Team: "T0001", Thread: "100.1", TS: row.ID, Who: a.Who, Text: a.Say, Start: true,
			Place: approvers.Place{Channel: "C0001", Name: "support"},
		})
	case a.Away > 0:
		_, err = w.SetAway(ctx, desk.Departure{Inbox: row.ID, Who: a.Who, Until: row.ReceivedAt.Add(a.Away), Delegate: &a.StandIn})
	case a.Allow > 0:
		_, err = w.GrantMore(ctx, c, approvers.Allowance{Uses: a.Allow, Within: time.Hour})
	case a.Report != "":
		err = w.Report(ctx, c, a.Report)
	default:
		_, err = w.Decide(ctx, c)
	}
	if errors.As(err, &denied) {
		return nil // the person is told
	}
	return err
}

// think is the model: it asks for the script's calls, and then answers.
func (w *outside) think(ctx context.Context, t store.Timer) error {
	b, err := w.Begin(ctx, t.Ref)
	if err != nil {
		return err
	}
	if b.Turn.Step == 0 {
		return w.Propose(ctx, desk.Proposal{Turn: t.Ref, Step: 0, Text: "Let me see.", Calls: calls(w.script...), Authors: []approvers.PersonID{alice.ID}})
	}
	if b.Turn.Step == 1 && len(w.then) > 0 {
		return w.Propose(ctx, desk.Proposal{Turn: t.Ref, Step: 1, Text: "And now the rest.", Calls: calls(w.then...), Authors: []approvers.PersonID{alice.ID}})
	}
	return w.Answer(ctx, t.Ref, b.Turn.Step, "Done.", 1)
}

func (w *outside) runTool(ctx context.Context, t store.Timer) error {
	e, run, err := w.Claim(ctx, t.Ref)
	if err != nil || !run {
		return err
	}
	w.effects[e.ID]++
	return w.Finish(ctx, e.ID, true, "done")
}

func (w *outside) showAt(ctx context.Context, t store.Timer) error {
	s, err := w.See(ctx, t.Ref)
	if err != nil {
		return err
	}
	if role, ok := strings.CutPrefix(s.Surface.To, "role:"); ok {
		r, _ := s.Policy.Role(role)
		return w.Expand(ctx, t.Ref, []string{r.Members[0].Value})
	}
	p := w.posts[s.Surface.ID] // a lost post is found again by its surface's id
	p.kind, p.ref, p.posts = s.Surface.Kind, s.Surface.Ref, p.posts+1
	p.shown = desk.Posted{Body: fmt.Appendf(nil, `{"n":%d}`, p.posts)}
	if s.Execution != nil {
		p.shown.Shows = []store.Shown{{Request: s.Execution.Request, Digest: s.Execution.Digest, Whole: true}}
	}
	w.posts[s.Surface.ID] = p
	s.Surface.Channel, s.Surface.TS = "C", s.Surface.ID
	return w.Shown(ctx, s.Surface, p.shown)
}

// people look at what is shown and act on it, each once.
func (w *outside) people() bool {
	if w.silent {
		return false
	}
	for id, p := range w.posts {
		if w.acted[id] || (p.kind != store.SurfaceCard && p.kind != store.SurfaceUnknown) {
			continue
		}
		w.acted[id] = true
		if p.kind == store.SurfaceUnknown {
			what := desk.DidNot
			if w.effects[p.ref] > 0 { // somebody looks at the shop
				what = desk.Happened
			}
			w.slack(act{Who: alice, Report: what, Ref: p.ref})
			return true
		}
		switch r := w.request(p.ref); r.Tool {
		case "cancel_account":
			w.slack(act{Who: fin1, Click: approvers.Reject, Ref: r.ID, Digest: p.shown.Shows[0].Digest})
		default:
			w.slack(act{Who: lead, Click: approvers.Approve, Ref: r.ID, Digest: p.shown.Shows[0].Digest, Allow: w.allow})
			w.allow = 0
		}
		return true
	}
	return false
}

func newOutside(t testing.TB, kill func() (before, behind bool)) *outside {
	w := &outside{
		office: newOffice(t), kill: kill, posts: map[string]posted{}, effects: map[string]int{}, acted: map[string]bool{},
		script: []string{`search_orders {}`, `issue_refund {"amount":49.99}`, `update_address {}`, `cancel_account {}`, `issue_refund {"amount":`},
	}
	w.ok(w.store.Close())
	w.open(func(s store.Store) store.Store { return &mortal{Store: s, after: w.kill} })
	w.slack(act{Who: alice, Say: "do it all"})
	return w
}

// heard lists the turn of each message, from the store: what a killed process knew is gone.
func (w *outside) heard() []string {
	w.t.Helper()
	return view(w.office, func(r store.Reader) (turns []string, err error) {
		conv, err := r.ConversationAt("T0001/C0001/100.1")
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		messages, err := r.Messages(conv.ID, 0)
		for _, m := range messages {
			turns = append(turns, m.Turn)
		}
		return turns, err
	})
}

// check holds the end against what must have come of it, whatever happened on the way.
func (w *outside) check() {
	t := w.t
	t.Helper()
	w.turns = w.heard()
	if len(w.turns) != 3 {
		t.Fatalf("%d messages; want the question, the step and the answer", len(w.turns))
	}
	turn := w.turns[0]
	w.wantTurn(turn, approvers.TurnAnswered)
	cs := w.callsOf(turn)
	if len(cs) != len(w.script) {
		t.Fatalf("%d calls; want %d", len(cs), len(w.script))
	}
	for _, c := range cs {
		var e approvers.Execution
		if c.Execution != "" {
			e = w.execution(c.Execution)
		}
		n := w.effects[c.Execution]
		switch c.Tool {
		case "cancel_account":
			if c.Outcome != approvers.OutcomeRejected || n != 0 {
				t.Errorf("%s: %s, called %d times; want rejected", c.Tool, c.Outcome, n)
			}
		case "issue_refund":
			if c.Execution == "" {
				if c.Outcome != approvers.OutcomeError {
					t.Errorf("a broken call: %s", c.Outcome)
				}
				continue
			}
			if n > 1 || (n == 1) != (e.State == approvers.ExecutionSucceeded) || (n == 1) != (c.Outcome == approvers.OutcomeExecuted) {
				t.Errorf("%s was called %d times, is %s, and the model was told %s", c.Tool, n, e.State, c.Outcome)
			}
			if n == 0 && e.ReportedBy == "" {
				t.Errorf("%s never ran, and nobody says why: %s", c.Tool, e.State)
			}
			if r := w.request(c.Request); len(r.Decisions) != 1 || r.Decisions[0].By != lead.ID || r.State != approvers.Consumed {
				t.Errorf("%s with %d decisions", r.State, len(r.Decisions))
			}
		default:
			if n < 1 || e.State != approvers.ExecutionSucceeded {
				t.Errorf("%s was called %d times and is %s", c.Tool, n, e.State)
			}
		}
	}
	answers := 0
	for _, p := range w.posts {
		answers += b2i(p.kind == store.SurfaceAnswer)
	}
	if answers != 1 {
		t.Errorf("%d answers are shown", answers)
	}
	if n := len(w.timers(store.TimerShow)) + len(w.timers(store.TimerInbox)) + len(w.timers(store.TimerRun)); n != 0 {
		t.Errorf("%d things are left to do", n)
	}
}

// TestKilledInEveryTransaction kills the process in each transaction of a whole conversation, once before its commit
// and once behind it, and has a new process go on.
func TestKilledInEveryTransaction(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 1; ; n += step {
		crashed := 0
		for _, behind := range []bool{false, true} {
			count := 0
			w := newOutside(t, func() (bool, bool) {
				count++
				return count == n && !behind, count == n && behind
			})
			w.life()
			w.check()
			crashed += w.crashes
			w.books()
			if t.Failed() {
				t.Fatalf("killed in transaction %d, behind the commit: %t", n, behind)
			}
		}
		if crashed == 0 {
			t.Logf("%d transactions", n-1)
			return
		}
	}
}

// TestKilledOverAndOver kills each process after a few transactions.
func TestKilledOverAndOver(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, seed))
		w := newOutside(t, func() (bool, bool) { return random.IntN(8) == 0, random.IntN(8) == 0 })
		w.life()
		w.check()
		if w.crashes < 3 {
			t.Errorf("seed %d: only %d crashes", seed, w.crashes)
		}
		if t.Failed() {
			t.Fatalf("seed %d, after %d crashes", seed, w.crashes)
		}
	}
}
