package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// recordPauses are how long to wait between attempts to record a run.
var recordPauses = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second}

// record writes a run's outcome down, also when the process is being stopped. What can't be written is kept in
// memory and comes back with the timer; while the disk is full it is tried until there is room. As long as this process lives, a run that
// ended is never taken for one that was lost.
func (a *Agent) record(ctx context.Context, execution string, done finished) error {
	stopping := ctx
	ctx = context.WithoutCancel(ctx)
	var err error
	for i := 0; ; i++ {
		switch {
		case done.lost:
			err = a.Desk.Lose(ctx, execution)
		case done.unrun:
			err = a.Desk.Unrun(ctx, execution, done.result)
		default:
			err = a.Desk.Finish(ctx, execution, done.ok, done.result, done.files...)
		}
		if err == nil || errors.Is(err, approvers.ErrNotRunning) {
			return nil // recorded; the second when an attempt before did it after all
		}
		patient := errors.Is(err, store.ErrFull) && stopping.Err() == nil // there will be space again, and the run stays known meanwhile
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
	a.Log.Error("a tool ran, and what it answered could not be recorded yet", "execution", execution, "error", err)
	a.mu.Lock()
	a.unrecorded[execution] = done
	a.mu.Unlock()
	return fmt.Errorf("record %s: %w", execution, err)
}

// takeUnrecorded is a run that ended in this process and is not written down yet.
func (a *Agent) takeUnrecorded(execution string) (finished, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done, ok := a.unrecorded[execution]
	delete(a.unrecorded, execution)
	return done, ok
}
