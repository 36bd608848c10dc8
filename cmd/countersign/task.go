package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/control"
	"countersign/store"
	"countersign/store/postgres"
)

// task is an operation of a command on the store. If no process holds the store, the command runs the task itself.
// Otherwise the running bot runs the task and sends the output (see control.go). Only the command opens files. A task
// reads and writes only the given streams.
type task[O any] struct {
	Name      string
	Long      bool // the task may take long; the number of concurrent long tasks is limited
	WhileHeld bool // a held bot runs the task: the task only reads, or it ends the hold
	Run       func(ctx context.Context, w taskEnv, o O) error
}

type none struct{}

// taskEnv is the environment of a task.
type taskEnv struct {
	Store    store.Store
	Workflow func() (*workflow.Workflow, error) // returns the running bot's workflow; without a bot, one that is created on demand
	Bare     func() (*workflow.Workflow, error) // the same, but without a policy: for use when the policy file is invalid
	Who      approvers.PersonID                 // the operator, as identified by the system
	In       io.Reader                          // the command's input, if the task takes any
	Out      io.Writer
	Path     string              // of the store
	Audit    config.Audit        // location of the store's signing key and heads
	Idle     bool                // no bot runs, or the bot is held
	Hurry    func(time.Duration) // sets a time limit for reading each piece of output, for tasks that block others
}

// Do runs the task for a command.
func (t task[O]) Do(ctx context.Context, o O, in io.Reader, out io.Writer) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	for end := time.Now().Add(heldFor); ; {
		db, err := openstore.Existing(ctx, env)
		if !errors.Is(err, store.ErrLocked) && isMoved(ctx, env) {
			if db != nil { // the store appeared in the meantime
				if err := db.Close(); err != nil {
					return err
				}
			}
			return t.Ask(ctx, env, o, in, out)
		}
		if err == nil {
			w := taskEnv{
				Store: db, Who: cli.Operator(os.Geteuid()), In: in, Out: out, Path: env.Store.Path, Audit: env.Audit, Idle: true, Hurry: func(time.Duration) {},
				Workflow: func() (*workflow.Workflow, error) { return workflowAfter(ctx, env, db) },
				Bare:     func() (*workflow.Workflow, error) { return workflowWithoutPolicy(ctx, env, db, nil) },
			}
			return errors.Join(t.Run(ctx, w, o), db.Close())
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
			return cli.CouldNot("%w. It does not answer at %s either: set COUNTERSIGN_CONTROL as serve has it", err, env.Control)
		}
		select { // another command or a starting bot may hold the store
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// The method beside runs the task on a database on which replicas are working.
func (t task[O]) beside(ctx context.Context, env config.Env, o O, in io.Reader, out io.Writer) error {
	db, err := openstore.Database(ctx, env.Store, postgres.Options{}, true)
	if err != nil {
		return err
	}
	local := func() (*workflow.Workflow, error) { return localWorkflow(ctx, env, db, db.Visit()) }
	w := taskEnv{
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
func (t task[O]) Ask(ctx context.Context, env config.Env, o O, in io.Reader, out io.Writer) error {
	options, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(env.Store.Path)
	if err != nil {
		return cli.CouldNot("the store's path can't be determined: %w", err)
	}
	client := control.Client{Path: env.Control, Trust: owners(path)}
	err = client.Do(ctx, control.Call{Task: t.Name, Options: options, Store: openstore.ID(env.Store, path), Version: version(), In: in, Out: out})
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
	case errors.Is(err, control.ErrLost):
		return cli.CouldNot("the bot ended before it reported the outcome, so the command may or may not have taken effect; look before you repeat it: %w", err)
	case err != nil:
		return cli.CouldNot("the bot that holds the store can't be asked: %w", err)
	}
	return nil
}

// workflowAfter returns a workflow on the store of a stopped bot. This workflow can list and report the store's
// interrupted runs.
func workflowAfter(ctx context.Context, env config.Env, db store.Store) (*workflow.Workflow, error) {
	wf, err := localWorkflow(ctx, env, db, nil)
	if err != nil {
		return nil, err
	}
	if err := wf.Runs.MarkInterrupted(ctx); err != nil {
		return nil, cli.CouldNot("the bot stopped while a tool ran, and that can't be recorded: %w", err)
	}
	return wf, nil
}

// workflowWithoutPolicy returns a workflow for use without a valid policy. In this workflow, nobody has a role.
func workflowWithoutPolicy(ctx context.Context, env config.Env, db store.Store, r store.Replica) (*workflow.Workflow, error) {
	wf, err := localWorkflow(ctx, env, db, r)
	if cli.Code(err) != cli.ExitUsage {
		return wf, err
	}
	noPolicy := func() *approvers.Policy { return new(approvers.Policy) }
	return workflow.New(workflow.Config{Store: db, Replica: r, Policy: noPolicy, Tools: new(agent.Registry), Log: slog.New(slog.DiscardHandler)}), nil
}

// localWorkflow returns a workflow of this process. If r is nil, no other process may have the store open. If the store
// is a database, the workflow uses the policy in force in the database. If the database has no policy in force, or the
// store is a file, the workflow uses the policy file. The policy file comes into force when the bot starts.
func localWorkflow(ctx context.Context, env config.Env, db store.Store, r store.Replica) (*workflow.Workflow, error) {
	policy, tools, err := (*approvers.Policy)(nil), (*agent.Registry)(nil), store.ErrNotFound
	if env.Store.Backend == config.Postgres {
		policy, tools, err = policyfile.ReadStored(ctx, db)
	}
	if errors.Is(err, store.ErrNotFound) {
		if r != nil { // the first replica is just starting
			return nil, cli.CouldNot("no policy is in force in %s yet: run the command again when the bot is up", env.Store)
		}
		policy, tools, err = policyfile.Read(env.Policy)
	}
	if err != nil {
		return nil, err
	}
	return workflow.New(workflow.Config{Store: db, Replica: r, Policy: func() *approvers.Policy { return policy }, Tools: tools, Log: logger(slog.LevelError, config.TextLog)}), nil
}

// handler is a task that the running bot finds by its name.
type handler interface {
	Named() string
	IsLong() bool
	RunsWhileHeld() bool
	Handle(ctx context.Context, w taskEnv, options json.RawMessage) error
}

func (t task[O]) Named() string { return t.Name }

func (t task[O]) IsLong() bool { return t.Long }

func (t task[O]) RunsWhileHeld() bool { return t.WhileHeld }

// Handle runs the task with received options. An unknown option is an error, because the task may not work correctly
// without it.
func (t task[O]) Handle(ctx context.Context, w taskEnv, options json.RawMessage) error {
	var o O
	d := json.NewDecoder(bytes.NewReader(options))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("%w: %w", errSkew, err)
	}
	return t.Run(ctx, w, o)
}

// errSkew means that the command and the bot have different versions.
var errSkew = errors.New("the bot does not know this")

// tasks returns all tasks that a running bot accepts.
func tasks() []handler {
	return []handler{
		auditListTask, auditVerifyTask, auditEraseTask, auditExportTask, auditEvidenceTask, auditPaceTask, auditReportTask, acceptLossTask,
		observedTask, storedTask, pendingTask, decideTask, reportTask, pauseTask, resumeTask, backupTask, doctorTask, movedTask, storeCheckTask, clientResumeTask,
	}
}
