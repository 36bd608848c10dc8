package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"

	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/storecmd"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/internal/control"
	"countersign/internal/redact"
	"countersign/store"
)

// controlServer runs the tasks that arrive on the control socket. The tasks use the running bot's store and workflow.
type controlServer struct {
	path     string       // path of the store
	audit    config.Audit // location of the store's signing key and heads
	held     *held        // nil: the bot is not held
	store    store.Store
	workflow *workflow.Workflow
	long     chan struct{} // a slot for each long task in progress
	log      *slog.Logger
}

// maxLong is the maximum number of concurrent long tasks. Further long tasks wait, so that they do not slow down the
// bot's own work.
const maxLong = 4

func newControlServer(path string, audit config.Audit, s store.Store, wf *workflow.Workflow, log *slog.Logger) *controlServer {
	return &controlServer{path: path, audit: audit, store: s, workflow: wf, long: make(chan struct{}, maxLong), log: log}
}

// serve handles tasks until ctx ends.
func (r *controlServer) serve(ctx context.Context, l *control.Listener) error {
	return serveOn(ctx, control.Server{Do: r.do, Version: version(), Log: r.log}.HTTP(), l)
}

func (r *controlServer) do(ctx context.Context, uid int, c control.Call) *control.Failure {
	err := r.attend(ctx, uid, c)
	if err == nil {
		if r.held != nil && c.Task == storecmd.AcceptLossTask {
			r.held.accepted()
		}
		return nil
	}
	if errors.Is(err, task.ErrSkew) {
		err = cli.CouldNot("the bot (%s) and this program (%s) are of different versions: use the bot's own program, or restart the bot (%w)", version(), c.Version, err)
	}
	return &control.Failure{Code: cli.Code(err), Text: redact.Error(err)}
}

func (r *controlServer) attend(ctx context.Context, uid int, c control.Call) error {
	all := tasks()
	i := slices.IndexFunc(all, func(t task.Handler) bool { return t.Named() == c.Task })
	if i < 0 {
		return task.ErrSkew
	}
	if !r.isOwnStore(c.Store) {
		return cli.Misused("the bot that answers here holds another store, %s: set COUNTERSIGN_CONTROL to the socket of the bot that holds %s", r.path, c.Store)
	}
	if r.held != nil && !all[i].RunsWhileHeld() {
		return task.HeldError(r.held.why)
	}
	who := cli.Operator(uid)
	r.log.InfoContext(ctx, "a task was received at the control socket", "task", c.Task, "operator", who.Login())
	if all[i].IsLong() {
		select {
		case r.long <- struct{}{}:
			defer func() { <-r.long }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	running := func() (*workflow.Workflow, error) { return r.workflow, nil }
	w := task.Env{Store: r.store, Workflow: running, Bare: running, Who: who, In: c.In, Out: c.Out, Hurry: c.Hurry, Path: r.path, Audit: r.audit, Idle: r.held != nil}
	return all[i].Handle(ctx, w, c.Options)
}

// isOwnStore reports whether a path names the bot's store. The result is true if the bot's open file is at this path,
// or was at this path before somebody moved the file away.
func (r *controlServer) isOwnStore(path string) bool {
	s, ok := r.store.(interface{ Holds(path string) bool })
	if !ok {
		return cli.SameFile(r.path, path)
	}
	if s.Holds(path) {
		return true
	}
	return errors.Is(r.workflow.InPlace(), store.ErrMoved) && sameName(r.path, path)
}

// sameName reports whether two paths name the same location. The file need not exist.
func sameName(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	if errA != nil || errB != nil {
		return false
	}
	return a == b || filepath.Base(a) == filepath.Base(b) && cli.SameFile(filepath.Dir(a), filepath.Dir(b))
}

// openControl opens a bot's control socket. openControl returns nil on systems that don't identify the peer of a
// connection.
func openControl(path string, log *slog.Logger) (*control.Listener, error) {
	l, err := control.Listen(path)
	switch {
	case errors.Is(err, control.ErrUnsupported):
		log.Warn("there is no control socket: commands such as pending, decide and pause work only while the bot is stopped", "why", err)
		return nil, nil
	case errors.Is(err, control.ErrLive):
		return nil, cli.CouldNot("the control socket can't be opened (COUNTERSIGN_CONTROL): %w", err)
	case err != nil:
		return nil, cli.Misused("the control socket can't be opened (COUNTERSIGN_CONTROL): %w", err)
	}
	return l, nil
}

func version() string { return cli.ThisBuild().Version }

// The function "tasks" returns all tasks that a running bot accepts.
func tasks() []task.Handler {
	return slices.Concat(auditcmd.Tasks(), storecmd.Tasks(), []task.Handler{
		observedTask, storedTask, pendingTask, decideTask, reportTask, pauseTask, resumeTask, doctorTask, task.Moved, task.Held, clientResumeTask,
	})
}
