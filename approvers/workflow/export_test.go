package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// DeadlineWorkers is the number of deadlines that are handled concurrently.
const DeadlineWorkers = deadlineWorkers

// ApplyEvents writes a pending request in the state that follows from these events.
func (w *Workflow) ApplyEvents(ctx context.Context, request string, change func(*approvers.Request), events ...approvers.Event) error {
	return w.update(ctx, "apply", func(t *tx) error {
		r, err := t.Request(request)
		if err != nil {
			return err
		}
		change(&r)
		return t.apply(r, events)
	})
}

// Working begins the work of a handler. The returned function ends the work.
func (w *Workflow) Working(kind store.TimerKind, ref string) (leave func()) {
	_, leave = w.running.enter(context.Background(), store.Timer{Kind: kind, Ref: ref})
	return leave
}
