package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errNotConnected is the error of Ready while no connection to Slack is up.
var errNotConnected = errors.New("no connection to Slack is up")

// errNotListening is the error of Ready while the bot does not accept Slack's requests.
var errNotListening = errors.New("nobody listens for Slack's requests")

// Ready returns nil if the bot can receive from Slack, and Slack answers.
func (b *Bot) Ready(context.Context) error {
	if err := b.api.Available(); err != nil {
		return err
	}
	if b.overHTTP() {
		if !b.intake.listening() {
			return errNotListening
		}
		return nil
	}
	if !b.connected.any() {
		return errNotConnected
	}
	return nil
}

// Worth reports whether calls to Slack may succeed now: Slack answers, or it is time to test whether it does.
func (b *Bot) Worth() bool { return b.api.Worth() }

// connections tracks which sockets are up.
type connections struct {
	mu    sync.Mutex
	up    [sockets]bool
	hurry [sockets]func() // makes a socket that is backing off retry immediately
	said  bool            // whether it has been reported that there is none
}

// set records whether a socket is up.
func (c *connections) set(n int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[n] = up
	c.said = c.said && !up
}

// none reports that no socket is up. It does so once, until there is one again.
func (c *connections) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.said && !slices.Contains(c.up[:], true)
	c.said = c.said || first
	return first
}

// tries registers the function that makes a socket retry immediately.
func (c *connections) tries(n int, hurry func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurry[n] = hurry
}

// again makes the sockets that are down retry immediately.
func (c *connections) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, hurry := range c.hurry {
		if !c.up[n] && hurry != nil {
			hurry()
		}
	}
}

func (c *connections) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.up[:], true)
}
