package workflow

import (
	"context"
	"errors"
	"log/slog"

	"countersign/approvers"
	"countersign/store"
)

// maxTries bounds how often a tool that may be run again is run again after a process stopped.
const maxTries = 5

// recover takes up an execution whose process stopped while it ran. One whose second run would act again is never
// run blindly: its outcome is unknown, and people are asked.
func (t *tx) recover(e *approvers.Execution) (bool, error) {
	if err := t.cancelElicitations(e.ID, whyStopped); err != nil {
		return false, err
	}
	if halted, err := t.isHalted(*e); halted || err != nil {
		return false, errors.Join(err, t.cutOff(*e))
	}
	same := e.Effect == approvers.ReadOnly || t.unlike(e.Tool, e.ToolHash) == "" // of another definition nobody knows that it acts once for each key
	if repeatable(*e) && same {
		return t.start(e, approvers.Execution.Retry)
	}
	return false, t.markUnknown(*e, approvers.LossStopped)
}

// repeatable reports whether a run whose process stopped may be run again.
func repeatable(e approvers.Execution) bool {
	return e.Effect != approvers.Unprotected && e.Tries < maxTries
}

// MarkInterrupted marks runs as lost that a stopped process was at and that nobody may run again, as Claim does with
// each when a bot starts. It is for who holds the store alone and runs nothing: nothing is written where there is none.
func (w *Workflow) MarkInterrupted(ctx context.Context) error {
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
			if err := t.markUnknown(e, approvers.LossStopped); err != nil {
				return err
			}
		}
		return err
	})
}

// cutRuns are runs under way that nobody may run again.
func cutRuns(r store.Reader) (cut []approvers.Execution, err error) {
	timers, err := r.Timers(store.TimerRun, mostRuns)
	if err != nil {
		return nil, err
	}
	for _, timer := range timers {
		e, err := r.Execution(timer.Ref)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && e.State == approvers.ExecutionExecuting && !repeatable(e) {
			cut = append(cut, e)
		}
	}
	return cut, nil
}

// MarkUnknown records that a run ended without anybody knowing whether it acted: its tool could not tell. People are
// asked.
func (w *Workflow) MarkUnknown(ctx context.Context, execution string) error {
	return w.update(ctx, "mark unknown", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		p, _, err := paused(t)
		if err != nil {
			return err
		}
		why := approvers.LossUnclear
		if p.On {
			why = approvers.LossPaused
		}
		if halted, err := t.isHalted(e); halted || err != nil {
			return errors.Join(err, t.cutOff(e))
		}
		return t.markUnknown(e, why)
	})
}

// markUnknown marks a run's outcome as unknown, and asks people.
func (t *tx) markUnknown(e approvers.Execution, why approvers.Loss) error {
	if err := t.cancelElicitations(e.ID, whyOver); err != nil {
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
	if err := t.resetStreakOfTool(lost); err != nil {
		return err
	}
	t.note(slog.LevelWarn, "nobody knows whether a run acted; people are asked", "tool", lost.Tool, "request", lost.Request, "execution", lost.ID)
	return t.askWhatHappened(lost)
}

// PutBack leaves a run that a pause interrupted, and that may be run again, until everything goes on.
func (w *Workflow) PutBack(ctx context.Context, execution string) error {
	return w.update(ctx, "put back", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		if e.State != approvers.ExecutionExecuting || e.Owner != t.w.owner {
			return ErrNotDue
		}
		if err := t.runNow(e); err != nil {
			return err
		}
		return t.changedStep(e)
	})
}

// mostRuns bounds how many runs are looked at that an earlier process was at. It is far above what can be under way at
// once; a run beyond it is taken up when its lease ends.
const mostRuns = 10_000

// Recover is called once at the start: executions that an earlier process left running, and previews that it left half
// made, fall due at once.
func (w *Workflow) Recover(ctx context.Context) error {
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
		return t.recoverPreviews()
	})
}
