package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/cmd/countersign/metrics"
	"countersign/store"
)

// remembered is how long handled deliveries are kept, so that a redelivery has no effect. Slack's last retry comes
// after about six minutes.
const remembered = 2 * time.Hour

// forget deletes old deliveries from the inbox, and erases data beyond the policy's retention.
func forget(ctx context.Context, wf *workflow.Workflow, m *metrics.Metrics, log *slog.Logger) error {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for round := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := wf.Intake.Forget(ctx, remembered)
		if round == 0 && (err == nil || store.OnlyDamaged(err)) {
			err = errors.Join(err, retain(ctx, wf, m, log))
		}
		switch {
		case store.OnlyDamaged(err):
			log.ErrorContext(ctx, "old records can't be deleted, because a part of the store can't be read", "error", err)
		case store.Refused(err): // for example, the disk is full. The next tick tries the same round again
			continue
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("forget: %w", err)
		}
		round = (round + 1) % retainEvery
	}
}

// retainEvery is the number of rounds between two searches for old data. Searches are rare, because each search reads
// all chains of the history.
const retainEvery = 36

// retain erases data beyond the policy's retention, and counts the erased data.
func retain(ctx context.Context, wf *workflow.Workflow, m *metrics.Metrics, log *slog.Logger) error {
	done, err := retention.Round(ctx, wf)
	if done != (retention.Removed{}) {
		log.InfoContext(ctx, "erased by age, as the policy says", "conversations", done.Conversations, "turns", done.Turns, "grants", done.Grants, "absences", done.Absences,
			"home_tabs", done.Homes, "set_aside", done.SetAside, "chains", done.Chains, "records", done.Records)
	}
	m.CountRetained(done, err == nil)
	return err
}
