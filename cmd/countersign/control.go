package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"

	"countersign/approvers/desk"
	"countersign/internal/control"
	"countersign/internal/redact"
	"countersign/store"
)

// reception does the tasks of those who come to the control socket, with the store and the desk of the running bot.
type reception struct {
	path  string // of the store
	store store.Store
	desk  *desk.Desk
	long  chan struct{} // a place for each long task under way
	log   *slog.Logger
}

// maxLong is how many long tasks are done at once. The others wait: the bot's work comes first.
const maxLong = 4

func newReception(path string, s store.Store, d *desk.Desk, log *slog.Logger) *reception {
	return &reception{path: path, store: s, desk: d, long: make(chan struct{}, maxLong), log: log}
}

// serve does tasks until ctx ends.
func (r *reception) serve(ctx context.Context, l *control.Listener) error {
	return serveOn(ctx, control.Server{Do: r.do, Version: version(), Log: r.log}.HTTP(), l)
}

func (r *reception) do(ctx context.Context, uid int, c control.Call) *control.Failure {
	err := r.attend(ctx, uid, c)
	if err == nil {
		return nil
	}
	if errors.Is(err, errSkew) {
		err = couldNot("the bot (%s) and this program (%s) are of different versions: use the bot's own program, or start the bot anew (%w)", version(), c.Version, err)
	}
	return &control.Failure{Code: exitCode(err), Text: redact.Error(err)}
}

func (r *reception) attend(ctx context.Context, uid int, c control.Call) error {
	all := tasks()
	i := slices.IndexFunc(all, func(t handler) bool { return t.named() == c.Task })
	if i < 0 {
		return errSkew
	}
	if !sameFile(r.path, c.Store) {
		return misused("the bot that answers here holds another store, %s: set COUNTERSIGN_CONTROL to the socket of the one that holds %s", r.path, c.Store)
	}
	who := operator(uid)
	r.log.Info("a task at the control socket", "task", c.Task, "operator", who.Login())
	if all[i].isLong() {
		select {
		case r.long <- struct{}{}:
			defer func() { <-r.long }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	running := func() (*desk.Desk, error) { return r.desk, nil }
	w := workplace{store: r.store, desk: running, bare: running, who: who, in: c.In, out: c.Out, hurry: c.Hurry}
	return all[i].handle(ctx, w, c.Options)
}

func sameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// openControl opens the control socket of a bot. Where the system does not say who connects there is none.
func openControl(path string, log *slog.Logger) (*control.Listener, error) {
	l, err := control.Listen(path)
	switch {
	case errors.Is(err, control.ErrUnsupported):
		log.Warn("there is no control socket: pending, decide, pause and the like work only while the bot is stopped", "why", err)
		return nil, nil
	case err != nil:
		return nil, misused("the control socket can't be opened (COUNTERSIGN_CONTROL): %w", err)
	}
	return l, nil
}

// version says which program this is.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
