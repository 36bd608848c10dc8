package desk

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// maxTries bounds how often a tool that may be run again is run again after a process stopped.
const maxTries = 5

// recover takes up an execution whose process stopped while it ran. One whose second run would act again is never
// run blindly: its outcome is unknown, and people are asked.
func (t *tx) recover(e *approvers.Execution) (bool, error) {
	if e.Effect != approvers.Unprotected && e.Tries < maxTries {
		return t.start(e, approvers.Execution.Retry)
	}
	return false, t.lose(*e)
}

// Lose records that a run ended without anybody knowing whether it acted: its tool could not tell. People are asked.
func (d *Desk) Lose(ctx context.Context, execution string) error {
	return d.update(ctx, "lose", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		return t.lose(e)
	})
}

// lose marks a run's outcome as unknown, and asks people.
func (t *tx) lose(e approvers.Execution) error {
	lost, err := e.Lose(t.now)
	if err != nil {
		return err
	}
	t.countRun(lost)
	if err := t.PutExecution(lost); err != nil {
		return err
	}
	if err := t.audit(lost.Chain(), approvers.AuditUnknown, "", map[string]string{"execution": lost.ID, "digest": lost.Digest}, nil); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRun, lost.ID); err != nil {
		return err
	}
	if err := t.distrust(lost); err != nil {
		return err
	}
	t.d.Log.Warn("nobody knows whether a run acted; people are asked", "tool", lost.Tool, "request", lost.Request, "execution", lost.ID)
	return t.askWhatHappened(lost)
}

// mostRuns bounds how many runs are looked at when a process starts. It is far above what can be under way at once; a run beyond it
// is taken up when its lease ends.
const mostRuns = 10_000

// Recover is called once at the start: executions that an earlier process left running fall due at once.
func (d *Desk) Recover(ctx context.Context) error {
	return d.update(ctx, "recover", func(t *tx) error {
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
			if e.State == approvers.ExecutionExecuting && e.Owner != d.owner {
				timer.Due = t.now
				if err := t.SetTimer(timer); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
