package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errNotConnected is what Ready says while no connection to Slack is up.
var errNotConnected = errors.New("no connection to Slack is up")

// errNotListening is what Ready says while nobody takes Slack's requests.
var errNotListening = errors.New("nobody listens for Slack's requests")

// Ready reports whether the bot receives from Slack now, and Slack answers.
func (b *Bot) Ready(context.Context) error {
	if err := b.governor.contact.state(); err != nil {
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

// Worth reports whether there is any use in asking Slack for something now: it answers, or it is time to see whether it does.
func (b *Bot) Worth() bool { return b.governor.contact.worth() }

// connections notes which of the sockets are up.
type connections struct {
	mu    sync.Mutex
	up    [sockets]bool
	hurry [sockets]func() // has a socket tried anew at once that has been waiting for longer and longer
	said  bool            // that there is none
}

// set notes whether a socket is up.
func (c *connections) set(n int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[n] = up
	c.said = c.said && !up
}

// none reports, once until there is one, that no socket is up.
func (c *connections) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.said && !slices.Contains(c.up[:], true)
	c.said = c.said || first
	return first
}

// tries notes how a socket that is being tried can be hurried.
func (c *connections) tries(n int, hurry func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurry[n] = hurry
}

// again has those tried at once that are not up.
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
