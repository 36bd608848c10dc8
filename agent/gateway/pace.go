package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Limits of one client's requests, so that a flood of one client does not slow the requests of others. Reading and
// refusing a request takes less than a millisecond of processor time.
const (
	requestRate  = 200              // requests a second
	requestBurst = 1000             // requests that may come at once
	paceWithin   = 10 * time.Second // how long a request above the rate waits; a request that would have to wait longer is refused
)

// paces slows clients that send requests too fast.
type paces struct {
	mu   sync.Mutex
	next map[string]time.Time // when the client's next request would be due if the client sent its requests evenly
}

// pass waits until a client may send another request. If the client has to wait too long, pass returns an error.
func (p *paces) pass(ctx context.Context, client string) error {
	wait := p.reserve(client, time.Now())
	switch {
	case wait <= 0:
		return nil
	case wait > paceWithin:
		return problem{
			name: "too_many_requests", status: http.StatusTooManyRequests, title: "The client sends too many requests.", again: paceWithin / 2,
			detail: "the gateway reads 200 requests of a client a second",
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve returns how long a client's request has to wait. A request that has to wait longer than paceWithin does not
// count.
func (p *paces) reserve(client string, now time.Time) (wait time.Duration) {
	const interval, early = time.Second / requestRate, (requestBurst - 1) * time.Second / requestRate
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.next[client]
	if next.Before(now) {
		next = now
	}
	if wait = next.Sub(now) - early; wait <= paceWithin {
		p.next[client] = next.Add(interval)
	}
	return wait
}
