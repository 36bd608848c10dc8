package bot

import (
	"context"
	"errors"
	"sync"
)

// errNotConnected is what Ready says while no connection to Slack is up.
var errNotConnected = errors.New("no connection to Slack is up")

// Ready reports whether the bot receives from Slack now.
func (b *Bot) Ready(context.Context) error {
	if !b.connected.any() {
		return errNotConnected
	}
	return nil
}

// connections notes which of the sockets are up.
type connections struct {
	mu sync.Mutex
	up [sockets]bool
}

func (c *connections) set(n int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[n] = up
}

func (c *connections) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, up := range c.up {
		if up {
			return true
		}
	}
	return false
}
