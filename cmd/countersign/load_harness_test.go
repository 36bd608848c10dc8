package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/tracing"
	"countersign/store"
)

// loadHarness is a workspace, a model and a bot in this process. loadHarness has one tool that needs approval, and the
// test's own policy and people. The model makes as many calls as a message requests: "@Countersign 25 of X" gives 25
// calls with the arguments X.0 to X.24.
type loadHarness struct {
	testing.TB
	base     string
	gateway  string // the address for other agents
	store    store.Store
	runs     func(key string) // called by each run of the tool
	called   func(method string, form url.Values)
	thinking atomic.Int64 // total time that the model's own handler took, in ns
	client   *http.Client // client of all people; each has their own connection, as in browsers
}

// loadConfig configures a load harness.
type loadConfig struct {
	seed   workspace.Seed
	policy string
	runs   func(key string)              // may be nil
	called func(string, url.Values)      // called with method and arguments when Slack has answered a call of the bot; may be nil
	wrap   func(store.Store) store.Store // wraps the bot's store; may be nil
	tracer *tracing.Tracer               // nil: nothing is traced
}

const loadTool = "count"

// openLoadHarness starts the harness, and stops it when the test ends.
func openLoadHarness(tb testing.TB, c loadConfig) *loadHarness {
	tb.Helper()
	lasting := &http.Transport{MaxIdleConnsPerHost: 128}
	h := &loadHarness{TB: tb, runs: c.runs, called: c.called, client: &http.Client{Transport: lasting}}
	l, err := listen("the load test", "", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h.base = "http://" + l.Addr().String()
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ws, err := workspace.New(workspace.Config{Seed: c.seed, BaseURL: h.base, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	db, err := openstore.File(filepath.Join(tb.TempDir(), "store.db"))
	if err != nil {
		tb.Fatal(err)
	}
	h.store = db
	if c.wrap != nil {
		h.store = c.wrap(db)
	}
	policies, err := policyfile.New("load.yaml", []byte(c.policy), catalogOf(h.tools()), log)
	if err != nil {
		tb.Fatal(err)
	}
	s := setup{
		botToken: workspace.DemoBotToken, appToken: workspace.DemoAppToken, slackURL: h.base + "/api/", unlimited: true,
		model:    agent.Model{BaseURL: h.base + "/v1", Key: "key", Name: scriptedmodel.DefaultModel},
		policies: policies, store: h.store, tools: policies.Tools, log: log, tracer: c.tracer, receiptKey: gateway.NewReceiptKey(),
	}
	if s.gateway, err = listen("the gateway", "", "127.0.0.1:0"); err != nil {
		tb.Fatal(err)
	}
	h.gateway = "http://" + s.gateway.Addr().String()
	p := s.assemble()
	mux := http.NewServeMux()
	mux.Handle("/v1/", h.timed(scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(order)})))
	mux.Handle("POST /api/", h.watched(ws.Handler()))
	mux.Handle("/", ws.Handler())
	ctx, stop := context.WithCancel(context.Background())
	serving, running := make(chan error, 1), make(chan error, 1)
	serveCtx, stopServing := context.WithCancel(context.Background())
	go func() { serving <- serveHTTP(serveCtx, l, mux) }()
	go func() { running <- s.run(ctx, p) }()
	tb.Cleanup(func() {
		lasting.CloseIdleConnections()
		stop()
		err := errors.Join(<-running, ws.Close())
		stopServing()
		if err := errors.Join(err, <-serving, db.Check(context.Background()), db.Close()); err != nil {
			tb.Error(err)
		}
	})
	if err := connected(tb.Context(), p); err != nil {
		tb.Fatal(err)
	}
	return h
}

func (h *loadHarness) tools() *agent.Registry {
	r := &agent.Registry{}
	err := r.Register(agent.Tool{
		Name: loadTool, Description: "Counts.", Effect: approvers.Unprotected,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`),
		Run: func(_ context.Context, in agent.Invocation) (string, error) {
			if h.runs != nil {
				h.runs(in.Key)
			}
			return `{"counted":true}`, nil
		},
	})
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// order is the harness's model.
func order(_ context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	last := r.Last()
	if last.Role != "user" {
		return scriptedmodel.Reply{Content: "All of it is settled."}, nil
	}
	said, n, what := last.Content, 0, ""
	for i := range said { // the text may begin with the writer's name
		if _, err := fmt.Sscanf(said[i:], "%d of %s", &n, &what); err == nil {
			break
		}
	}
	var reply scriptedmodel.Reply
	for i := range n {
		reply.Calls = append(reply.Calls, scriptedmodel.NewCall(loadTool, map[string]string{"n": fmt.Sprintf("%s.%d", what, i)}))
	}
	if n == 0 {
		return reply, fmt.Errorf("the load test's model does not understand %q", said)
	}
	return reply, nil
}

// The method "timed" adds up the time that a handler takes.
func (a *loadHarness) timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h.ServeHTTP(w, r)
		a.thinking.Add(int64(time.Since(began)))
	})
}

// The method "watched" reports each call of the bot when Slack has answered it.
func (a *loadHarness) watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
		if form, err := url.ParseQuery(string(body)); err == nil && a.called != nil {
			a.called(strings.TrimPrefix(r.URL.Path, "/api/"), form)
		}
	})
}

// card is the shown card of a waiting request, with the card's Approve button. The requests of one step share a
// message.
type card struct {
	request approvers.Request
	message workspaceclient.Message
	button  workspaceclient.Element
}

// The method "cards" waits until the cards of n waiting requests are shown, and lists them.
func (h *loadHarness) cards(n int) []card {
	h.Helper()
	var out []card
	h.until(fmt.Sprint(n, " cards"), func(r store.Reader) (bool, error) {
		out = nil
		open, err := r.OpenRequests(store.RequestCursor{}, 2*n)
		if err != nil {
			return false, err
		}
		for _, req := range open {
			m, settled, err := cardOf(r, req)
			if err != nil || !settled {
				return false, err
			}
			if e, ok := buttonFor(m, "Approve", req.ID); ok {
				out = append(out, card{req, m, e})
			}
		}
		return len(out) == n, nil
	})
	return out
}

// cardOf returns the newest message with buttons that shows a request, alone or with other requests of its step. The
// result is empty if there is no such message. The result settled is true if Slack shows the current state of each
// message about the request.
func cardOf(r store.Reader, req approvers.Request) (m workspaceclient.Message, settled bool, err error) {
	for _, ref := range []string{req.ID, req.Turn} {
		messages, err := r.OutboxMessagesOf(ref)
		if err != nil {
			return m, false, err
		}
		for _, s := range messages {
			if s.Kind != store.OutboxCard && s.Kind != store.OutboxBundle {
				continue
			}
			if s.State != store.OutboxShown {
				return m, false, nil
			}
			shown, err := r.Rendering(s.ID, s.Posts)
			if err != nil {
				return m, false, err
			}
			var body struct{ Blocks json.RawMessage }
			if err := json.Unmarshal(shown.Body, &body); err != nil {
				return m, false, err
			}
			if len(workspaceclient.Elements(body.Blocks)) > 0 {
				m = workspaceclient.Message{Channel: s.Channel, TS: s.TS, Blocks: body.Blocks}
			}
		}
	}
	return m, true, nil
}

// buttonFor finds a request's button.
func buttonFor(m workspaceclient.Message, label, request string) (workspaceclient.Element, bool) {
	for _, e := range workspaceclient.Elements(m.Blocks) {
		if strings.HasPrefix(e.Text.Text, label) && strings.HasPrefix(e.Value, request+" ") {
			return e, true
		}
	}
	return workspaceclient.Element{}, false
}

func (h *loadHarness) until(what string, done func(store.Reader) (bool, error)) {
	h.Helper()
	h.wait(what, func() (ok bool, err error) {
		err = h.store.View(h.Context(), func(r store.Reader) (err error) {
			ok, err = done(r)
			return err
		})
		return ok, err
	})
}

// wait waits for a condition by polling.
func (h *loadHarness) wait(what string, done func() (bool, error)) {
	h.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		ok, err := done()
		if err != nil {
			h.Fatal(err)
		}
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			h.Fatalf("waited in vain for %s", what)
		}
	}
}

func (h *loadHarness) as(name string) workspaceclient.Client {
	return workspaceclient.Client{Base: h.base, User: name, HTTP: h.client}
}

// The method "newest" reads the newest messages of a channel as a person sees them.
func (h *loadHarness) newest(who workspaceclient.Client, channel string, limit int) []workspaceclient.Message {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), http.MethodGet, fmt.Sprintf("%s/people/%s/channels/%s/messages?limit=%d", h.base, who.User, channel, limit), nil)
	if err != nil {
		h.Fatal(err)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Messages []workspaceclient.Message }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		h.Fatal(err)
	}
	return out.Messages
}
