package transport

import (
	"slices"
	"sync"
	"time"
)

// connections tracks which connections of Socket Mode are up.
type connections struct {
	mu    sync.Mutex
	up    [sockets]bool
	hurry [sockets]func() // makes a connection that is backing off retry immediately
	said  bool            // since the last connection ended, the method none has returned true
	until time.Time       // when the last connection ended
}

// set records whether a connection is up. The result "first" is true if the connection is up, and no connection was up
// before.
func (c *connections) set(n int, up bool, now time.Time) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := slices.Contains(c.up[:], true)
	c.up[n] = up
	c.said = c.said && !up
	after := slices.Contains(c.up[:], true)
	if before && !after {
		c.until = now
	}
	return after && !before
}

// lastUp returns the last time at which a connection was up. If no connection was ever up, lastUp returns zero.
func (c *connections) lastUp(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.up[:], true) {
		return now
	}
	return c.until
}

func (c *connections) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.up[:], true)
}

// none reports whether no connection is up. none returns true only once for each outage.
func (c *connections) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.said && !slices.Contains(c.up[:], true)
	c.said = c.said || first
	return first
}

// tries registers the function that makes a connection retry immediately.
func (c *connections) tries(n int, hurry func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurry[n] = hurry
}

// retry makes each connection that is down retry immediately.
func (c *connections) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, hurry := range c.hurry {
		if !c.up[n] && hurry != nil {
			hurry()
		}
	}
}
