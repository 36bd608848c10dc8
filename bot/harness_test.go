package bot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/bottest"
	"countersign/bot/transport"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
)

// harness is a workspace with people, and the bot with the real workflow and a real store. Only the agent is a stub.
// For a message "call TOOL {…}", the stub requests the calls, and answers with their results.
type harness struct {
	t        testing.TB
	slack    *workspace.Server
	url      string
	path     string
	policy   *approvers.Policy
	inForce  atomic.Pointer[approvers.Policy] // the policy that the bot uses
	tools    testTools
	store    store.Store
	workflow *workflow.Workflow
	bot      *Bot
	log      *logBuffer
	stop     func()
	address  string // address of the bot's HTTP listener
	receipts transport.ReceiptClock
	mu       sync.Mutex
	ran      []string // executions that were run, with their arguments
	hold     chan struct{}
	pause    chan struct{} // the stub of the agent waits until this channel is closed
	answer   string        // replaces the results in the agent's answer
	asks     string        // arguments of the refund that the stub requests if a message says so
	http     *http.Client
	ackWait  time.Duration                 // how long Slack waits for an acknowledgement
	wrap     func(store.Store) store.Store // wraps the store; may be nil
	limited  bool                          // the bot observes Slack's rate limits
	overHTTP bool                          // Slack delivers over HTTP, and not through sockets
	once     bool                          // transactions run once, as in production; otherwise twice, as a rehearsal
}

// sockets is how many connections Socket Mode keeps (docs/transports.md).
const sockets = 2

// receive gives the bot a delivery that arrives now, and returns the bot's answer.
func (h *harness) receive(kind store.InboxKind, payload []byte) (answer any, err error) {
	return h.bot.Receiver.Receive(context.Background(), transport.Delivery{Kind: kind, Payload: payload, ReceivedAt: h.receipts.Next(time.Now())})
}

type testTools map[string]workflow.Tool

func (t testTools) Tool(name string) (workflow.Tool, bool) {
	tool, ok := t[name]
	return tool, ok
}

func (t testTools) Fingerprint() string { return "" }

func (t testTools) Drift() []workflow.Drift { return nil }

func newHarness(t testing.TB, adjust ...func(*harness)) *harness {
	t.Helper()
	h := &harness{t: t, ackWait: 10 * time.Second, overHTTP: os.Getenv("COUNTERSIGN_TRANSPORT") == "http", policy: bottest.Policy(), path: filepath.Join(t.TempDir(), "countersign.db"), log: new(logBuffer)}
	h.tools = testTools{
		"search_orders":           bottest.Tool("search_orders", `{"type":"object"}`, approvers.ReadOnly),
		"update_shipping_address": bottest.Tool("update_shipping_address", `{"type":"object"}`, approvers.Idempotent),
		"issue_refund":            bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected),
		"cancel_account":          bottest.Tool("cancel_account", `{"type":"object"}`, approvers.Unprotected),
		"mystery":                 bottest.Tool("mystery", `{"type":"object"}`, approvers.Unprotected),
	}
	for _, f := range adjust {
		f(h)
	}
	srv, err := workspace.New(workspace.Config{Seed: workspace.DemoSeed(), AckTimeout: h.ackWait, TriggerTTL: testkit.Patience})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	h.slack, h.url = srv, web.URL
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

// inBothWays runs a test twice: through Socket Mode and over HTTP. COUNTERSIGN_TRANSPORT=http runs every test of the
// package over HTTP.
func inBothWays(t *testing.T, journey func(*testing.T, *harness), adjust ...func(*harness)) {
	t.Helper()
	for name, overHTTP := range map[string]bool{"socket": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			journey(t, newHarness(t, append(slices.Clone(adjust), func(h *harness) { h.overHTTP = overHTTP })...))
		})
	}
}

// setPolicy replaces the policy while the bot runs.
func (h *harness) setPolicy(p *approvers.Policy) {
	h.policy = p
	h.inForce.Store(p)
}

// start starts the bot on the current store, and waits until it is connected.
func (h *harness) start() {
	h.t.Helper()
	h.until("no sockets of an earlier run", func() bool { return h.slack.Sockets() == 0 })
	s, err := bolt.Open(h.path, bolt.Options{Rehearse: !h.once})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = s
	behind := store.Store(s)
	if h.wrap != nil {
		behind = h.wrap(s)
	}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.inForce.Store(h.policy)
	h.workflow = workflow.New(workflow.Config{Store: behind, Policy: h.inForce.Load, Tools: h.tools, Log: log})
	config := Config{BotToken: workspace.DemoBotToken, AppToken: workspace.DemoAppToken, APIURL: h.url + "/api/", Workflow: Use(h.workflow), Tools: h.tools, Log: log, HTTP: h.http, Unlimited: !h.limited}
	if h.overHTTP {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			h.t.Fatal(err)
		}
		h.address = "http://" + l.Addr().String()
		config.SigningSecret, config.Listen = workspace.DemoSigningSecret, func() (net.Listener, error) { return l, nil }
	}
	h.bot = New(config)
	h.workflow.GrantOwner = h.bot.Identities.GrantOwner
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.bot.Run(ctx) })
	answer := jobs.Worker{Handle: h.bot.Display.Show, Concurrency: 4, Worth: h.bot.Worth}
	show := answer
	show.Yields = true
	g.Go(func() error {
		return h.workflow.Work(ctx, map[store.TimerKind]jobs.Worker{
			store.TimerInbox:     {Handle: h.bot.Inbox.Handle, Concurrency: 8},
			store.TimerShowFirst: show, store.TimerShow: show, store.TimerShowAnswer: answer, store.TimerShowLast: show,
			store.TimerThink: {Handle: h.think, Concurrency: 4}, store.TimerRun: {Handle: h.run, Concurrency: 4},
			store.TimerLeftover:     {Handle: h.bot.Leftovers.Delete, Concurrency: 1},
			store.TimerCatchUp:      {Handle: h.bot.Gaps.CatchUp, Concurrency: 1},
			store.TimerAvailability: {Handle: h.bot.Availability.Resolve, Concurrency: 2}, store.TimerRemind: {Handle: h.bot.Availability.Remind, Concurrency: 2}, store.TimerAway: {Handle: h.bot.Availability.AbsenceChanged, Concurrency: 1},
		})
	})
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := g.Wait(); err != nil {
			h.t.Errorf("the bot stopped with: %v", err)
		}
		if err := s.Check(context.Background()); err != nil {
			h.t.Errorf("the store is not sound: %v", err)
		}
		if err := s.Close(); err != nil {
			h.t.Error(err)
		}
		if h.t.Failed() {
			h.t.Log(h.log.String())
		}
	})
	if !h.overHTTP {
		h.until("two sockets", func() bool { return h.slack.Sockets() == sockets })
	} else if err := h.slack.SetRequestURLs(ctx, delivery.URLsAt(h.address+"/slack/")); err != nil {
		h.t.Fatal(err)
	}
}

// think is the stub of the agent.
func (h *harness) think(ctx context.Context, t store.Timer) error {
	b, err := h.workflow.Turns.Begin(ctx, t.Ref)
	if err != nil {
		return err
	}
	if h.pause != nil {
		<-h.pause
	}
	var results []string
	for _, c := range b.Calls[b.Turn.ID] {
		results = append(results, string(c.Outcome)+" "+c.Result)
	}
	last := b.Messages[len(b.Messages)-1].Text
	if h.mu.Lock(); last == "ask" {
		last = "call issue_refund " + h.asks
	}
	h.mu.Unlock()
	if b.Turn.Step > 0 || !strings.Contains(last, "call ") {
		text := "results: " + strings.Join(results, " | ")
		if h.answer != "" {
			text = h.answer
		}
		return h.workflow.Turns.Answer(ctx, b.Turn.ID, b.Turn.Step, text, nil, 1)
	}
	p := workflow.Proposal{Turn: b.Turn.ID, Step: b.Turn.Step, Authors: b.Turn.Requesters}
	for i, line := range strings.Split(last, "\n") {
		if rest, ok := strings.CutPrefix(line, "call "); ok {
			name, args, _ := strings.Cut(rest, " ")
			p.Calls = append(p.Calls, workflow.ModelCall{ID: fmt.Sprint("m", i), Tool: name, Args: args})
		}
	}
	return h.workflow.Turns.Propose(ctx, p)
}

// run claims an execution and pretends to run it.
func (h *harness) run(ctx context.Context, t store.Timer) error {
	e, run, err := h.workflow.Runs.Claim(ctx, t.Ref)
	if err != nil || !run {
		return err
	}
	h.mu.Lock()
	h.ran = append(h.ran, e.Tool+" "+string(e.Args))
	hold := h.hold
	h.mu.Unlock()
	if hold != nil {
		<-hold
		return errors.New("the process went away")
	}
	return h.workflow.Runs.Finish(ctx, e.ID, true, `{"ok":true}`)
}

func (h *harness) runs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.ran...)
}

// The method "until" waits for a condition. The longer the wait, the rarer the checks: a check costs more than the
// bot's own work meanwhile.
func (h *harness) until(what string, is func() bool) {
	h.t.Helper()
	began := time.Now()
	for !is() {
		waited := time.Since(began)
		if waited > testkit.Patience {
			h.t.Fatalf("timed out: %s", what)
		}
		time.Sleep(min(max(waited/4, 2*time.Millisecond), 100*time.Millisecond))
	}
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The function "unhandled" lists the timers of the deliveries that are not handled yet.
func unhandled(t testing.TB, h *harness) []store.Timer {
	t.Helper()
	var due []store.Timer
	err := h.store.View(context.Background(), func(r store.Reader) error {
		var err error
		due, err = r.Timers(store.TimerInbox, 100)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// expire makes a request's deadline pass.
func (h *harness) expire(request string) {
	h.t.Helper()
	err := h.store.Update(context.Background(), func(tx store.Tx) error {
		r, err := tx.Request(request)
		if err != nil {
			return err
		}
		r.ExpiresAt = time.Now()
		return errors.Join(tx.PutRequest(r), tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: r.ID, Due: r.ExpiresAt}))
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.workflow.Wake()
}

// lose makes the deadlines of all running executions due, as after a long downtime.
func (h *harness) lose() {
	h.t.Helper()
	s, err := bolt.Open(h.path, bolt.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	err = s.Update(context.Background(), func(tx store.Tx) error {
		timers, err := tx.Timers(store.TimerRun, 10)
		if err != nil {
			return err
		}
		for _, t := range timers {
			t.Due = time.Now().Add(-time.Second)
			if err := tx.SetTimer(t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}
