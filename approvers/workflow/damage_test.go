package workflow_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
)

// wreckage is a store with requests in every state. For each request, wreckage has the people who decide it later, and
// how many approvals it needs.
type wreckage struct {
	file     []byte
	requests []wreckedRequest
	of       map[string]int  // by id of a stored row: the index of the request that the row belongs to
	ran      map[string]bool // executions whose tools had acted before the damage
	callers  []string        // requests of the client ci
	key      approvers.SealKey
}

type wreckedRequest struct {
	id, call, digest string
	people           []approvers.Identity // the people who approve the request after the damage
	needs            int                  // how many approvals are still missing
}

// wreckable creates the store in a synctest bubble. The clock of the bubble starts at the same time as the clock of
// each trial.
func wreckable(t *testing.T) (w wreckage) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	w.of, w.ran = map[string]int{}, map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		s, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := &harness{t: t, path: path, store: s, tools: newToolbox(), clock: &clock{now: time.Now()}}
		h.policy.Store(policy("policy-1"))
		h.Workflow = workflow.New(workflow.Config{Store: s, Policy: h.policy.Load, Tools: h.tools, Log: slog.New(slog.DiscardHandler), Now: h.clock.Now, GrantOwner: h.giver})
		ask := func(spec string) approvers.Request {
			h.clock.pass(time.Millisecond)
			c := h.propose(h.sayIn(h.id("thread"), alice, strings.Repeat("please ", 30)).Turn, spec)[0]
			return h.request(c.Request)
		}
		note := func(r approvers.Request, needs int, people ...approvers.Identity) {
			n := len(w.requests)
			w.requests = append(w.requests, wreckedRequest{r.ID, r.Call, h.request(r.ID).Digest, people, needs})
			for _, id := range []string{r.ID, r.Call, r.Turn, r.Conversation, r.Execution} {
				w.of[id] = n
			}
			for _, ref := range []string{r.ID, r.Turn, r.Execution} {
				for _, s := range h.messagesOf(ref) {
					w.of[s.ID] = n
				}
			}
		}
		for range 2 {
			note(ask(`issue_refund {"amount":900}`), 3, lead, fin1) // one approval is missing
			note(ask(`issue_refund {"amount":950}`), 3, lead, fin1, fin2)
			second := ask(`issue_refund {"amount":700}`)
			h.approve(lead, second.ID)
			note(second, 2, fin1, fin2)
			third := ask(`issue_refund {"amount":800}`)
			h.approve(lead, third.ID)
			h.approve(fin1, third.ID)
			note(third, 1) // one approval is missing, and nobody gives it later
			note(ask(`issue_refund {"amount":40}`), 1, lead)
			note(ask(`apply_discount {"order_id":"7"}`), 1, support)
			approved := ask(`issue_refund {"amount":41}`)
			h.approve(lead, approved.ID)
			note(approved, 0)
			begun := ask(`issue_refund {"amount":42}`)
			h.approve(lead, begun.ID)
			if _, run, err := h.Runs.Claim(h.ctx(), begun.Execution); err != nil || !run {
				t.Fatal(run, err)
			}
			w.ran[begun.Execution] = true
			note(begun, 0)
			done := ask(`issue_refund {"amount":43}`)
			h.approve(lead, done.ID)
			h.run(done.Execution, "done")
			w.ran[done.Execution] = true
			note(done, 0)
		}
		h.policy.Store(policy("policy-1", withClients))
		waits, may := h.callerAsks(callerCall("waits", `issue_refund {"amount": 5}`)), h.callerAsks(callerCall("may run", `search_orders {}`))
		runs := h.callerAsks(callerCall("runs", `search_orders {"q": 1}`))
		h.ok(h.claims(runs))
		w.callers = []string{waits, may, runs}
		w.ran[h.callerView("ci", runs).Execution.ID] = true
		text, err := approvers.NewSealKey(rand.Reader, "damage")
		h.ok(err)
		w.key, err = approvers.ParseSealKey(text)
		h.ok(err)
		_, err = h.History.Seal(h.ctx(), w.key)
		h.ok(err)
		h.ok(s.Check(h.ctx()))
		h.ok(s.Close())
	})
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for end := len(file); end > 4096; end -= 4096 { // the pages after the last one with content were never written
		if slices.ContainsFunc(file[end-4096:end], func(b byte) bool { return b != 0 }) {
			w.file = file[:end]
			break
		}
	}
	return w
}

// trial is the result of running the bot with one store.
type trial struct {
	refused  error
	told     []store.Damage // all damage that was reported while it ran
	errors   []string       // log lines at the level error
	outcomes []string       // the outcome of each request
	runs     map[string]int // how often the tools ran, by request
	agreed   map[string]int // number of accepted decisions, by request
	stopped  error
	claims   int
}

// mostClaims is a limit that the number of claims can't reach, even with all repeated runs.
const mostClaims = 2000

// errorLog keeps log lines at the level error.
type errorLog struct {
	slog.Handler
	mu    *sync.Mutex
	lines *[]string
}

func (h errorLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (h errorLog) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h errorLog) WithGroup(string) slog.Handler                { return h }
func (h errorLog) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.lines = append(*h.lines, line)
	return nil
}

// w.try runs the bot with a store. The people in w.requests give the approvals that are still missing.
func (w wreckage) try(t *testing.T, file []byte) (out trial) {
	t.Helper()
	dir := quickDir(t)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "store.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out.runs, out.agreed = map[string]int{}, map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		s, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			out.refused = err
			return
		}
		defer func() { out.told = append(out.told, s.Damage()...); s.Close() }()
		var mu sync.Mutex
		s.OnDamage(func(x store.Damage) {
			mu.Lock()
			defer mu.Unlock()
			out.told = append(out.told, x)
		})
		h := &harness{t: t, path: path, store: s, tools: newToolbox(), clock: &clock{}}
		time.Sleep(time.Second) // so that the time is later than every time in the store
		h.policy.Store(policy("policy-1"))
		h.Workflow = workflow.New(workflow.Config{
			Store: s, Policy: h.policy.Load, Tools: h.tools, Log: slog.New(errorLog{mu: &mu, lines: &out.errors}), GrantOwner: h.giver,
		})
		if err := h.Runs.Recover(h.ctx(), store.AllShares); err != nil {
			mu.Lock()
			out.errors = append(out.errors, "recover: "+err.Error())
			mu.Unlock()
			if !errors.Is(err, store.ErrDamaged) {
				out.stopped = err
			}
			return
		}
		ctx, cancel := context.WithCancel(h.ctx())
		done := make(chan error, 1)
		workers := map[store.TimerKind]jobs.Worker{
			store.TimerThink: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
				b, err := h.Turns.Begin(ctx, timer.Ref)
				if err == nil {
					err = h.Turns.Answer(ctx, timer.Ref, b.Turn.Step, "Done.", nil, 1)
				}
				return err
			}},
			store.TimerRun: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
				e, run, err := h.Runs.Claim(ctx, timer.Ref)
				mu.Lock()
				out.claims++
				busy := out.claims > mostClaims
				if busy && out.stopped == nil {
					out.stopped = fmt.Errorf("the workflow claims runs over and over; the last claim returned %t, %w: %s %s", run, err, e.ID, e.State)
				}
				mu.Unlock()
				if busy {
					<-ctx.Done()
				}
				if err != nil || !run {
					return err
				}
				mu.Lock()
				out.runs[e.Request]++
				if w.ran[e.ID] {
					// The tool acted before the damage, so this run is a repetition. The function judge reports any
					// count above 1.
					out.runs[e.Request] += 100
				}
				mu.Unlock()
				return h.Runs.Finish(ctx, e.ID, true, "done")
			}},
			store.TimerInbox: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error { return h.Intake.Done(ctx, timer.Ref, "") }},
		}
		for _, kind := range store.ShowTimers {
			workers[kind] = jobs.Worker{Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
				vm, err := h.Views.Message(ctx, timer.Ref)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				if err != nil {
					return h.Outbox.Unreachable(ctx, timer.Ref, "what it shows is gone", "")
				}
				if role, ok := strings.CutPrefix(vm.Message.To, "role:"); ok {
					r, _ := vm.Policy.Role(role)
					return h.Outbox.Expand(ctx, timer.Ref, persons(r.Members[0].Value))
				}
				vm.Message.Channel, vm.Message.TS = "C", vm.Message.ID
				return h.Outbox.Delivered(ctx, vm.Message, workflow.SentMessage{Body: []byte("{}")})
			}}
		}
		go func() { done <- h.Work(ctx, workers) }()
		time.Sleep(3 * time.Second)
		for _, r := range w.requests {
			for _, who := range r.people {
				time.Sleep(time.Millisecond)
				c := workflow.Click{
					At: time.Now(), Who: who, Request: r.id, Kind: approvers.Approve, Digest: r.digest, Whole: true, Typed: true, Rendering: "r",
				}
				_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: h.id("trial"), Kind: store.InboxCommand, ReceivedAt: c.At, Payload: []byte("{}")}, "")
				if err == nil {
					_, err = h.Requests.Decide(h.ctx(), c)
				}
				var denied *approvers.Denied
				switch {
				case err == nil:
					out.agreed[r.id]++
				case errors.As(err, &denied), errors.Is(err, store.ErrDamaged), errors.Is(err, workflow.ErrHandled):
				default:
					out.stopped = errors.Join(out.stopped, err)
				}
			}
		}
		time.Sleep(20 * time.Second)
		_, sealed := h.History.Seal(h.ctx(), w.key)
		if sealed != nil {
			mu.Lock()
			out.errors = append(out.errors, "seal: "+sealed.Error())
			mu.Unlock()
		}
		cancel()
		out.stopped = errors.Join(out.stopped, <-done)
		for _, r := range w.requests {
			out.outcomes = append(out.outcomes, outcome(s, r))
		}
	})
	return out
}

// outcome returns how a request, its call, its run and its turn ended.
func outcome(s store.Store, r wreckedRequest) (text string) {
	err := s.View(context.Background(), func(x store.Reader) error {
		req, err := x.Request(r.id)
		if err != nil {
			return err
		}
		call, err := x.Call(r.call)
		if err != nil {
			return err
		}
		e, err := x.Execution(req.Execution)
		if err != nil {
			return err
		}
		turn, err := x.Turn(call.Turn)
		if err != nil {
			return err
		}
		messages, err := x.Messages(call.Conversation, 0)
		if err != nil {
			return err
		}
		chain, err := x.Audit(r.id)
		if err != nil {
			return err
		}
		text = fmt.Sprintf("%s %d %s | %s %s | %s %s %s | %s", req.State, len(req.Decisions), req.Reason, call.Outcome, call.Result, e.State, e.Args, e.Result, turn.State)
		for _, m := range messages {
			text += fmt.Sprintf(" | %s %s %d", m.Author, m.State, len(m.Text))
		}
		for _, a := range chain {
			if a.Kind != approvers.AuditShown {
				text += " " + string(a.Kind)
			}
		}
		return nil
	})
	if err != nil {
		return "unreadable: " + err.Error()
	}
	return text
}

// The test takes a store with requests in every state, damages one place of the store, and runs the bot. The bot must
// not panic. If the result differs from the result with the undamaged store, the bot must have reported damage. The bot
// must run no tool without permission, and no call twice. Requests that the damage does not affect must end in the same
// way as with the undamaged store. COUNTERSIGN_DAMAGE="1000 200" selects the long form of the test. A third number is
// the seed.
func TestDamageCampaign(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	short := 1
	if testkit.CI() {
		short = 2
	}
	flips, pages, seed := testkit.Damage(t, 6*short, 3*short)
	w := wreckable(t)
	want := w.try(t, w.file)
	if want.refused != nil || want.stopped != nil || len(want.told) > 0 || len(want.errors) > 0 {
		t.Fatalf("the undamaged store: %v", want)
	}
	for i, text := range want.outcomes {
		t.Logf("%d: %.90s", i, text)
	}
	random := mrand.New(mrand.NewPCG(seed, 27))
	var count struct{ refused, told, same, closed int }
	for i := range flips + pages {
		broken, what := wrecked(w.file, random, i >= flips)
		got := w.try(t, broken)
		switch {
		case got.refused != nil:
			count.refused++
			if !errors.Is(got.refused, store.ErrForeign) && !errors.Is(got.refused, store.ErrNewer) {
				t.Errorf("%s: refused with %v", what, got.refused)
			}
			continue
		case got.stopped != nil:
			t.Errorf("%s: it stopped with %v\n%s", what, got.stopped, strings.Join(got.errors, "\n"))
		}
		w.judge(t, what, want, got)
		switch {
		case !slices.Equal(want.outcomes, got.outcomes):
			count.closed++
		case len(got.told) > 0:
			count.told++
		default:
			count.same++
		}
	}
	t.Logf("flips=%d pages=%d seed=%d: the_same=%d told_and_the_same=%d told_and_closed=%d refused=%d, file of %d pages", flips, pages, seed, count.same, count.told, count.closed,
		count.refused, len(w.file)/4096)
}

// judge compares the trial of a damaged store with the trial of the undamaged store.
func (w wreckage) judge(t *testing.T, what string, want, got trial) {
	t.Helper()
	var open []string // the damage that was not repaired
	touched := map[int]bool{}
	all := false
	for _, x := range got.told {
		if x.Mended {
			continue
		}
		open = append(open, x.String())
		one := false
		for id, n := range w.of {
			if strings.Contains(x.Key, id) || x.ID == id {
				touched[n], one = true, true
			}
		}
		all = all || !one // the damage belongs to no single request
	}
	for i, r := range w.requests {
		if got.runs[r.id] > 1 {
			t.Errorf("%s: request %d ran twice", what, i)
		}
		if got.runs[r.id] > 0 && got.agreed[r.id] < r.needs {
			t.Errorf("%s: request %d ran after %d of %d decisions", what, i, got.agreed[r.id], r.needs)
		}
		if i >= len(got.outcomes) {
			if len(got.errors) == 0 {
				t.Errorf("%s: it did not start, and logged no error", what)
			}
			return
		}
		if got.outcomes[i] == want.outcomes[i] {
			continue
		}
		if len(open) == 0 {
			t.Errorf("%s: request %d silently became\n%s\ninstead of\n%s\n%v", what, i, got.outcomes[i], want.outcomes[i], got.told)
		} else if !all && !touched[i] {
			t.Errorf("%s: request %d is not touched by %s, and became\n%s\ninstead of\n%s\n%s", what, i, open, got.outcomes[i], want.outcomes[i], strings.Join(got.errors, "\n"))
		}
	}
}

// wrecked returns a damaged copy of a file, and a description of the damage.
func wrecked(whole []byte, random *mrand.Rand, page bool) (broken []byte, what string) {
	broken = slices.Clone(whole)
	if !page {
		at, mask := random.IntN(len(broken)), byte(1)<<random.IntN(8)
		broken[at] ^= mask
		return broken, fmt.Sprintf("byte %d of page %d ^ %#x", at%4096, at/4096, mask)
	}
	n := random.IntN(len(broken) / 4096)
	p := broken[n*4096 : (n+1)*4096]
	other := whole[random.IntN(len(broken)/4096)*4096:][:4096]
	switch random.IntN(3) {
	case 0:
		clear(p)
		what = "all zero"
	case 1:
		copy(p[2048:], other[2048:])
		what = "half of another"
	case 2:
		for i := 2048; i < 4096; i++ {
			p[i] = byte(random.Uint32())
		}
		what = "half garbage"
	}
	return broken, fmt.Sprintf("page %d: %s", n, what)
}
