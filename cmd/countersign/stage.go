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
	"countersign/approvers"
	"countersign/config"
	"countersign/internal/scriptedmodel"
	"countersign/internal/shop"
	"countersign/internal/workspace"
	"countersign/store/bolt"
)

// stage is what the demo starts around the bot: the workspace, the model and the shop, at one address.
type stage struct {
	base    string
	now     func() time.Time
	ws      *workspace.Server
	shop    *shop.Shop
	store   *bolt.Store
	path    string // of the store
	seal    sealing
	l       net.Listener
	model   agent.Model
	doorway *doorway // nil: Socket Mode
}

// openStage opens everything around the bot. Nothing is served yet.
func openStage(ctx context.Context, dir string, o demoOptions, env config.Env, now func() time.Time, log *slog.Logger) (st stage, err error) {
	if st.l, err = listen("the demo", "--addr", o.addr); err != nil {
		return st, err
	}
	defer func() {
		if err != nil {
			st.l.Close()
			st.doorway.close()
		}
	}()
	st.now = now
	st.base = "http://" + st.l.Addr().String()
	st.path = filepath.Join(dir, "countersign.db")
	if st.store, err = openStore(st.path); err != nil {
		return st, err
	}
	if st.seal, err = openSealing(ctx, config.AuditBeside(st.path), st.store, log); err != nil {
		return st, errors.Join(err, st.store.Close())
	}
	if st.shop, err = shop.Open(filepath.Join(dir, "shop.json"), now); err != nil {
		return st, errors.Join(couldNot("the sample shop can't be opened: %w", err), st.store.Close())
	}
	seed := workspace.DemoSeed()
	if o.transport == string(config.HTTPMode) {
		if st.doorway, err = openDoorway(); err != nil {
			return st, errors.Join(err, st.store.Close())
		}
		seed.App.RequestURLs = st.doorway.urls()
	}
	st.ws, err = workspace.New(workspace.Config{
		Seed: seed, DataFile: filepath.Join(dir, "workspace.json"), BaseURL: st.base, Now: now, Log: log,
	})
	if err != nil {
		return st, errors.Join(couldNot("the workspace can't be opened: %w", err), st.store.Close())
	}
	st.model = agent.Model{BaseURL: env.ModelURL, Key: env.ModelKey.Reveal(), Name: env.Model}
	if !env.HasModel() {
		st.model = agent.Model{BaseURL: st.base + "/v1", Key: "demo", Name: scriptedmodel.DefaultModel}
	}
	return st, nil
}

// shopServer is what the sample shop is called as an MCP server.
const shopServer = "shop"

// shopPath is where the demo's address has its tools.
const shopPath = "/shop/mcp"

// shopTools are the tools of the sample shop, reached at an address of this machine as any MCP server is, and what a policy names besides.
func shopTools(s *shop.Shop, url string, log *slog.Logger) (*toolbox, error) {
	server := config.Server{
		Name: shopServer, URL: url, Bare: true, Allow: []string{"127.0.0.0/8", "::1/128"}, Timeout: 30 * time.Second, MaxResult: 1 << 20,
		Effects: map[string]approvers.Effect{},
	}
	var known []config.Tool
	for _, t := range s.Tools() {
		server.Effects[t.Name] = effects[t.Effect]
		known = append(known, config.Tool{Name: t.Name, Schema: t.Schema, Source: shopServer})
	}
	b, err := newToolbox(log, server)
	if err != nil {
		return nil, err
	}
	b.ours = known
	return b, nil
}

// effects names the sample shop's protection levels in the domain's words.
var effects = map[string]approvers.Effect{
	shop.EffectRead:        approvers.ReadOnly,
	shop.EffectIdempotent:  approvers.Idempotent,
	shop.EffectUnprotected: approvers.Unprotected,
}

func (st stage) close() error {
	st.l.Close()
	st.doorway.close()
	return errors.Join(st.ws.Close(), st.store.Close())
}

// around serves the stage while fn runs, and takes it down afterwards.
func (st stage) around(ctx context.Context, fn func(context.Context) error) error {
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
