package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/agent"
	"countersign/agent/mcp"
	"countersign/agent/pins"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

// Config configures a Catalog.
type Config struct {
	// Registry has the compiled-in tools. If Registry is nil, the built-in tools are used.
	Registry *agent.Registry
	// Own lists the servers that are part of this program. These servers are connected before the bot starts, and need
	// no pins. If the policy names a server with the same name, the policy's server is not connected.
	Own []config.Server
	// OwnTools lists tools of the servers in Own. With OwnTools, a policy can be checked before the servers list
	// their tools.
	OwnTools []check.Tool
	// Wrap may change a server's tool before the tool is registered. If Wrap is nil, tools are registered unchanged.
	Wrap func(*agent.Tool)
	// Log receives the messages for the operator. If Log is nil, nothing is logged.
	Log *slog.Logger
	// Version is this program's version, as sent to servers.
	Version string

	leftOut func(LeftOut) // receives each problem of a definition; may be nil
}

// Catalog holds all tools that the bot can call, and the policy in force. Catalog is safe for concurrent use.
type Catalog struct {
	*agent.Registry
	config Config
	calls  callCounter
	active activePolicy
	last   adopted
	drift  driftReporter

	mu      sync.Mutex
	wanted  []config.Server
	kept    map[string]*connection
	changed chan struct{} // receives a value when the set of wanted servers has changed
}

// connection is a server whose client stays connected until the server is dropped.
type connection struct {
	config.Server
	client *mcp.Client
	cancel context.CancelFunc
	done   chan struct{} // closed when the client's Run has returned
}

// New returns a catalog of the compiled-in tools. [Catalog.Adopt] adds the tools of a policy.
func New(c Config) (*Catalog, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Registry == nil {
		var err error
		if c.Registry, err = builtIn(); err != nil {
			return nil, err
		}
	}
	for _, s := range c.Own {
		c.Registry.Trust(s.Name) // Trust can't fail, because no tool of the source is registered yet
	}
	return &Catalog{
		Registry: c.Registry, config: c, wanted: c.Own, kept: map[string]*connection{}, changed: make(chan struct{}, 1),
		active: activePolicy{tools: c.Registry}, drift: driftReporter{tools: c.Registry, log: c.Log},
	}, nil
}

// Adopt puts a policy into force and sets the sources to keep connected. An unchanged server keeps its connection.
// After Adopt, the pinned tools are known even if the servers can't be reached. If the policy or its pins can't be
// used, the previous policy and pins stay in force. The parameter load is the id of the stored change that puts the
// policy into force, or "" if the policy is not stored. While Adopt runs, some tools may still belong to the previous
// policy. So if the previous policy is stored, [Catalog.Policy] returns it with an invalid id, and the workflow commits
// nothing until Adopt returns.
func (c *Catalog) Adopt(file *config.File, lock pins.Lock, load string) error {
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	before := c.active.loaded()
	if before != "" {
		c.active.load(changing)
	}
	if err := c.want(file, lock); err != nil {
		c.active.load(before)
		return err
	}
	policy := *file.Policy
	policy.Load = load
	c.active.store(&policy)
	c.last.file = file
	return nil
}

// Stored sets the id of the stored change that put the policy into force.
func (c *Catalog) Stored(load string) {
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	c.active.load(load)
}

// want sets the sources to keep connected, and their pins. If want fails, the sources do not change.
func (c *Catalog) want(file *config.File, lock pins.Lock) error {
	all := declare(file, lock, config.Lookup)
	if errs := faults(all); len(errs) > 0 {
		return errs
	}
	found := c.replaceDeclared(file, c.last.declared, all)
	for _, w := range found.Warnings() {
		c.config.Log.Warn("policy: " + w.Error())
	}
	if errs := found.Errors(); len(errs) > 0 { // for example, two sources have a tool of the same name
		_ = c.replaceDeclared(c.last.file, all, c.last.declared) // the previous tools were registered without faults before
		return errs
	}
	c.last.declared = all
	servers := slices.Clone(c.config.Own)
	for _, s := range file.Servers {
		if c.IsOwn(s.Name) {
			c.config.Log.Info("a server of the policy is not started, because this program has a server with the same name", "server", s.Name)
			continue
		}
		servers = append(servers, s)
	}
	client := mcp.Open(mcp.Config{Servers: servers}) // this client only creates tools, and never connects
	for _, s := range servers[len(c.config.Own):] {
		for _, err := range pin(c.Registry, client, s.Name, lock) {
			c.config.Log.Warn("a pinned tool can't be used; pin it again with countersign tools pin", "server", s.Name, "error", err)
		}
	}
	c.mu.Lock()
	c.wanted = servers
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // the channel already holds a notice
	}
	return nil
}

// replaceDeclared registers the declared tools of a policy, and removes the sources that the policy does not declare.
func (c *Catalog) replaceDeclared(file *config.File, before, now []declared) yamldoc.Problems {
	for _, old := range before {
		if !slices.ContainsFunc(now, func(d declared) bool { return d.source == old.source }) {
			c.Remove(old.source)
		}
	}
	return register(c.Registry, file, now)
}

// IsOwn reports whether a source is a server of this program.
func (c *Catalog) IsOwn(source string) bool {
	return slices.ContainsFunc(c.config.Own, func(s config.Server) bool { return s.Name == source })
}

// Known returns the tools of a policy that is not in force yet. The result has all tools that are known without a
// connection to a server. The parameter lockName is the name of the lock file in error messages.
func (c *Catalog) Known(file *config.File, lock pins.Lock, lockName string) ([]check.Tool, error) {
	r, err := OfflineWith(file, lock, lockName)
	if err != nil {
		return nil, err
	}
	known := Described(r)
	for _, t := range append(Described(c.Registry), c.config.OwnTools...) {
		if (t.Source == "" || c.IsOwn(t.Source)) && !slices.ContainsFunc(known, func(k check.Tool) bool { return k.Name == t.Name }) {
			known = append(known, t)
		}
	}
	return known, nil
}

// serversFirst is how long Begin waits for the policy's servers. A slower server joins later.
const serversFirst = 2 * time.Second

// Begin connects the servers and keeps them connected. The returned function disconnects the servers and waits until
// the connections have ended. The end of ctx does not disconnect the servers, so current runs can finish. Before
// Begin returns, it waits for the servers' lists of tools. The wait for the policy's servers is short.
func (c *Catalog) Begin(ctx context.Context) (end func()) {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.match(lasting)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.keep(lasting)
	}()
	c.settle(ctx)
	return func() {
		stop()
		<-done
	}
}

// keep connects and drops servers when the wanted servers change. When ctx ends, keep drops all servers.
func (c *Catalog) keep(ctx context.Context) {
	for {
		select {
		case <-c.changed:
			c.match(ctx)
		case <-ctx.Done():
			c.drop(func(*connection) bool { return true })
			return
		}
	}
}

// match drops the servers that the policy no longer names, and the servers whose configuration has changed. Then match
// connects the missing servers.
func (c *Catalog) match(ctx context.Context) {
	c.mu.Lock()
	wanted := slices.Clone(c.wanted)
	c.mu.Unlock()
	stays := func(k *connection) bool {
		return slices.ContainsFunc(wanted, func(s config.Server) bool { return reflect.DeepEqual(s, k.Server) })
	}
	for _, name := range c.drop(func(k *connection) bool { return !stays(k) }) {
		if !slices.ContainsFunc(wanted, func(s config.Server) bool { return s.Name == name }) {
			c.Remove(name)
			c.config.Log.InfoContext(ctx, "the policy does not name this server any more; its tools are removed", "server", name)
		}
	}
	for _, s := range wanted {
		c.mu.Lock()
		_, there := c.kept[s.Name]
		c.mu.Unlock()
		if !there {
			c.connect(ctx, s)
		}
	}
}

// connect connects a server, and keeps it connected in the background.
func (c *Catalog) connect(ctx context.Context, s config.Server) {
	k := &connection{Server: s, done: make(chan struct{})}
	k.client = mcp.Open(mcp.Config{Servers: []config.Server{s}, Offer: c.offer, LeftOut: c.leftOut, Log: c.config.Log, Version: c.config.Version})
	ctx, k.cancel = context.WithCancel(ctx)
	c.mu.Lock()
	c.kept[s.Name] = k
	c.mu.Unlock()
	go func() {
		defer close(k.done)
		_ = k.client.Run(ctx) // always nil
	}()
}

// drop disconnects the servers for which the given function returns true, all at the same time. drop waits until the
// connections have ended, and returns the names of these servers.
func (c *Catalog) drop(which func(*connection) bool) (names []string) {
	c.mu.Lock()
	var going []*connection
	for name, k := range c.kept {
		if which(k) {
			going = append(going, k)
			delete(c.kept, name)
		}
	}
	c.mu.Unlock()
	for _, k := range going {
		k.cancel()
	}
	for _, k := range going {
		<-k.done
		names = append(names, k.Name)
	}
	return names
}

// settle waits until every server has listed its tools or has failed once. The wait for this program's own servers
// has no time limit. The wait for the policy's servers is short.
func (c *Catalog) settle(ctx context.Context) {
	brief, cancel := context.WithTimeout(ctx, serversFirst)
	defer cancel()
	for _, k := range c.connections() {
		within := brief
		if c.IsOwn(k.Name) {
			within = ctx
		}
		if k.client.Settled(within) != nil && ctx.Err() == nil {
			c.config.Log.WarnContext(ctx, "a server starts slowly; the bot starts without it", "server", k.Name)
		}
	}
}

// offer registers a server's current tools.
func (c *Catalog) offer(server string, tools []agent.Tool) {
	for i := range tools {
		c.calls.count(server, &tools[i])
		if c.config.Wrap != nil {
			c.config.Wrap(&tools[i])
		}
	}
	for _, err := range c.Replace(server, tools) {
		c.config.Log.Warn("a tool of a server can't be offered", "server", server, "problem", err)
		c.leftOut(server, err.Error())
	}
}

// leftOut reports a problem in a server's list of tools, such as a tool with an invalid definition.
func (c *Catalog) leftOut(server, problem string) {
	if c.config.leftOut != nil {
		c.config.leftOut(LeftOut{Source: server, Reason: problem})
	}
}

// connections returns the servers that the catalog keeps connected, sorted by name.
func (c *Catalog) connections() []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.kept), func(x, y *connection) int { return strings.Compare(x.Name, y.Name) })
}

// PolicyServers returns the names of the policy's servers.
func (c *Catalog) PolicyServers() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.wanted[len(c.config.Own):] {
		names = append(names, s.Name)
	}
	return names
}

// Servers returns the state of each server, sorted by name.
func (c *Catalog) Servers() []mcp.Status {
	var out []mcp.Status
	for _, k := range c.connections() {
		out = append(out, k.client.Status()...)
	}
	return out
}

// Reachable returns an error that names the servers that are not connected. The error is for /readyz. The bot works
// without these servers.
func (c *Catalog) Reachable(context.Context) error {
	var down []string
	for _, s := range c.Servers() {
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
	return fmt.Errorf("%s down: %s", counted(len(down), "server"), strings.Join(down, "; "))
}

// counted formats a number with its noun: "1 server", "2 servers".
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}
