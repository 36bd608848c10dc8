package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/agent"
	"countersign/agent/mcp"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

// toolbox holds all tools that the bot can call. It keeps the servers of the policy in force connected while the bot
// runs.
type toolbox struct {
	*agent.Registry
	log     *slog.Logger
	own     []config.Server   // always present, connected before the bot starts, and exempt from pins
	ours    []check.Tool      // their tools, as far as known before they list them
	between func(*agent.Tool) // wraps each tool of a server; nil: no wrapper
	calls   *serverCalls

	mu      sync.Mutex
	wanted  []config.Server
	kept    map[string]*serverConn
	changed chan struct{} // wanted has changed, or the toolbox is being closed
}

// serverConn is a server that is kept connected until it is dropped.
type serverConn struct {
	config.Server
	client *mcp.Client
	letGo  context.CancelFunc
	gone   chan struct{}
}

// newToolbox returns a toolbox with the agent's built-in tools. want adds the tools of a policy.
func newToolbox(log *slog.Logger, own ...config.Server) (*toolbox, error) {
	b := &toolbox{Registry: new(agent.Registry), log: log, own: own, wanted: own, kept: map[string]*serverConn{}, changed: make(chan struct{}, 1), calls: newServerCalls()}
	for _, t := range agent.BuiltIns() {
		if err := b.Register(t); err != nil {
			return nil, fmt.Errorf("built-in tools: %w", err)
		}
	}
	for _, s := range own {
		b.Trust(s.Name) // nothing is registered yet that could collide
	}
	return b, nil
}

// want sets the sources to keep connected. An unchanged server keeps its connection. The pins of the lock file beside
// the policy are known from here on, whether the servers are reachable or not.
func (b *toolbox) want(file *config.File, path string) error {
	lock, err := lockBeside(path)
	if err != nil {
		return err
	}
	if err := declare(b.Registry, file, lock, os.LookupEnv, func(p yamldoc.Problem) { b.log.Warn("policy: " + p.Error()) }); err != nil {
		return err
	}
	for _, source := range b.Sources() {
		if name, api := strings.CutPrefix(source, apiSource("")); api && !slices.ContainsFunc(file.OpenAPI, func(a config.OpenAPI) bool { return a.Name == name }) {
			b.Remove(source)
		}
	}
	servers := slices.Clone(b.own)
	for _, s := range file.Servers {
		if slices.ContainsFunc(b.own, func(o config.Server) bool { return o.Name == s.Name }) {
			b.log.Info("a server of the policy is not started, because one of this name is here already", "server", s.Name)
			continue
		}
		servers = append(servers, s)
	}
	client := mcp.Open(mcp.Config{Servers: servers}) // it only makes tools, and never runs
	for _, s := range servers[len(b.own):] {
		for _, err := range pin(b.Registry, client, s.Name, lock) {
			b.log.Warn("a pinned tool can't be used; pin it anew with countersign tools pin", "server", s.Name, "error", err)
		}
	}
	b.mu.Lock()
	b.wanted = servers
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default: // a notice is already pending
	}
	return nil
}

// known returns the tools of a policy that is not in force yet, as far as they are known without contacting a server.
func (b *toolbox) known(file *config.File, path string) ([]check.Tool, error) {
	r, err := offline(file, path)
	if err != nil {
		return nil, err
	}
	known := described(r)
	for _, t := range append(described(b.Registry), b.ours...) {
		ours := t.Source == "" || slices.ContainsFunc(b.own, func(s config.Server) bool { return s.Name == t.Source })
		if ours && !slices.ContainsFunc(known, func(k check.Tool) bool { return k.Name == t.Name }) {
			known = append(known, t)
		}
	}
	return known, nil
}

// outsideFirst is how long the bot waits for the policy's servers before it starts. A slower server joins later.
const outsideFirst = 2 * time.Second

// begin keeps the servers connected until the returned function is called. It waits a short time for their lists of
// tools.
func (b *toolbox) begin(ctx context.Context) (letGo func()) {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx)) // current runs finish first
	b.match(lasting)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.keep(lasting)
	}()
	b.settle(ctx)
	return func() {
		stop()
		<-done
	}
}

// keep follows changes of the wanted servers until ctx ends, and then drops all of them.
func (b *toolbox) keep(ctx context.Context) {
	for {
		select {
		case <-b.changed:
			b.match(ctx)
		case <-ctx.Done():
			b.drop(func(*serverConn) bool { return true })
			return
		}
	}
}

// match drops the servers that are not wanted in their current form, and connects the missing ones.
func (b *toolbox) match(ctx context.Context) {
	b.mu.Lock()
	wanted := slices.Clone(b.wanted)
	b.mu.Unlock()
	as := func(k *serverConn) bool {
		return slices.ContainsFunc(wanted, func(s config.Server) bool { return reflect.DeepEqual(s, k.Server) })
	}
	for _, name := range b.drop(func(k *serverConn) bool { return !as(k) }) {
		if !slices.ContainsFunc(wanted, func(s config.Server) bool { return s.Name == name }) {
			b.Remove(name)
			b.log.Info("the policy names this server no more; its tools are gone", "server", name)
		}
	}
	for _, s := range wanted {
		b.mu.Lock()
		_, there := b.kept[s.Name]
		b.mu.Unlock()
		if !there {
			b.take(ctx, s)
		}
	}
}

// take starts to keep a server connected.
func (b *toolbox) take(ctx context.Context, s config.Server) {
	k := &serverConn{Server: s, gone: make(chan struct{})}
	k.client = mcp.Open(mcp.Config{Servers: []config.Server{s}, Offer: b.offer, Log: b.log, Version: version()})
	ctx, k.letGo = context.WithCancel(ctx)
	b.mu.Lock()
	b.kept[s.Name] = k
	b.mu.Unlock()
	go func() {
		defer close(k.gone)
		_ = k.client.Run(ctx) // always nil
	}()
}

// drop disconnects servers in parallel and waits for their end. It returns their names.
func (b *toolbox) drop(which func(*serverConn) bool) (names []string) {
	b.mu.Lock()
	var going []*serverConn
	for name, k := range b.kept {
		if which(k) {
			going = append(going, k)
			delete(b.kept, name)
		}
	}
	b.mu.Unlock()
	for _, k := range going {
		k.letGo()
	}
	for _, k := range going {
		<-k.gone
		names = append(names, k.Name)
	}
	return names
}

// settle waits until every server has listed its tools or has failed once: without a time limit for our own servers,
// and for a short time for the policy's.
func (b *toolbox) settle(ctx context.Context) {
	brief, cancel := context.WithTimeout(ctx, outsideFirst)
	defer cancel()
	for _, k := range b.all() {
		within := brief
		if slices.ContainsFunc(b.own, func(s config.Server) bool { return s.Name == k.Name }) {
			within = ctx
		}
		if k.client.Settled(within) != nil && ctx.Err() == nil {
			b.log.Warn("a server takes its time; the bot begins without it", "server", k.Name)
		}
	}
}

// offer registers a server's current tools.
func (b *toolbox) offer(server string, tools []agent.Tool) {
	for i := range tools {
		b.calls.count(server, &tools[i])
		if b.between != nil {
			b.between(&tools[i])
		}
	}
	for _, err := range b.Replace(server, tools) {
		b.log.Warn("a tool of a server can't be offered", "server", server, "problem", err)
	}
}

// all returns the kept servers by name.
func (b *toolbox) all() []*serverConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*serverConn
	for _, k := range b.kept {
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y *serverConn) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// outside returns the names of the policy's servers.
func (b *toolbox) outside() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.wanted[len(b.own):] {
		names = append(names, s.Name)
	}
	return names
}

// status returns the state of each server by name.
func (b *toolbox) status() []mcp.Status {
	var out []mcp.Status
	for _, k := range b.all() {
		out = append(out, k.client.Status()...)
	}
	return out
}

// state reports on /readyz which servers are down. The bot can work without their tools.
func (b *toolbox) state(context.Context) error {
	var down []string
	for _, s := range b.status() {
		if s.Connected {
			continue
		}
		why := s.Problem
		if why == "" {
			why = "it is not connected yet"
		}
		down = append(down, s.Server+": "+why)
	}
	if len(down) == 0 {
		return nil
	}
	return fmt.Errorf("%s down: %s", cli.Count(len(down), "server"), strings.Join(down, "; "))
}
