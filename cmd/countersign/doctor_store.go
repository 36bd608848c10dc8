package main

import (
	"context"
	"fmt"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// doctorTask confirms that the running bot can read its store.
var doctorTask = task[none]{"doctor", false, func(ctx context.Context, w taskEnv, _ none) error {
	if err := w.store.View(ctx, func(store.Reader) error { return nil }); err != nil {
		return err
	}
	if w.rests {
		older, err := audit.FindOlder(ctx, w.path, w.audit.Heads, w.store)
		if err != nil {
			return err
		}
		if older != nil {
			return cli.CouldNot("the bot is held: %w", older)
		}
	}
	_, err := fmt.Fprintln(w.out, "reads")
	return err
}}
