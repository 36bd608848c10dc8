package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/control"
)

// Older returns the reason why the bot of an old store is held. If a bot works on the store, or the store is not old,
// Older returns nil.
func (w Env) Older(ctx context.Context) (*audit.OlderStore, error) {
	if !w.Idle {
		return nil, nil
	}
	return audit.FindOlder(ctx, w.Path, w.Audit.Heads, w.Store)
}

// HeldError is the error of a task that a held bot does not run.
func HeldError(why error) error { return cli.CouldNot("the bot is held: %w", why) }

// Held writes why the bot is held, and what the operator can do. If the bot is not held, Held writes nothing.
var Held = Task[None]{Name: "held", Reads: true, WhileHeld: true, Run: func(ctx context.Context, w Env, _ None) error {
	older, err := w.Older(ctx)
	if older != nil {
		fmt.Fprint(w.Out, older)
	}
	return err
}}

// DoWarned is like Do. If the bot is held, DoWarned first writes a warning, because the task's output then describes an
// old state. If it is unknown whether the bot is held, DoWarned writes no warning.
func (t Task[O]) DoWarned(ctx context.Context, o O, out, stderr io.Writer) error {
	warn := func(ask func(why io.Writer) error) bool {
		var why bytes.Buffer
		err := ask(&why)
		if err == nil && why.Len() > 0 {
			fmt.Fprintln(stderr, "countersign: this is an old state:", why.String())
		}
		return !errors.Is(err, control.ErrNobody)
	}
	env, err := config.ReadEnv(config.Offline)
	answered := err == nil && warn(func(why io.Writer) error { return Held.Ask(ctx, env, None{}, nil, why) })
	here := t
	here.Run = func(ctx context.Context, w Env, o O) error {
		if !answered {
			warn(func(why io.Writer) error {
				held := w
				held.Out = why
				return Held.Run(ctx, held, None{})
			})
		}
		return t.Run(ctx, w, o)
	}
	return here.Do(ctx, o, nil, out)
}
