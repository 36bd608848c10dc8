package workflow

import (
	"context"
	"errors"
	"log/slog"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// maxTries limits the runs of one execution whose process stopped each time.
const maxTries = 5

// recover handles an execution whose process stopped during its run. If a second run could act a second time, the
// execution is not run again: its outcome is unknown, and people are asked.
func (t runsTx) recover(e *approvers.Execution) (bool, error) {
	if err := t.questions.cancelElicitations(e.ID, whyStopped); err != nil {
		return false, err
	}
	if halted, err := t.isHalted(*e); halted || err != nil {
		return false, errors.Join(err, t.cutOff(*e))
	}
	same := e.Effect == approvers.ReadOnly || t.unlike(e.Tool, e.ToolHash) == "" // a changed definition may no longer be idempotent
	if repeatable(*e) && same {
		return t.start(e, approvers.Execution.Retry)
	}
	return false, t.markUnknown(*e, approvers.LossStopped)
}

// repeatable reports whether a run whose process stopped may be run again.
func repeatable(e approvers.Execution) bool {
	return e.Effect != approvers.Unprotected && e.Tries < maxTries
}

// MarkInterrupted marks interrupted, non-repeatable runs as unknown, as Claim does when a bot starts. It is for
// commands that have the store to themselves and run nothing. If there are no such runs, it writes nothing.
func (w *Runs) MarkInterrupted(ctx context.Context) error {
	found := true
	err := w.Store.View(ctx, func(r store.Reader) error {
		cut, err := cutRuns(r)
		found = len(cut) > 0
		return err
	})
	if err != nil || !found {
		return err
	}
	return w.update(ctx, "mark interrupted", func(t *tx) error {
		cut, err := cutRuns(t)
		for _, e := range cut {
			if err := t.runs.markUnknown(e, approvers.LossStopped); err != nil {
				return err
			}
		}
		return err
	})
}

// cutRuns returns interrupted runs that must not be run again.
func cutRuns(r store.Reader) (cut []approvers.Execution, err error) {
	timers, err := r.Timers(store.TimerRun, mostRuns)
	if err != nil {
		return nil, err
	}
	for _, timer := range timers {
		e, err := r.Execution(timer.Ref)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && e.State == approvers.ExecutionExecuting && !repeatable(e) {
			cut = append(cut, e)
		}
	}
	return cut, nil
}

// MarkUnknown records that a run ended with an unknown outcome, because its tool could not tell whether it acted.
// People are asked.
func (w *Runs) MarkUnknown(ctx context.Context, execution string) error {
	return w.update(ctx, "mark unknown", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		p, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		why := approvers.LossUnclear
		if p.On {
			why = approvers.LossPaused
		}
		if halted, err := t.runs.isHalted(e); halted || err != nil {
			return errors.Join(err, t.runs.cutOff(e))
		}
		return t.runs.markUnknown(e, why)
	})
}

// markUnknown marks a run's outcome as unknown, and asks people.
func (t runsTx) markUnknown(e approvers.Execution, why approvers.Loss) error {
	if err := t.questions.cancelElicitations(e.ID, whyOver); err != nil {
		return err
	}
	lost, err := e.Lose(why, t.now)
	if err != nil {
		return err
	}
	t.countRun(lost)
	if err := t.PutExecution(lost); err != nil {
		return err
	}
	if err := t.audit(lost.Chain(), approvers.AuditUnknown, "", map[string]string{"execution": lost.ID, "digest": lost.Digest, "why": string(why)}, nil); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRun, lost.ID); err != nil {
		return err
	}
	if err := t.grants.resetStreakOfTool(lost); err != nil {
		return err
	}
	t.note(slog.LevelWarn, "the outcome of a run is unknown; people are asked", "tool", lost.Tool, "request", lost.Request, "execution", lost.ID)
	return t.askWhatHappened(lost)
}

// PutBack schedules a repeatable run again that a pause interrupted. It waits until the pause ends.
func (w *Runs) PutBack(ctx context.Context, execution string) error {
	return w.update(ctx, "put back", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		if e.State != approvers.ExecutionExecuting || e.Owner != t.w.owner {
			return ErrNotDue
		}
		if err := t.proposals.runNow(e); err != nil {
			return err
		}
		return t.runs.changedStep(e)
	})
}

// mostRuns limits the runs of earlier processes that one transaction reads. It is far above the number that can be
// under way at once; a run beyond it is recovered when its lease ends.
const mostRuns = 10_000

// Recover is called once at the start. Executions that an earlier process left running, and its unfinished tool
// previews, fall due at once.
func (w *Runs) Recover(ctx context.Context) error {
	return w.update(ctx, "recover", func(t *tx) error {
		timers, err := t.Timers(store.TimerRun, mostRuns)
		if err != nil {
			return err
		}
		for _, timer := range timers {
			if !timer.Due.After(t.now) {
				continue
			}
			e, err := t.Execution(timer.Ref)
			if err != nil {
				return err
			}
			if e.State == approvers.ExecutionExecuting && e.Owner != w.owner {
				timer.Due = t.now
				if err := t.SetTimer(timer); err != nil {
					return err
				}
			}
		}
		return t.previews.recoverPreviews()
	})
}
