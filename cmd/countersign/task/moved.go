package task

import (
	"context"
	"errors"
	"io"
	"os"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
)

// Moved reports whether the store's file was moved away from the path where the bot opened it. In this case, commands
// use the running bot, even if the path has no store or another store. The running bot has the data that must be saved.
var Moved = Task[None]{Name: "moved", WhileHeld: true, Run: func(_ context.Context, w Env, _ None) error {
	wf, err := w.Bare()
	if err != nil {
		return err
	}
	if !errors.Is(wf.InPlace(), store.ErrMoved) {
		return cli.AnswerNo("the store's file is still at its path")
	}
	return nil
}}

// IsMoved reports whether a running bot holds a file that was at the store's path and has been moved away.
func IsMoved(ctx context.Context, env config.Env) bool {
	if _, err := os.Lstat(env.Control); err != nil {
		return false
	}
	return Moved.Ask(ctx, env, None{}, nil, io.Discard) == nil
}
