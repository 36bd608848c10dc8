package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent/gateway"
	"countersign/agent/gateway/hookserver"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
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
// requests of Slack and of other agents. Afterwards, the bot uses the same listeners.
func hold(ctx context.Context, env config.Env, policies *policyfile.Source, db openstore.Store, l listeners, log *slog.Logger) error {
	for {
		older, err := audit.FindOlder(ctx, openstore.Name(env.Store), env.Audit.Heads, db)
		if older == nil || err != nil {
			return err
		}
		what := "the store is older than its signed heads"
		if older.Number == 0 {
			what = "the database was restored or copied"
		}
		log.ErrorContext(ctx, what+", so the bot does not start", "why", older, "admin", l.admin.Addr().String(), "control", env.Control)
		if err := holdOnce(ctx, older, env, policies, db, l, log); err != nil || ctx.Err() != nil {
			return err
		}
		log.InfoContext(ctx, "the loss was accepted, and the bot starts", "head", older.Number)
		if err := l.acceptAgain(); err != nil {
			return err
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
	m.Hold()
	m.WatchBuild(cli.ThisBuild())
	m.WatchDisk(wf)
	g, ctx := errgroup.WithContext(ctx)
	h := admin([]probe{
		{name: "store", ready: func(ctx context.Context) error { return takesWrites(ctx, wf) }},
		{name: "heads", ready: func(context.Context) error { return why }},
	}, m.Handler())
	g.Go(func() error { return serveHTTP(ctx, keptOpen{l.admin}, h) })
	g.Go(func() error { return newNotifier(os.Getenv, os.Getpid(), log).watch(ctx, db) }) // systemd gets the report that the held bot is up
	if l.slack != nil {
		g.Go(func() error { return serveHTTP(ctx, keptOpen{l.slack}, http.HandlerFunc(refuse)) })
	}
	if l.gateway != nil {
		g.Go(func() error { return serveHTTP(ctx, keptOpen{l.gateway}, heldGateway(log)) })
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

// keptOpen is a TCP listener whose socket stays open when a server closes the listener. So no connection is refused
// between the end of that server and the start of the next one: the operating system queues the connections.
type keptOpen struct{ net.Listener }

// Close ends all calls of Accept.
func (l keptOpen) Close() error { return l.setDeadline(time.Now()) }

// acceptAgain undoes Close.
func (l keptOpen) acceptAgain() error { return l.setDeadline(time.Time{}) }

func (l keptOpen) setDeadline(t time.Time) error {
	return l.Listener.(*net.TCPListener).SetDeadline(t)
}

// acceptAgain lets the next servers accept connections on the listeners that hold has used.
func (l listeners) acceptAgain() error {
	var errs []error
	for _, one := range []net.Listener{l.admin, l.slack, l.gateway} {
		if one != nil {
			errs = append(errs, keptOpen{one}.acceptAgain())
		}
	}
	return errors.Join(errs...)
}
