package workflow

import (
	"sync"
)

// callersWaiting holds the callers of this process that wait for a change of their requests, by call. A caller reads
// the request again after each wake-up, so a wake-up without a change does no harm.
type callersWaiting struct {
	mu sync.Mutex
	by map[string]map[chan struct{}]bool
}

// Watch returns a channel that gets a value after each change of a request. stop must be called at the end.
func (w *Callers) Watch(id string) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	x := &w.waiting
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[string]map[chan struct{}]bool{}
	}
	if x.by[id] == nil {
		x.by[id] = map[chan struct{}]bool{}
	}
	x.by[id][c] = true
	return c, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.by[id], c)
		if len(x.by[id]) == 0 {
			delete(x.by, id)
		}
	}
}

// wake wakes those that wait for a request.
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

// wakeAll wakes everybody who waits.
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
