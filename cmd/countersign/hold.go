package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"golang.org/x/sync/errgroup"

	"countersign/agent/gateway"
	"countersign/agent/gateway/hookserver"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/metrics"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
)

// held describes a bot that does not start until an operator has accepted the state of its store.
type held struct {
	why      error
	accepted func() // starts the bot
}

// hold delays the start of a bot whose store is older than the signed heads, or whose database was restored or copied.
// Until an operator has accepted the loss, hold serves the admin address and the control socket, and refuses all
// requests of Slack and of other agents. Afterwards, the bot uses the returned listeners.
func hold(ctx context.Context, env config.Env, policies *policyfile.Source, db openstore.Store, l listeners, log *slog.Logger) (listeners, error) {
	for {
		older, err := audit.FindOlder(ctx, openstore.Name(env.Store), env.Audit.Heads, db)
		if older == nil || err != nil {
			return l, err
		}
		what := "the store is older than its signed heads"
		if older.Number == 0 {
			what = "the database was restored or copied"
		}
		log.Error(what+", so the bot does not start", "why", older, "admin", l.admin.Addr().String(), "control", env.Control)
		if err := holdOnce(ctx, older, env, policies, db, l, log); err != nil || ctx.Err() != nil {
			return l, err
		}
		log.Info("the loss was accepted, and the bot starts", "head", older.Number)
		if l, err = l.reopen(); err != nil {
			return l, err
		}
	}
}

// holdOnce serves until ctx ends or an operator accepts the loss.
func holdOnce(ctx context.Context, why *audit.OlderStore, env config.Env, policies *policyfile.Source, db openstore.Store, l listeners, log *slog.Logger) error {
	socket, err := openControl(env.Control, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wf := workflow.New(workflow.Config{Store: db, Policy: policies.Tools.Policy, Tools: policies.Tools.Registry, Log: log})
	m := metrics.New(db, policies.Tools.Policy)
	m.WatchDisk(wf)
	g, ctx := errgroup.WithContext(ctx)
	h := admin([]probe{
		{name: "store", ready: func(ctx context.Context) error { return takesWrites(ctx, wf) }},
		{name: "heads", ready: func(context.Context) error { return why }},
	}, m.Handler())
	g.Go(func() error { return serveHTTP(ctx, l.admin, h) })
	g.Go(func() error { return newNotifier(os.Getenv, os.Getpid(), log).watch(ctx, db) }) // systemd gets the report that the held bot is up
	if l.slack != nil {
		g.Go(func() error { return serveHTTP(ctx, l.slack, http.HandlerFunc(refuse)) })
	}
	if l.gateway != nil {
		g.Go(func() error { return serveHTTP(ctx, l.gateway, heldGateway(log)) })
	}
	if socket != nil {
		r := newControlServer(env.Store.Path, env.Audit, db, wf, log)
		r.held = &held{why: why, accepted: stop}
		g.Go(func() error { return r.serve(ctx, socket) })
	}
	g.Go(func() error { return wf.WatchPlace(ctx) })
	return g.Wait()
}

// heldGateway rejects the requests of other agents while the bot is held. It denies the events of hooks, because after
// an HTTP error most coding agents run the call.
func heldGateway(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/hooks/", hookserver.Deny(errors.New("The bot does not work until an operator has accepted the state of its store"), log))
	mux.HandleFunc("/", gateway.Held)
	return mux
}

// refuse rejects a request of Slack while the bot is held.
func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// reopen reopens closed listeners at the same addresses.
func (l listeners) reopen() (listeners, error) {
	for _, one := range []struct {
		l             *net.Listener
		what, setting string
	}{
		{&l.admin, "the admin server", "COUNTERSIGN_ADMIN_ADDR"},
		{&l.slack, "the server for Slack's requests", "COUNTERSIGN_HTTP_ADDR"},
		{&l.gateway, "the gateway", "COUNTERSIGN_GATEWAY_ADDR"},
	} {
		if *one.l == nil {
			continue
		}
		opened, err := listen(one.what, one.setting, (*one.l).Addr().String())
		if err != nil {
			return l, fmt.Errorf("the loss was accepted, but the bot can't continue; start it again: %w", err)
		}
		*one.l = opened
	}
	return l, nil
}
