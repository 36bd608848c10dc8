package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"countersign/agent"
	"countersign/approvers/audit"
	"countersign/bot"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// reach checks once whether Slack and the model can be used, so that a wrong token gives a clear error at the start. An
// unreachable model does not prevent the start, because waiting decisions don't need it.
func reach(ctx context.Context, p parts, log *slog.Logger) error {
	if err := p.bot.Check(ctx); err != nil {
		if errors.Is(err, bot.ErrToken) {
			return cli.Misused("%w", err)
		}
		return cli.CouldNot("%w", err)
	}
	err := p.agent.Ping(ctx)
	if errors.Is(err, agent.ErrModelKey) {
		return cli.Misused("%w", err)
	}
	if err == nil {
		return nil
	}
	waiting, failed := p.workflow.Views.Waiting(ctx)
	if failed != nil {
		return failed
	}
	if !waiting {
		return cli.CouldNot("%w. Check OPENAI_BASE_URL, OPENAI_API_KEY and the network", err)
	}
	log.Error("the model can't be used now; what waits for a decision goes on, and answers come once it is back: check OPENAI_BASE_URL, OPENAI_API_KEY and the network", "error", err)
	return nil
}

// storeError adds exit codes to the errors of opening a store. A truncated or overwritten store can't be distinguished
// from another kind of file, so neither counts as wrong configuration.
func storeError(err error) error {
	for _, configured := range []error{store.ErrNewer, fs.ErrNotExist, syscall.ENOTDIR} {
		if errors.Is(err, configured) {
			return cli.Misused("%w", err)
		}
	}
	return cli.CouldNot("%w", err)
}

// mustExist prevents the creation of an empty store when an existing one is to be read. If there are signed heads, the
// error says that there was a store.
func mustExist(path, heads string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := audit.MayCreate(path, heads); err != nil {
			return cli.Misused("%w", err)
		}
		return cli.Misused("there is no store at %s; set COUNTERSIGN_STORE to the one that serve uses, such as bolt:countersign.db", path)
	}
	if err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
	}
	return nil
}
