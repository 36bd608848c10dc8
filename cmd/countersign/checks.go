package main

import (
	"context"
	"errors"
	"time"

	"countersign/approvers/workflow"
	"countersign/internal/redact"
	"countersign/internal/visible"
	"countersign/store"
)

// checkEvery is the time between two rounds of the checks that the operators are told of.
const checkEvery = time.Minute

// toldAfter has the checks of /readyz that the operators are told of, with the time for which a check must fail before
// the notice. Other checks are left out: the workflow tells the operators itself, or Slack can't be reached.
var toldAfter = map[string]time.Duration{
	"rows": 0, "channels": 5 * time.Minute, "model": 10 * time.Minute, "seal": 5 * time.Minute, "heads": 15 * time.Minute, "renewal of the bot token": 30 * time.Minute,
}

// tellChecks tells the operators of checks of /readyz that fail for long, until ctx ends. With several replicas, only
// the replica that seals the history does this.
func (s setup) tellChecks(ctx context.Context, p parts) error {
	var told []probe
	for _, one := range s.probes(p) {
		if _, ok := toldAfter[one.name]; ok {
			told = append(told, one)
		}
	}
	failing, inspections := map[string]workflow.FailedCheck{}, p.inspections.Load()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s.tools.Policy().Operators.Channel == "" {
			clear(failing)
			continue
		}
		runChecks(ctx, told, failing, p.workflow.Now())
		if p.inspections.Load() == inspections {
			doubtRows(failing, p.workflow.Now())
		}
		if err := p.workflow.Outbox.FollowChecks(ctx, failing); err != nil && ctx.Err() == nil {
			if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
			s.log.WarnContext(ctx, "the operators could not be told of failing checks; this is tried again", "error", err)
		}
	}
}

// runChecks runs the checks, and updates the map of the checks that fail.
func runChecks(ctx context.Context, told []probe, failing map[string]workflow.FailedCheck, now time.Time) {
	for _, one := range told {
		runCheck(ctx, one, failing, now)
		if f, fails := failing[one.name]; fails {
			f.Long = now.Sub(f.Since) >= toldAfter[one.name]
			failing[one.name] = f
		}
	}
}

// doubtRows handles the check of the store's rows before an inspection of the store has ended. An earlier process or
// another replica may have found damage that this process does not know. So the check does not count as successful, and
// ends no problem.
func doubtRows(failing map[string]workflow.FailedCheck, now time.Time) {
	if _, fails := failing["rows"]; !fails {
		failing["rows"] = workflow.FailedCheck{Since: now}
	}
}

// runCheck runs one check, and records in failing whether the check fails.
func runCheck(ctx context.Context, one probe, failing map[string]workflow.FailedCheck, now time.Time) {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := one.ready(limited)
	switch f, before := failing[one.name]; {
	case err == nil:
		delete(failing, one.name)
	case ctx.Err() != nil: // the process stops
	case before:
		f.Why = visible.Line(redact.Error(err))
		failing[one.name] = f
	default:
		failing[one.name] = workflow.FailedCheck{Since: now, Why: visible.Line(redact.Error(err))}
	}
}
