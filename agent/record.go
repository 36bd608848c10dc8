package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// recordPauses are the delays between attempts to record a run.
var recordPauses = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second}

// record records the outcome of a run, even during shutdown, and retries after errors. While the store refuses writes
// for a temporary reason (store.Refused), record keeps trying until shutdown. If record gives up, the agent keeps the
// outcome in memory, and records it when the timer fires again. While this process runs, record never records a known
// outcome as unknown.
func (a *Agent) record(ctx context.Context, execution string, done finished) error {
	stopping := ctx
	ctx = context.WithoutCancel(ctx)
	var err error
	for i := 0; ; i++ {
		switch {
		case done.lost:
			err = a.Runs.MarkUnknown(ctx, execution)
		case done.unrun:
			err = a.Runs.Unrun(ctx, execution, done.result)
		default:
			err = a.Runs.Finish(ctx, execution, done.ok, done.result, done.files...)
		}
		if err == nil || errors.Is(err, approvers.ErrNotRunning) {
			return nil // this attempt recorded the outcome, or an earlier attempt did
		}
		patient := store.Refused(err) && stopping.Err() == nil // a later attempt can succeed
		if i >= len(recordPauses) && !patient || errors.Is(err, store.ErrCommitUnknown) || errors.Is(err, store.ErrClosed) {
			break
		}
		pause := recordPauses[min(i, len(recordPauses)-1)]
		if patient {
			sleep(stopping, pause)
		} else {
			sleep(ctx, pause)
		}
	}
	a.Log.ErrorContext(ctx, "a tool ran, but its result could not be recorded yet", "execution", execution, "error", err)
	a.mu.Lock()
	a.unrecorded[execution] = done
	a.mu.Unlock()
	return fmt.Errorf("record %s: %w", execution, err)
}

// takeUnrecorded returns a run that ended in this process and is not recorded yet. takeUnrecorded removes the run
// from memory.
func (a *Agent) takeUnrecorded(execution string) (finished, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done, ok := a.unrecorded[execution]
	delete(a.unrecorded, execution)
	return done, ok
}
