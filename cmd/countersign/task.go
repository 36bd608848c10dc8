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
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/config"
	"countersign/internal/control"
	"countersign/store"
)

// task is something that a command does with the store. A command does it itself while nobody holds the store; otherwise the running bot does it
// and sends what it prints (see control.go). Files are the command's: a task only reads from and writes to what it is given.
type task[O any] struct {
	name string
	long bool // it may take a while: few of its kind are done at once
	run  func(ctx context.Context, w workplace, o O) error
}

// none is a task's options where it has none.
type none struct{}

// workplace is what a task has to work with.
type workplace struct {
	store store.Store
	desk  func() (*desk.Desk, error) // the running bot's; where nobody runs, one that is made when it is asked for
	bare  func() (*desk.Desk, error) // the same for what needs no policy: it must work with a policy file that does not
	who   approvers.PersonID         // the operator, as the system knows them
	in    io.Reader                  // what the command sends, if the task takes something
	out   io.Writer
	hurry func(time.Duration) // has whoever reads the output take each piece within that time: for what holds others up
}

// do does the task for a command, with its options.
func (t task[O]) do(ctx context.Context, o O, in io.Reader, out io.Writer) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return misused("the environment can't be used:\n%w", err)
	}
	if err := mustExist(env.Store.Path); err != nil {
		return err
	}
	for end := time.Now().Add(held); ; {
		db, err := openStore(env.Store.Path)
		if err == nil {
			w := workplace{store: db, who: operator(os.Geteuid()), in: in, out: out, hurry: func(time.Duration) {}, desk: func() (*desk.Desk, error) { return deskAfter(ctx, env, db) }, bare: func() (*desk.Desk, error) { return bareDesk(env, db) }}
			return errors.Join(t.run(ctx, w, o), db.Close())
		}
		if !errors.Is(err, store.ErrLocked) {
			return err
		}
		asked := t.ask(ctx, env, o, in, out)
		if !errors.Is(asked, control.ErrNobody) {
			return asked
		}
		if time.Now().After(end) {
			return couldNot("%w. It does not answer at %s either: set COUNTERSIGN_CONTROL as serve has it", err, env.Control)
		}
		select { // another command may hold the store, or a bot that starts
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// held is how long a store may be held by somebody who does not answer until a command gives up.
const held = 2 * time.Second

// ask has the running bot do the task.
func (t task[O]) ask(ctx context.Context, env config.Env, o O, in io.Reader, out io.Writer) error {
	options, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(env.Store.Path)
	if err != nil {
		return couldNot("the store's path can't be told: %w", err)
	}
	client := control.Client{Path: env.Control, Trust: owners(path)}
	err = client.Do(ctx, control.Call{Task: t.name, Options: options, Store: path, Version: version(), In: in, Out: out})
	var failed *control.Failure
	switch {
	case errors.As(err, &failed):
		return &exitError{failed.Code, errors.New(failed.Text)}
	case errors.Is(err, control.ErrNobody):
		return err
	case errors.Is(err, control.ErrPath):
		return misused("%w; choose one with COUNTERSIGN_CONTROL, for serve too", err)
	case errors.Is(err, control.ErrOutput):
		return couldNot("what the bot answered can't be written: %w", err)
	case errors.Is(err, control.ErrLost):
		return couldNot("the bot ended before it had said how this went, so it may have been done or not; look before you do it again: %w", err)
	case err != nil:
		return couldNot("the bot that holds the store can't be asked: %w", err)
	}
	return nil
}

// operator is the id of the user of this machine who acts at the command line.
func operator(uid int) approvers.PersonID {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return approvers.Operator(u.Username)
	}
	return approvers.Operator(id)
}

// deskAfter is a desk on the store of a bot that has stopped. What that was running is over: it can be listed, and reported on.
func deskAfter(ctx context.Context, env config.Env, db store.Store) (*desk.Desk, error) {
	d, err := loneDesk(env, db)
	if err != nil {
		return nil, err
	}
	if err := d.LoseCut(ctx); err != nil {
		return nil, couldNot("the bot stopped while a tool ran, and that can't be recorded: %w", err)
	}
	return d, nil
}

// bareDesk is a desk on a store that nobody else holds, also where the policy can't be used. Then nobody has a role.
func bareDesk(env config.Env, db store.Store) (*desk.Desk, error) {
	d, err := loneDesk(env, db)
	if exitCode(err) != exitUsage {
		return d, err
	}
	return desk.New(desk.Config{Store: db, Policy: func() *approvers.Policy { return new(approvers.Policy) }, Tools: new(agent.Registry), Log: slog.New(slog.DiscardHandler)}), nil
}

// loneDesk is a desk on a store that nobody else holds.
func loneDesk(env config.Env, db store.Store) (*desk.Desk, error) {
	policy, tools, err := readPolicy(env.Policy)
	if err != nil {
		return nil, err
	}
	return desk.New(desk.Config{Store: db, Policy: func() *approvers.Policy { return policy }, Tools: tools, Log: logger(slog.LevelError)}), nil
}

// handler is a task as the running bot finds it by its name.
type handler interface {
	named() string
	isLong() bool
	handle(ctx context.Context, w workplace, options json.RawMessage) error
}

func (t task[O]) named() string { return t.name }

func (t task[O]) isLong() bool { return t.long }

// handle does the task with options from elsewhere. One that it does not know is not passed over: it may be what mattered.
func (t task[O]) handle(ctx context.Context, w workplace, options json.RawMessage) error {
	var o O
	d := json.NewDecoder(bytes.NewReader(options))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("%w: %w", errSkew, err)
	}
	return t.run(ctx, w, o)
}

// errSkew says that the command is of another version than the bot.
var errSkew = errors.New("the bot does not know this")

// tasks are all that a running bot can be asked for.
func tasks() []handler {
	return []handler{auditListTask, auditVerifyTask, auditEraseTask, auditExportTask, auditEvidenceTask, auditPaceTask, observedTask, storedTask, pendingTask, decideTask, reportTask, pauseTask, resumeTask, backupTask, doctorTask}
}
