package transport

import (
	"slices"
	"sync"
)

// connections tracks which connections of Socket Mode are up.
type connections struct {
	mu    sync.Mutex
	up    [sockets]bool
	hurry [sockets]func() // makes a connection that is backing off retry immediately
	said  bool            // whether it has been reported that there is none
}

// set records whether a connection is up.
func (c *connections) set(n int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[n] = up
	c.said = c.said && !up
}

func (c *connections) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.up[:], true)
}

// none reports that no connection is up. It does so once, until there is one again.
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

// retry makes the connections that are down retry immediately.
func (c *connections) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, hurry := range c.hurry {
		if !c.up[n] && hurry != nil {
			hurry()
		}
	}
}
