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
	"countersign/config"
)

// toolbox is every tool that the bot can call. Its servers are those of the policy in force; they are kept connected while the bot runs.
type toolbox struct {
	*agent.Registry
	log     *slog.Logger
	own     []config.Server   // there whatever the policy names, and there before anybody works. They need no pins
	ours    []config.Tool     // what they offer, as far as is known before they say it
	between func(*agent.Tool) // stands between the bot and each tool of a server; nil: nothing does
	calls   *serverCalls

	mu      sync.Mutex
	wanted  []config.Server
	kept    map[string]*outlet
	changed chan struct{} // wanted became another, or there is nothing to keep any more
}

// outlet is a server that is kept connected, until it is let go.
type outlet struct {
	config.Server
	client *mcp.Client
	letGo  context.CancelFunc
	gone   chan struct{}
}

// newToolbox has the tools that come with the agent. What a policy names comes with want.
func newToolbox(log *slog.Logger, own ...config.Server) (*toolbox, error) {
	b := &toolbox{Registry: new(agent.Registry), log: log, own: own, wanted: own, kept: map[string]*outlet{}, changed: make(chan struct{}, 1), calls: newServerCalls()}
	for _, t := range agent.BuiltIns() {
		if err := b.Register(t); err != nil {
			return nil, fmt.Errorf("built-in tools: %w", err)
		}
	}
	for _, s := range own {
		b.Trust(s.Name) // there is nothing yet that could collide
	}
	return b, nil
}

// want makes the sources of a policy the ones that are kept. A server that is named as before goes on as before. What the lock file beside the policy has of
// its servers is known from here on, whether they are there or not.
func (b *toolbox) want(file *config.File, path string) error {
	lock, err := lockBeside(path)
	if err != nil {
		return err
	}
	if err := declare(b.Registry, file, lock, os.LookupEnv, func(p config.Problem) { b.log.Warn("policy: " + p.Error()) }); err != nil {
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
	client := mcp.Open(mcp.Config{Servers: servers}) // it makes tools only, and is never run
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
	default: // somebody is told already
	}
	return nil
}

// known are the tools of a policy that is not in force yet, as far as that can be said while nobody is asked.
func (b *toolbox) known(file *config.File, path string) ([]config.Tool, error) {
	r, err := offline(file, path)
	if err != nil {
		return nil, err
	}
	known := described(r)
	for _, t := range append(described(b.Registry), b.ours...) {
		ours := t.Source == "" || slices.ContainsFunc(b.own, func(s config.Server) bool { return s.Name == t.Source })
		if ours && !slices.ContainsFunc(known, func(k config.Tool) bool { return k.Name == t.Name }) {
			known = append(known, t)
		}
	}
	return known, nil
}

// outsideFirst is how long the bot waits for the policy's servers before it begins. One that takes longer, or is down, comes when it comes.
const outsideFirst = 2 * time.Second

// begin keeps the servers connected until they are let go with the function that it returns. It waits a moment for them to say what they offer.
func (b *toolbox) begin(ctx context.Context) (letGo func()) {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx)) // runs under way are finished first
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

// keep follows what is wanted until ctx ends, and lets everything go then.
func (b *toolbox) keep(ctx context.Context) {
	for {
		select {
		case <-b.changed:
			b.match(ctx)
		case <-ctx.Done():
			b.drop(func(*outlet) bool { return true })
			return
		}
	}
}

// match lets go what is not wanted as it is, and takes up what is wanted.
func (b *toolbox) match(ctx context.Context) {
	b.mu.Lock()
	wanted := slices.Clone(b.wanted)
	b.mu.Unlock()
	as := func(k *outlet) bool {
		return slices.ContainsFunc(wanted, func(s config.Server) bool { return reflect.DeepEqual(s, k.Server) })
	}
	for _, name := range b.drop(func(k *outlet) bool { return !as(k) }) {
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

// take begins to keep a server.
func (b *toolbox) take(ctx context.Context, s config.Server) {
	k := &outlet{Server: s, gone: make(chan struct{})}
	k.client = mcp.Open(mcp.Config{Servers: []config.Server{s}, Offer: b.offer, Log: b.log, Version: version()})
	ctx, k.letGo = context.WithCancel(ctx)
	b.mu.Lock()
	b.kept[s.Name] = k
	b.mu.Unlock()
	go func() {
		defer close(k.gone)
		_ = k.client.Run(ctx) // it returns nil
	}()
}

// drop lets servers go, all at once, and waits until they are gone. It returns their names.
func (b *toolbox) drop(which func(*outlet) bool) (names []string) {
	b.mu.Lock()
	var going []*outlet
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

// settle waits until every server has said what it offers or has failed once: our own whatever it takes, the policy's for a moment.
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

// offer registers what a server offers now.
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

// all are the servers that are kept, by name.
func (b *toolbox) all() []*outlet {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*outlet
	for _, k := range b.kept {
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y *outlet) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// outside are the names of the policy's servers.
func (b *toolbox) outside() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.wanted[len(b.own):] {
		names = append(names, s.Name)
	}
	return names
}

// status tells how each server is, by name.
func (b *toolbox) status() []mcp.Status {
	var out []mcp.Status
	for _, k := range b.all() {
		out = append(out, k.client.Status()...)
	}
	return out
}

// state says on /readyz which servers are down. The bot can work without their tools.
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
	return fmt.Errorf("%s down: %s", count(len(down), "server"), strings.Join(down, "; "))
}
