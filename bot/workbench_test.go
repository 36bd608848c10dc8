package bot

import (
	"bytes"
	"context"
	"encoding/json"
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
	"countersign/approvers/desk"
	"countersign/internal/workspace"
	"countersign/store"
	"countersign/store/bolt"
)

// workbench is a workspace with people in it, and the bot with the real desk and a real store. Only the agent is a stand-in: it
// asks for the calls that a message spells out ("call TOOL {…}"), and answers with their results.
type workbench struct {
	t        testing.TB
	slack    *workspace.Server
	url      string
	path     string
	policy   *approvers.Policy
	inForce  atomic.Pointer[approvers.Policy] // the same, for the bot
	tools    testTools
	store    store.Store
	desk     *desk.Desk
	bot      *Bot
	log      *logBuffer
	stop     func()
	address  string // where it takes requests over HTTP
	mu       sync.Mutex
	ran      []string // executions that were run, with their arguments
	hold     chan struct{}
	pause    chan struct{} // the agent thinks until it is closed
	answer   string        // what the agent answers instead of the results
	asks     string        // the arguments of the refund that it asks for when it is told to ask
	http     *http.Client
	ackWait  time.Duration                 // how long Slack waits for an acknowledgement
	wrap     func(store.Store) store.Store // what stands before the store, if anything
	limited  bool                          // the bot keeps Slack's rate limits
	overHTTP bool                          // Slack delivers over HTTP, and not through sockets
	once     bool                          // closures of transactions run once, as in production
}

type testTools map[string]desk.Tool

func (t testTools) Tool(name string) (desk.Tool, bool) {
	tool, ok := t[name]
	return tool, ok
}

func (t testTools) Fingerprint() string { return "" }

const refundSchema = `{"type":"object","additionalProperties":false,"required":["order_id","amount"],"properties":{
	"order_id":{"type":"string","description":"The order"},
	"amount":{"type":"number","minimum":0.01,"maximum":5000},
	"currency":{"type":"string","enum":["USD","EUR"]},
	"reason":{"type":"string","maxLength":500},
	"notify":{"type":"boolean"},
	"count":{"type":"integer"},
	"day":{"type":"string","format":"date"},
	"mail":{"type":"string","format":"email"},
	"link":{"type":"string","format":"uri"},
	"lines":{"type":"array","items":{"type":"object"}}}}`

func tool(name, schema string, effect approvers.Effect) desk.Tool {
	return desk.Tool{Name: name, Hash: "hash-" + name, Effect: effect, Timeout: time.Minute, Schema: json.RawMessage(schema),
		Check: func(args json.RawMessage) error {
			var v struct {
				Amount *float64 `json:"amount"`
			}
			if err := json.Unmarshal(args, &v); err != nil {
				return err
			}
			if v.Amount != nil && (*v.Amount < 0.01 || *v.Amount > 5000) {
				return errors.New("amount: must be between 0.01 and 5000; order_id: is odd")
			}
			return nil
		}}
}

func newWorkbench(t testing.TB, adjust ...func(*workbench)) *workbench {
	t.Helper()
	w := &workbench{t: t, ackWait: 10 * time.Second, overHTTP: os.Getenv("COUNTERSIGN_TRANSPORT") == "http", policy: testPolicy(), path: filepath.Join(t.TempDir(), "countersign.db"), log: new(logBuffer)}
	w.tools = testTools{
		"search_orders":           tool("search_orders", `{"type":"object"}`, approvers.ReadOnly),
		"update_shipping_address": tool("update_shipping_address", `{"type":"object"}`, approvers.Idempotent),
		"issue_refund":            tool("issue_refund", refundSchema, approvers.Unprotected),
		"cancel_account":          tool("cancel_account", `{"type":"object"}`, approvers.Unprotected),
		"mystery":                 tool("mystery", `{"type":"object"}`, approvers.Unprotected),
	}
	for _, f := range adjust {
		f(w)
	}
	srv, err := workspace.New(workspace.Config{Seed: workspace.DemoSeed(), AckTimeout: w.ackWait})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	w.slack, w.url = srv, web.URL
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// inBothWays runs a journey through Socket Mode and over HTTP. COUNTERSIGN_TRANSPORT=http runs every test of the package over HTTP.
func inBothWays(t *testing.T, journey func(*testing.T, *workbench), adjust ...func(*workbench)) {
	t.Helper()
	for name, overHTTP := range map[string]bool{"socket": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			journey(t, newWorkbench(t, append(slices.Clone(adjust), func(w *workbench) { w.overHTTP = overHTTP })...))
		})
	}
}

// decree has another policy be in force, while the bot runs.
func (w *workbench) decree(p *approvers.Policy) {
	w.policy = p
	w.inForce.Store(p)
}

// start starts the bot on the store as it is, and waits until it is connected.
func (w *workbench) start() {
	w.t.Helper()
	w.until("no sockets of an earlier run", func() bool { return w.slack.Sockets() == 0 })
	s, err := bolt.Open(w.path, bolt.Options{Rehearse: !w.once})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
	behind := store.Store(s)
	if w.wrap != nil {
		behind = w.wrap(s)
	}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.inForce.Store(w.policy)
	w.desk = desk.New(desk.Config{Store: behind, Policy: w.inForce.Load, Tools: w.tools, Log: log})
	config := Config{BotToken: workspace.DemoBotToken, AppToken: workspace.DemoAppToken, APIURL: w.url + "/api/", Desk: w.desk, Tools: w.tools, Log: log, HTTP: w.http, Unlimited: !w.limited}
	if w.overHTTP {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.t.Fatal(err)
		}
		w.address = "http://" + l.Addr().String()
		config.SigningSecret, config.Listen = workspace.DemoSigningSecret, func() (net.Listener, error) { return l, nil }
	}
	w.bot = New(config)
	w.desk.Giver = w.bot.Giver
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.bot.Run(ctx) })
	tell := desk.Duty{Handle: w.bot.Show, Workers: 4, Worth: w.bot.Worth}
	show := tell
	show.Yields = true
	g.Go(func() error {
		return w.desk.Work(ctx, map[store.TimerKind]desk.Duty{
			store.TimerInbox:     {Handle: w.bot.Handle, Workers: 8},
			store.TimerShowFirst: show, store.TimerShow: show, store.TimerShowLast: tell,
			store.TimerThink: {Handle: w.think, Workers: 4}, store.TimerRun: {Handle: w.run, Workers: 4},
			store.TimerMuster: {Handle: w.bot.Muster, Workers: 2}, store.TimerRemind: {Handle: w.bot.Remind, Workers: 2}, store.TimerAway: {Handle: w.bot.Depart, Workers: 1},
		})
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := g.Wait(); err != nil {
			w.t.Errorf("the bot stopped with: %v", err)
		}
		if err := s.Check(context.Background()); err != nil {
			w.t.Errorf("the store is not sound: %v", err)
		}
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Log(w.log.String())
		}
	})
	if !w.overHTTP {
		w.until("two sockets", func() bool { return w.slack.Sockets() == sockets })
	} else if err := w.slack.SetRequestURLs(ctx, workspace.URLsAt(w.address+"/slack/")); err != nil {
		w.t.Fatal(err)
	}
}

// think is the stand-in for the agent.
func (w *workbench) think(ctx context.Context, t store.Timer) error {
	b, err := w.desk.Begin(ctx, t.Ref)
	if err != nil {
		return err
	}
	if w.pause != nil {
		<-w.pause
	}
	var results []string
	for _, c := range b.Calls[b.Turn.ID] {
		results = append(results, string(c.Outcome)+" "+c.Result)
	}
	last := b.Messages[len(b.Messages)-1].Text
	if w.mu.Lock(); last == "ask" {
		last = "call issue_refund " + w.asks
	}
	w.mu.Unlock()
	if b.Turn.Step > 0 || !strings.Contains(last, "call ") {
		text := "results: " + strings.Join(results, " | ")
		if w.answer != "" {
			text = w.answer
		}
		return w.desk.Answer(ctx, b.Turn.ID, b.Turn.Step, text, 1)
	}
	p := desk.Proposal{Turn: b.Turn.ID, Step: b.Turn.Step, Authors: b.Turn.Requesters}
	for i, line := range strings.Split(last, "\n") {
		if rest, ok := strings.CutPrefix(line, "call "); ok {
			name, args, _ := strings.Cut(rest, " ")
			p.Calls = append(p.Calls, desk.ModelCall{ID: fmt.Sprint("m", i), Tool: name, Args: args})
		}
	}
	return w.desk.Propose(ctx, p)
}

// run claims and "runs" an execution.
func (w *workbench) run(ctx context.Context, t store.Timer) error {
	e, run, err := w.desk.Claim(ctx, t.Ref)
	if err != nil || !run {
		return err
	}
	w.mu.Lock()
	w.ran = append(w.ran, e.Tool+" "+string(e.Args))
	hold := w.hold
	w.mu.Unlock()
	if hold != nil {
		<-hold
		return errors.New("the process went away")
	}
	return w.desk.Finish(ctx, e.ID, true, `{"ok":true}`)
}

func (w *workbench) runs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.ran...)
}

// until waits for something that is about to become true.
func (w *workbench) until(what string, is func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	give := time.After(time.Minute) // it only bounds a failure: a busy machine may need long for what takes a second
	for !is() {
		select {
		case <-tick.C:
		case <-give:
			w.t.Fatalf("it never came to this: %s", what)
		}
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

// unhandled lists the deliveries that are due.
func unhandled(t testing.TB, w *workbench) []store.Timer {
	t.Helper()
	var due []store.Timer
	err := w.store.View(context.Background(), func(r store.Reader) error {
		var err error
		due, err = r.Timers(store.TimerInbox, 100)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// lose makes every running execution's deadline due, as if a long time had passed since the process stopped.
func (w *workbench) lose() {
	w.t.Helper()
	s, err := bolt.Open(w.path, bolt.Options{})
	if err != nil {
		w.t.Fatal(err)
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
		w.t.Fatal(err)
	}
}
