package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/internal/control"
	"countersign/store"
	"countersign/store/postgres"
)

// Task is an operation of a command on the store, with the options O. The command, and not the task, opens the files
// that the operator names. A task has no input and no output except the given streams.
type Task[O any] struct {
	Name      string
	Long      bool // the task may take long; the number of concurrent long tasks is limited
	Reads     bool // the task only reads: if no bot runs, the task gets the store as it is, without a repair or an upgrade
	WhileHeld bool // the task also runs while the bot is held (see Idle), or on the store of a stopped bot that would be held: it only reads, or it ends the hold
	Run       func(ctx context.Context, w Env, o O) error
}

// None is the type of the options of a task without options.
type None struct{}

// Env is the environment of a task.
type Env struct {
	Store    store.Store
	Workflow func() (*workflow.Workflow, error) // returns the running bot's workflow; without a bot, a workflow that is created on demand
	Bare     func() (*workflow.Workflow, error) // like Workflow, but with an empty policy if the policy can't be used
	Who      approvers.PersonID                 // the operator, as identified by the system
	In       io.Reader                          // the command's input, if the task takes any
	Out      io.Writer
	Path     string              // path of the store
	Audit    config.Audit        // location of the store's signing key and heads
	Idle     bool                // no bot runs, or the bot is held: it waits until an operator accepts lost records
	Hurry    func(time.Duration) // limits how long the reader may take for a piece of output; used by tasks that block other work
}

// Do runs the task for a command.
func (t Task[O]) Do(ctx context.Context, o O, in io.Reader, out io.Writer) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	open := openstore.Existing
	if t.Reads {
		open = openstore.ToRead
	}
	for end := time.Now().Add(heldFor); ; {
		db, err := open(ctx, env)
		if !errors.Is(err, store.ErrLocked) && IsMoved(ctx, env) {
			if db != nil { // the store appeared in the meantime
				if err := db.Close(); err != nil {
					return err
				}
			}
			return t.Ask(ctx, env, o, in, out)
		}
		if err == nil {
			w := Env{
				Store: db, Who: cli.Operator(os.Geteuid()), In: in, Out: out, Path: env.Store.Path, Audit: env.Audit, Idle: true, Hurry: func(time.Duration) {},
				Workflow: func() (*workflow.Workflow, error) { return workflowAfter(ctx, env, db) },
				Bare:     func() (*workflow.Workflow, error) { return workflowWithoutPolicy(ctx, env, db, nil) },
			}
			err := t.mayRun(ctx, w)
			if err == nil {
				err = t.Run(ctx, w, o)
			}
			return errors.Join(err, db.Close())
		}
		if !errors.Is(err, store.ErrLocked) {
			return err
		}
		asked := t.Ask(ctx, env, o, in, out)
		if !errors.Is(asked, control.ErrNobody) {
			return asked
		}
		if env.Store.Backend == config.Postgres { // the replicas are on other machines
			return t.beside(ctx, env, o, in, out)
		}
		if time.Now().After(end) {
			return cli.CouldNot("%w. It does not answer at %s either: set COUNTERSIGN_CONTROL as serve has it, or wait if it is a bot that is starting or stopping", err, env.Control)
		}
		select { // another command or a starting bot may hold the store
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// mayRun returns an error if the next bot on the store will be held, and the task does not run while a bot is held.
func (t Task[O]) mayRun(ctx context.Context, w Env) error {
	if t.WhileHeld {
		return nil
	}
	older, err := w.Older(ctx)
	if older != nil {
		return HeldError(older)
	}
	return err
}

// The method "beside" runs the task on a database on which replicas are working.
func (t Task[O]) beside(ctx context.Context, env config.Env, o O, in io.Reader, out io.Writer) error {
	db, err := openstore.Database(ctx, env.Store, postgres.Options{}, true)
	if err != nil {
		return err
	}
	local := func() (*workflow.Workflow, error) { return LocalWorkflow(ctx, env, db, db.Visit()) }
	w := Env{
		Store: db, Who: cli.Operator(os.Geteuid()), In: in, Out: out, Path: env.Store.Path, Audit: env.Audit, Hurry: func(time.Duration) {},
		Workflow: local, Bare: func() (*workflow.Workflow, error) { return workflowWithoutPolicy(ctx, env, db, db.Visit()) },
	}
	err = t.Run(ctx, w, o)
	if errors.Is(err, store.ErrPolicyChanged) {
		err = cli.CouldNot("nothing was done, because another policy came into force meanwhile: run the command again: %w", err)
	}
	return errors.Join(err, db.Close())
}

// heldFor is how long a command waits if another process has locked the store and does not answer.
const heldFor = 2 * time.Second

// Ask sends the task to the running bot.
func (t Task[O]) Ask(ctx context.Context, env config.Env, o O, in io.Reader, out io.Writer) error {
	options, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(env.Store.Path)
	if err != nil {
		return cli.CouldNot("the store's path can't be determined: %w", err)
	}
	client := control.Client{Path: env.Control, Trust: owners(path)}
	err = client.Do(ctx, control.Call{Task: t.Name, Options: options, Store: openstore.ID(env.Store, path), Version: cli.ThisBuild().Version, In: in, Out: out})
	var failed *control.Failure
	switch {
	case errors.As(err, &failed):
		return &cli.Error{Code: failed.Code, Err: errors.New(failed.Text)}
	case errors.Is(err, control.ErrNobody):
		return err
	case errors.Is(err, control.ErrPath):
		return cli.Misused("%w; choose one with COUNTERSIGN_CONTROL, for serve too", err)
	case errors.Is(err, control.ErrOutput):
		return cli.CouldNot("the bot's output can't be written: %w", err)
	case errors.Is(err, control.ErrLost) && ctx.Err() != nil:
		return cli.CouldNot("you stopped the command before the bot reported the outcome, so it may or may not have taken effect; look before you repeat it: %w", err)
	case errors.Is(err, control.ErrLost):
		return cli.CouldNot("the bot ended before it reported the outcome, so the command may or may not have taken effect; look before you repeat it: %w", err)
	case err != nil:
		return cli.CouldNot("the bot that holds the store can't be asked: %w", err)
	}
	return nil
}

// Handler is a task that the running bot finds by its name.
type Handler interface {
	Named() string
	IsLong() bool
	RunsWhileHeld() bool
	Handle(ctx context.Context, w Env, options json.RawMessage) error
}

// Named returns the name of the task.
func (t Task[O]) Named() string { return t.Name }

// IsLong reports whether the task may take long.
func (t Task[O]) IsLong() bool { return t.Long }

// RunsWhileHeld reports whether a held bot runs the task.
func (t Task[O]) RunsWhileHeld() bool { return t.WhileHeld }

// Handle runs the task with received options. An unknown option is an error, because the task may not work correctly
// without it.
func (t Task[O]) Handle(ctx context.Context, w Env, options json.RawMessage) error {
	var o O
	d := json.NewDecoder(bytes.NewReader(options))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("%w: %w", ErrSkew, err)
	}
	return t.Run(ctx, w, o)
}

// ErrSkew means that the command and the bot have different versions.
var ErrSkew = errors.New("the bot does not know this task")
