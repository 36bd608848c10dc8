package main

import (
	"context"
	"errors"
	"io"
	"os"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
)

// movedTask reports whether the store's file is no longer where the bot opened it. Then commands ask the bot even if
// they find no store, or another one, at the path, because the bot's data is what has to be saved.
var movedTask = task[none]{"moved", false, func(_ context.Context, w taskEnv, _ none) error {
	wf, err := w.bare()
	if err != nil {
		return err
	}
	if !errors.Is(wf.InPlace(), store.ErrMoved) {
		return cli.AnswerNo("the store's file is in its place")
	}
	return nil
}}

// isMoved reports whether a running bot holds a file that was at the store's path and has been moved away.
func isMoved(ctx context.Context, env config.Env) bool {
	if _, err := os.Lstat(env.Control); err != nil {
		return false
	}
	return movedTask.ask(ctx, env, none{}, nil, io.Discard) == nil
}
