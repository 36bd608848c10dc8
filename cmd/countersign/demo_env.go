package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/shop"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/store/bolt"
)

// demoEnv holds the demo's services around the bot: the workspace, the model and the shop, at one address.
type demoEnv struct {
	base     string
	now      func() time.Time
	ws       *workspace.Server
	shop     *shop.Shop
	store    *bolt.Store
	path     string // of the store
	seal     sealing
	l        net.Listener
	model    agent.Model
	listener *demoListener // nil: Socket Mode
}

// openDemoEnv opens the services around the bot. It does not serve yet.
func openDemoEnv(ctx context.Context, dir string, o demoOptions, env config.Env, now func() time.Time, log *slog.Logger) (st demoEnv, err error) {
	if st.l, err = listen("the demo", "--addr", o.addr); err != nil {
		return st, err
	}
	defer func() {
		if err != nil {
			st.l.Close()
			st.listener.close()
		}
	}()
	st.now = now
	st.base = "http://" + st.l.Addr().String()
	st.path = filepath.Join(dir, "countersign.db")
	beside := config.AuditBeside(st.path)
	if err := audit.MayCreate(st.path, beside.Heads); err != nil {
		return st, err
	}
	if st.store, err = openStore(st.path); err != nil {
		return st, err
	}
	older, err := audit.FindOlder(ctx, st.path, beside.Heads, st.store)
	if err == nil && older != nil {
		err = cli.CouldNot("%w", older)
	}
	if err != nil {
		return st, errors.Join(err, st.store.Close())
	}
	if st.seal, err = openSealing(ctx, beside, st.store, log); err != nil {
		return st, errors.Join(err, st.store.Close())
	}
	if st.shop, err = shop.Open(filepath.Join(dir, "shop.json"), now); err != nil {
		return st, errors.Join(cli.CouldNot("the sample shop can't be opened: %w", err), st.store.Close())
	}
	seed := workspace.DemoSeed()
	if o.transport == string(config.HTTPMode) {
		if st.listener, err = openDemoListener(); err != nil {
			return st, errors.Join(err, st.store.Close())
		}
		seed.App.RequestURLs = st.listener.urls()
	}
	st.ws, err = workspace.New(workspace.Config{
		Seed: seed, DataFile: filepath.Join(dir, "workspace.json"), BaseURL: st.base, Now: now, Log: log,
	})
	if err != nil {
		return st, errors.Join(cli.CouldNot("the workspace can't be opened: %w", err), st.store.Close())
	}
	st.model = agent.Model{BaseURL: env.ModelURL, Key: env.ModelKey.Reveal(), Name: env.Model}
	if !env.HasModel() {
		st.model = agent.Model{BaseURL: st.base + "/v1", Key: "demo", Name: scriptedmodel.DefaultModel}
	}
	return st, nil
}

// shopServer is the name of the sample shop as an MCP server.
const shopServer = "shop"

// shopPath is the path of the shop's tools at the demo's address.
const shopPath = "/shop/mcp"

// shopCatalog configures a catalog with the tools of the sample shop, which are reached like those of any MCP server.
func shopCatalog(s *shop.Shop, url string) catalog.Config {
	server := config.Server{
		Name: shopServer, URL: url, Bare: true, Allow: []string{"127.0.0.0/8", "::1/128"}, Timeout: 30 * time.Second, MaxResult: 1 << 20,
		Effects: map[string]approvers.Effect{},
	}
	var known []check.Tool
	for _, t := range s.Tools() {
		server.Effects[t.Name] = effects[t.Effect]
		known = append(known, check.Tool{Name: t.Name, Schema: t.Schema, Source: shopServer})
	}
	return catalog.Config{Own: []config.Server{server}, OwnTools: known, Version: version()}
}

// effects maps the sample shop's protection levels to effects.
var effects = map[string]approvers.Effect{
	shop.EffectRead:        approvers.ReadOnly,
	shop.EffectIdempotent:  approvers.Idempotent,
	shop.EffectUnprotected: approvers.Unprotected,
}

func (st demoEnv) close() error {
	st.l.Close()
	st.listener.close()
	return errors.Join(st.ws.Close(), st.store.Close())
}

// around serves the demo's services while fn runs.
func (st demoEnv) around(ctx context.Context, fn func(context.Context) error) error {
	mux := http.NewServeMux()
	mux.Handle("/v1/", scriptedmodel.New(scriptedmodel.Config{Now: st.now}))
	mux.Handle("/shop/", http.StripPrefix("/shop", st.shop.Handler()))
	mux.Handle("/", st.ws.Handler())
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return serveHTTP(serving, st.l, mux) })
	err := fn(ctx)
	err = errors.Join(err, st.ws.Close())
	stop()
	return errors.Join(err, g.Wait())
}

// demoListener is the demo bot's address for the workspace's HTTP requests. A restarted bot uses the same address.
type demoListener struct {
	addr  string
	first net.Listener // until it is first used
}

func openDemoListener() (*demoListener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, cli.CouldNot("the demo's bot can't listen for the workspace's requests: %w", err)
	}
	return &demoListener{addr: l.Addr().String(), first: l}, nil
}

func (d *demoListener) listen() (net.Listener, error) {
	if l := d.first; l != nil {
		d.first = nil
		return l, nil
	}
	return net.Listen("tcp", d.addr)
}

func (d *demoListener) close() {
	if d != nil && d.first != nil {
		d.first.Close()
	}
}

// urls returns the bot's URLs for the workspace.
func (d *demoListener) urls() delivery.RequestURLs {
	return delivery.URLsAt("http://" + d.addr + "/slack/")
}
