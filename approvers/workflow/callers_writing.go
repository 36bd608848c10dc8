package workflow

import (
	"context"
	"sync"

	"countersign/approvers"
)

// mostWriting limits the transactions of one client that run or wait for the store at the same time. The store runs one
// transaction after the other, so a client with many calls would otherwise delay everybody else's transactions.
const mostWriting = 8

// callersWriting has the slots of each client for transactions.
type callersWriting struct {
	mu sync.Mutex
	of map[string]chan struct{}
}

// begin waits for a slot of a client, and occupies the slot until end is called.
func (x *callersWriting) begin(ctx context.Context, client string) (end func(), err error) {
	x.mu.Lock()
	if x.of == nil {
		x.of = map[string]chan struct{}{}
	}
	if x.of[client] == nil {
		x.of[client] = make(chan struct{}, mostWriting)
	}
	slots := x.of[client]
	x.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// change is like update, for a change by a client. The client's other changes may have to end first.
func (w *Callers) change(ctx context.Context, client approvers.Client, what string, fn func(*tx) error) error {
	return w.changeBy(ctx, client, what, w.update, fn)
}

// changeBy is change with core.record in place of core.update.
func (w *Callers) changeBy(ctx context.Context, client approvers.Client, what string, update func(context.Context, string, func(*tx) error) error, fn func(*tx) error) error {
	end, err := w.writing.begin(ctx, client.Name)
	if err != nil {
		return err
	}
	defer end()
	return update(ctx, what, fn)
}
