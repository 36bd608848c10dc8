package task

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
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

// WarnHeld writes a warning if the bot is held, because the command's output then describes an old state. WarnHeld
// ignores an error: the command itself reports that the store can't be used.
func WarnHeld(ctx context.Context, stderr io.Writer) {
	var why bytes.Buffer
	if err := Held.Do(ctx, None{}, nil, &why); err == nil && why.Len() > 0 {
		fmt.Fprintln(stderr, "countersign: this is an old state:", why.String())
	}
}
