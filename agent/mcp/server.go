package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"countersign/agent"
	"countersign/agent/jsonobject"
	"countersign/config"
	"countersign/internal/redact"
)

// server is the state of one server of the policy, over all its connections.
type server struct {
	config.Server
	lookup  func(string) (string, bool)
	offer   func(string, []agent.Tool)
	leftOut func(server, problem string)
	log     *slog.Logger
	version string
	limits  limits
	secrets atomic.Pointer[redact.Values] // secret values that the client sends to the server
	given   []string                      // the values in secrets; only readSecrets uses the field

	connect func(context.Context) (*session, error) // replaced in tests
	legacy  bool                                    // the next handshake uses the older protocol version

	slots   chan struct{} // one for each call in progress
	tokens  atomic.Int64
	settled chan struct{} // closed when the server has listed its tools, or the first attempt to connect has failed
	once    sync.Once
	wake    chan struct{} // receives a value when the list of tools may have changed

	offering sync.Mutex
	offered  []json.RawMessage

	mu      sync.Mutex
	live    *session
	changed chan struct{} // closed when the field live changes
	since   time.Time
	links   int // number of connections on which the server listed its tools
	tools   int
	problem string
}

func newServer(c config.Server, with Config, l limits) *server {
	s := &server{
		Server: c, lookup: with.Lookup, offer: with.Offer, leftOut: with.LeftOut, log: with.Log.With("server", c.Name), version: with.Version, limits: l,
		slots: make(chan struct{}, l.calls), settled: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	s.connect = s.dial
	s.readSecrets()
	return s
}

// keep keeps the server connected until ctx ends. After each failure, keep waits, with increasing delays.
func (s *server) keep(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := s.link(ctx)
		if ctx.Err() != nil {
			s.settle()
			return
		}
		if time.Since(began) >= s.limits.steady {
			failures = 0
		}
		pause := min(s.limits.backoff<<min(failures, 20), s.limits.backoffTo)
		s.failed(err)
		s.settle()
		s.log.WarnContext(ctx, "an MCP server is not connected", "error", err, "next_try_in", pause)
		if !sleep(ctx, pause) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// link makes one connection, and returns when the connection has ended. The error gives the reason for the end.
func (s *server) link(ctx context.Context) error {
	ses, err := s.handshake(ctx)
	if err != nil {
		return err
	}
	defer ses.end()
	defer s.unlink()
	if err := s.relist(ctx, ses, true); err != nil {
		return err
	}
	s.settle()
	for {
		again := time.NewTimer(jittered(s.limits.again))
		due := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ses.done:
			return ses.lost()
		case <-ses.ctx.Done():
			return errors.New("the server did not answer, so the connection was ended")
		case <-s.wake:
		case <-again.C: // read the list regularly, because a server need not announce changes
			due = true
		}
		again.Stop()
		if !due && !ses.stale() {
			continue
		}
		switch err := s.relist(ctx, ses, false); {
		case err == nil:
		case due && len(s.slots) > 0 && ctx.Err() == nil && ses.alive(): // a slow list must not end the connection during a call
			s.log.DebugContext(ctx, "an MCP server did not send its list during a call; it is asked again", "error", err)
		default:
			return err
		}
		if !sleep(ctx, s.limits.fresh/10) { // limits the reads of the list if a server announces changes permanently
			return ctx.Err()
		}
	}
}

// handshake connects to the server. If the newest handshake fails, handshake tries the older one immediately, because
// some older servers exit or hang at a message that they don't know. If the older handshake fails, the next attempt
// begins with the newest one.
func (s *server) handshake(ctx context.Context) (*session, error) {
	ses, err := s.connect(ctx)
	if err == nil || ctx.Err() != nil {
		return ses, err
	}
	s.legacy = !s.legacy
	if !s.legacy {
		return nil, err
	}
	s.failed(err)
	ses, older := s.connect(ctx)
	if older == nil || ctx.Err() != nil {
		return ses, older
	}
	s.legacy = false
	if older.Error() != err.Error() {
		err = fmt.Errorf("%w; with the handshake of older servers: %w", err, older)
	}
	return nil, err
}

// jittered varies an interval, so that the lists of several servers are not read at the same time.
func jittered(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// relist reads the server's list of tools. If the list is the first of the connection, or has changed, relist offers
// the tools.
func (s *server) relist(ctx context.Context, ses *session, first bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.list, fmt.Errorf("the server did not send its list of tools within %s", s.limits.list))
	defer cancel()
	s.offering.Lock()
	defer s.offering.Unlock()
	list, err := ses.list(ctx)
	if err != nil {
		return err
	}
	if !first && sameList(list, s.offered) {
		return nil
	}
	tools, problem := s.define(list)
	s.offered = list
	s.mu.Lock()
	s.tools, s.problem = len(tools), problem
	s.mu.Unlock()
	if first {
		s.linked(ses) // before the tools are offered, because an offered tool may be called immediately
	}
	s.offer(s.Name, tools)
	return nil
}

func sameList(a, b []json.RawMessage) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// define converts a list to tools. It omits invalid definitions, and all tools whose name is not unique.
func (s *server) define(list []json.RawMessage) ([]agent.Tool, string) {
	var out []agent.Tool
	var problems []string
	count := map[string]int{}
	known := map[string]bool{}
	var made []agent.Tool
	for _, raw := range list {
		t, err := s.tool(raw)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		count[t.Name]++
		made = append(made, t)
		known[nameOf(raw)] = true
	}
	for _, t := range made {
		if count[t.Name] == 1 {
			out = append(out, t)
		}
	}
	for name, n := range count {
		if n > 1 {
			problems = append(problems, fmt.Sprintf("%d tools are called %s, so none of them is offered", n, name))
		}
	}
	for name := range s.Effects {
		if !known[name] {
			problems = append(problems, fmt.Sprintf("effects names %.80q, which the server does not have", name))
		}
	}
	for _, p := range problems {
		s.log.Warn("the tool list of an MCP server has a problem", "problem", line(p))
		s.leftOut(s.Name, line(p))
	}
	if len(problems) == 0 {
		return out, ""
	}
	return out, line(problems[0])
}

func nameOf(raw json.RawMessage) string {
	o, _ := jsonobject.Read(raw)
	return o.Text("name")
}

// tool converts one definition to a tool. The tool's Run function calls the server.
func (s *server) tool(raw json.RawMessage) (agent.Tool, error) {
	if secrets := s.secrets.Load(); secrets.In(string(raw)) {
		return agent.Tool{}, fmt.Errorf("the server %s: %w: the definition of %.80q repeats a value that the policy gives the server as a secret, so the tool is not offered; if the value is not a secret, write it in the policy in place of ${…}",
			s.Name, ErrDefinition, secrets.Out(nameOf(raw)))
	}
	d, t, err := define(s.Server, raw)
	if err != nil {
		return agent.Tool{}, fmt.Errorf("the server %s: %w", s.Name, err)
	}
	t.Run = func(ctx context.Context, in agent.Invocation) (string, error) { return s.run(ctx, d, in) }
	return t, nil
}

func (s *server) settle() { s.once.Do(func() { close(s.settled) }) }

// linked sets the connection that calls use.
func (s *server) linked(ses *session) {
	s.mu.Lock()
	s.live, s.since = ses, time.Now()
	s.links++
	close(s.changed)
	s.changed = make(chan struct{})
	n := s.tools
	s.mu.Unlock()
	s.log.Info("an MCP server is connected", "tools", n, "protocol", ses.protocol())
}

func (s *server) unlink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = nil
}

func (s *server) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = err.Error()
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Server: s.Name, Connected: s.live != nil, Tools: s.tools, Restarts: max(s.links-1, 0), Problem: s.problem}
	if s.live != nil {
		st.Since = s.since
	}
	return st
}

// errAway means that a server is not connected.
var errAway = errors.New("the server is not connected")

// ready returns the current connection. If there is none, ready waits for a limited time: at most half of a call's
// timeout, so that the error of the call can say why there is no connection.
func (s *server) ready(ctx context.Context) (*session, error) {
	wait := s.limits.ready
	if s.Timeout > 0 {
		wait = min(wait, s.Timeout/2)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		live, changed, problem := s.live, s.changed, s.problem
		s.mu.Unlock()
		if live != nil && live.alive() {
			return live, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			if problem == "" {
				return nil, errAway
			}
			return nil, fmt.Errorf("%w: %s", errAway, problem)
		}
	}
}

// nudge makes link check whether the list must be read.
func (s *server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
