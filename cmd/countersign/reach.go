package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"countersign/agent"
	"countersign/bot"
	"countersign/store"
)

// reach asks Slack and the model once whether they can be used, so that a wrong token is a sentence at the start and not a
// riddle in the log. Where people wait for a decision the model's absence stops nothing: they don't need it.
func reach(ctx context.Context, p parts, log *slog.Logger) error {
	if err := p.bot.Check(ctx); err != nil {
		if errors.Is(err, bot.ErrToken) {
			return misused("%w", err)
		}
		return couldNot("%w", err)
	}
	err := p.agent.Ping(ctx)
	if errors.Is(err, agent.ErrModelKey) {
		return misused("%w", err)
	}
	if err == nil {
		return nil
	}
	waiting, failed := p.desk.Waiting(ctx)
	if failed != nil {
		return failed
	}
	if !waiting {
		return couldNot("%w. Check OPENAI_BASE_URL, OPENAI_API_KEY and the network", err)
	}
	log.Error("the model can't be used now; what waits for a decision goes on, and answers come once it is back: check OPENAI_BASE_URL, OPENAI_API_KEY and the network", "error", err)
	return nil
}

// storeError gives the errors of opening a store their exit code.
func storeError(err error) error {
	for _, configured := range []error{store.ErrForeign, store.ErrNewer, fs.ErrNotExist, syscall.ENOTDIR} {
		if errors.Is(err, configured) {
			return misused("%w", err)
		}
	}
	return couldNot("%w", err)
}

// mustExist refuses to make an empty store where an existing one is to be read.
func mustExist(path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return misused("there is no store at %s; set COUNTERSIGN_STORE to the one that serve uses, such as bolt:countersign.db", path)
	}
	if err != nil {
		return couldNot("the store can't be read: %w", err)
	}
	return nil
}
