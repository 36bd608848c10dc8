package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// DeadlineWorkers is deadlineWorkers for tests.
const DeadlineWorkers = deadlineWorkers

// RestorePeople is restorePeople for tests.
var RestorePeople = restorePeople

// ApplyEvents changes a pending request with change, and applies the given events to it.
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

// Working marks the handler of a timer as running. The function that Working returns ends the work of the handler.
func (w *Workflow) Working(kind store.TimerKind, ref string) (leave func()) {
	_, leave = w.running.enter(context.Background(), store.Timer{Kind: kind, Ref: ref})
	return leave
}
