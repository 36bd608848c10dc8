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
	"countersign/approvers"
	"countersign/internal/scriptedmodel"
	"countersign/internal/visitor"
	"countersign/internal/workspace"
	"countersign/store"
)

// arena is workspace, model and bot in this process, with one gated tool, a policy and people of a test's own. The model asks for as
// many calls as a message says: "@Countersign 25 of X" gives 25 calls with the arguments X.0 to X.24.
type arena struct {
	testing.TB
	base     string
	store    store.Store
	runs     func(key string) // called by each run of the tool
	called   func(method string, form url.Values)
	thinking atomic.Int64 // time that the model's own handler took, in ns
	client   *http.Client // of all people: a connection each, as in browsers
}

// arenaConfig says how an arena differs.
type arenaConfig struct {
	seed   workspace.Seed
	policy string
	runs   func(key string)              // may be nil
	called func(string, url.Values)      // called when Slack has taken a call of the bot's, with its method and arguments; may be nil
	wrap   func(store.Store) store.Store // stands between the bot and its store; may be nil
}

const arenaTool = "count"

// openArena starts everything, and stops it with the test.
func openArena(tb testing.TB, c arenaConfig) *arena {
	tb.Helper()
	lasting := &http.Transport{MaxIdleConnsPerHost: 128}
	a := &arena{TB: tb, runs: c.runs, called: c.called, client: &http.Client{Transport: lasting}}
	l, err := listen("the arena", "", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	a.base = "http://" + l.Addr().String()
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ws, err := workspace.New(workspace.Config{Seed: c.seed, BaseURL: a.base, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	db, err := openStore(filepath.Join(tb.TempDir(), "store.db"))
	if err != nil {
		tb.Fatal(err)
	}
	a.store = db
	if c.wrap != nil {
		a.store = c.wrap(db)
	}
	policies, err := newPolicies("arena.yaml", []byte(c.policy), boxed(a.tools()), log)
	if err != nil {
		tb.Fatal(err)
	}
	s := setup{
		botToken: workspace.DemoBotToken, appToken: workspace.DemoAppToken, slackURL: a.base + "/api/", unlimited: true,
		model:    agent.Model{BaseURL: a.base + "/v1", Key: "arena", Name: scriptedmodel.DefaultModel},
		policies: policies, store: a.store, tools: policies.tools, log: log,
	}
	p := s.assemble()
	mux := http.NewServeMux()
	mux.Handle("/v1/", a.timed(scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(order)})))
	mux.Handle("POST /api/", a.watched(ws.Handler()))
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
	return a
}

func (a *arena) tools() *agent.Registry {
	r := &agent.Registry{}
	err := r.Register(agent.Tool{
		Name: arenaTool, Description: "Counts.", Effect: approvers.Unprotected,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`),
		Run: func(_ context.Context, in agent.Invocation) (string, error) {
			if a.runs != nil {
				a.runs(in.Key)
			}
			return `{"counted":true}`, nil
		},
	})
	if err != nil {
		a.Fatal(err)
	}
	return r
}

// order is the arena's model.
func order(_ context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	last := r.Last()
	if last.Role != "user" {
		return scriptedmodel.Reply{Content: "All of it is settled."}, nil
	}
	said, n, what := last.Content, 0, ""
	for i := range said { // the writer's name may stand before it
		if _, err := fmt.Sscanf(said[i:], "%d of %s", &n, &what); err == nil {
			break
		}
	}
	var reply scriptedmodel.Reply
	for i := range n {
		reply.Calls = append(reply.Calls, scriptedmodel.NewCall(arenaTool, map[string]string{"n": fmt.Sprintf("%s.%d", what, i)}))
	}
	if n == 0 {
		return reply, fmt.Errorf("the arena's model does not understand %q", said)
	}
	return reply, nil
}

// timed adds up the time that a handler takes.
func (a *arena) timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h.ServeHTTP(w, r)
		a.thinking.Add(int64(time.Since(began)))
	})
}

// watched tells of each call of the bot's when Slack has taken it.
func (a *arena) watched(h http.Handler) http.Handler {
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

// card is a request's card that is shown and waits, with its Approve button. The requests of one step have theirs in one message.
type card struct {
	request approvers.Request
	message visitor.Message
	button  visitor.Element
}

// cards waits until so many requests are shown that wait for a decision, and lists them.
func (a *arena) cards(n int) []card {
	a.Helper()
	var out []card
	a.until(fmt.Sprint(n, " cards"), func(r store.Reader) (bool, error) {
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

// cardOf is the newest message with buttons that shows a request, alone or with others of its step; empty if there is none. It is settled once Slack shows each
// of these messages as it has to be.
func cardOf(r store.Reader, req approvers.Request) (m visitor.Message, settled bool, err error) {
	for _, ref := range []string{req.ID, req.Turn} {
		surfaces, err := r.SurfacesOf(ref)
		if err != nil {
			return m, false, err
		}
		for _, s := range surfaces {
			if s.Kind != store.SurfaceCard && s.Kind != store.SurfaceBundle {
				continue
			}
			if s.State != store.SurfaceShown {
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
			if len(visitor.Elements(body.Blocks)) > 0 {
				m = visitor.Message{Channel: s.Channel, TS: s.TS, Blocks: body.Blocks}
			}
		}
	}
	return m, true, nil
}

// buttonFor finds a button that is for a request.
func buttonFor(m visitor.Message, label, request string) (visitor.Element, bool) {
	for _, e := range visitor.Elements(m.Blocks) {
		if strings.HasPrefix(e.Text.Text, label) && strings.HasPrefix(e.Value, request+" ") {
			return e, true
		}
	}
	return visitor.Element{}, false
}

// until looks at the store until it is as it has to be.
func (a *arena) until(what string, done func(store.Reader) (bool, error)) {
	a.Helper()
	a.wait(what, func() (ok bool, err error) {
		err = a.store.View(a.Context(), func(r store.Reader) (err error) {
			ok, err = done(r)
			return err
		})
		return ok, err
	})
}

// wait looks again and again until something is as it has to be.
func (a *arena) wait(what string, done func() (bool, error)) {
	a.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		ok, err := done()
		if err != nil {
			a.Fatal(err)
		}
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			a.Fatalf("waited in vain for %s", what)
		}
	}
}

// as is a person of the arena.
func (a *arena) as(name string) visitor.Visitor {
	return visitor.Visitor{Base: a.base, User: name, Client: a.client}
}

// newest reads the newest messages of a channel as a person sees them.
func (a *arena) newest(who visitor.Visitor, channel string, limit int) []visitor.Message {
	a.Helper()
	req, err := http.NewRequestWithContext(a.Context(), http.MethodGet, fmt.Sprintf("%s/people/%s/channels/%s/messages?limit=%d", a.base, who.User, channel, limit), nil)
	if err != nil {
		a.Fatal(err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Messages []visitor.Message }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		a.Fatal(err)
	}
	return out.Messages
}
