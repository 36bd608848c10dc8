package workflow

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// callersWaiting has the callers that wait in this process for changes of their requests. The outer keys of the map are
// the ids of the calls. The inner keys are the channels of the callers that wait. The value for a channel is the client
// whose connection holds the call (see Hold), or nil. A caller reads the request after each wake-up, so a wake-up
// without a change does no harm.
type callersWaiting struct {
	mu sync.Mutex
	by map[string]map[chan struct{}]*approvers.Client
}

// Watch returns a channel that gets a value after changes of a request. One value may stand for several changes, or for
// none. To end the watch, the function that called Watch must call stop.
func (w *Callers) Watch(id string) (changed <-chan struct{}, stop func()) {
	return w.waiting.add(id, nil)
}

// Hold is like Watch, for a connection on which the client waits for the result of its request. If this process handles
// an approval during the watch, the transaction of the decision starts the call, so Start need not be called. The
// function that calls Hold must have checked that the request belongs to the client.
func (w *Callers) Hold(client approvers.Client, id string) (changed <-chan struct{}, stop func()) {
	return w.waiting.add(id, &client)
}

func (x *callersWaiting) add(id string, client *approvers.Client) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[string]map[chan struct{}]*approvers.Client{}
	}
	if x.by[id] == nil {
		x.by[id] = map[chan struct{}]*approvers.Client{}
	}
	x.by[id][c] = client
	return c, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.by[id], c)
		if len(x.by[id]) == 0 {
			delete(x.by, id)
		}
	}
}

// holders returns the clients whose connections hold a call.
func (x *callersWaiting) holders(id string) (clients []approvers.Client) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.by[id] {
		if c != nil {
			clients = append(clients, *c)
		}
	}
	return clients
}

// wake wakes the callers that wait for a request.
func (x *callersWaiting) wake(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.by[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// wakeAll wakes all callers that wait.
func (x *callersWaiting) wakeAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, waiting := range x.by {
		for c := range waiting {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

// Start begins an approved call that waits until its caller asks for the result. If the call does not wait for its
// caller, or has begun already, Start changes nothing.
func (w *Callers) Start(ctx context.Context, client approvers.Client, id string) error {
	return w.change(ctx, client, "start for a caller", func(t *tx) error {
		conv, call, err := t.callers.own(client, id)
		if err != nil || !conv.Caller.Caller.Starts || call.Request == "" {
			return err
		}
		r, err := t.Request(call.Request)
		if err != nil || r.State != approvers.Approved {
			return err
		}
		if _, err := t.Timer(store.TimerRun, r.Execution); err == nil || store.IgnoreNotFound(err) != nil {
			return err
		}
		return t.timers.runSoon(r)
	})
}

// isHeld reports whether a connection to this process holds the call of a request. A connection of a client that is no
// longer in the policy does not count.
func (t callersTx) isHeld(r approvers.Request) bool {
	return slices.ContainsFunc(t.w.waiting.holders(r.Call), func(c approvers.Client) bool {
		_, err := t.client(c)
		return err == nil
	})
}

// Delivered records that the caller has received the final state of a request. If the caller then proposes an identical
// call without a key, this call is a new request.
func (w *Callers) Delivered(ctx context.Context, client approvers.Client, id string) error {
	return w.change(ctx, client, "delivered to a caller", func(t *tx) error {
		conv, call, err := t.callers.own(client, id)
		if err != nil || !conv.Caller.Repeatable || !conv.Caller.Delivered.IsZero() || call.Outcome == "" {
			return err
		}
		request := *conv.Caller
		request.Delivered, conv.Caller = t.now, &request
		return t.PutConversation(conv)
	})
}

// Undelivered undoes Delivered. The gateway calls Undelivered if the caller closed its connection before it received
// the answer. The caller's next identical call then gets the stored result. If another identical call has become a new
// request since Delivered, the next identical call repeats the new request.
func (w *Callers) Undelivered(ctx context.Context, client approvers.Client, id string) error {
	return w.change(ctx, client, "not delivered to a caller", func(t *tx) error {
		conv, _, err := t.callers.own(client, id)
		if err != nil || conv.Caller.Delivered.IsZero() {
			return err
		}
		request := *conv.Caller
		request.Delivered, conv.Caller = time.Time{}, &request
		return t.PutConversation(conv)
	})
}

// HungUp records that a client closed the connection on which it waited for a call. The parameter after is how long the
// connection was open.
func (w *Callers) HungUp(ctx context.Context, client approvers.Client, after time.Duration) error {
	return w.change(ctx, client, "a caller hung up", func(t *tx) error {
		if _, err := t.callers.client(client); err != nil {
			return err
		}
		known, s, err := settings.ReadCaller(t, client.Name)
		if err != nil {
			return err
		}
		after, changed := known.WithHangUp(settings.HangUp{At: t.now, After: after})
		if !changed {
			return nil
		}
		if s.Value, err = json.Marshal(after); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
}
