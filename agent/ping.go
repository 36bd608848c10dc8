package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Errors of Ping and Try. The wrapping error says why.
var (
	// ErrModelUnreachable says that the model's endpoint does not answer as one.
	ErrModelUnreachable = errors.New("the model's endpoint can't be used")
	// ErrModelKey says that the endpoint refuses the key: nothing changes until somebody sets another one.
	ErrModelKey = errors.New("the model's endpoint refuses the key")
	// ErrNoModel says that the endpoint has no such model, or that the address is not one of chat completions.
	ErrNoModel = errors.New("the model's endpoint does not have it")
	// ErrModelRefuses says that the endpoint refuses what it is asked.
	ErrModelRefuses = errors.New("the model's endpoint refuses the request")
)

// pingTimeout bounds one look at the endpoint.
const pingTimeout = 5 * time.Second

// pinged is what the last look at the endpoint found.
type pinged struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// Ping reports whether the model's endpoint answers and takes the key. It asks for the list of models, which costs nothing; one finding
// holds for Config.PingEvery, however often it is asked for. An endpoint without such a list counts as reachable.
func (a *Agent) Ping(ctx context.Context) error {
	a.ping.mu.Lock()
	defer a.ping.mu.Unlock()
	if now := a.Now(); a.ping.at.IsZero() || now.Sub(a.ping.at) >= a.PingEvery || now.Before(a.ping.at) {
		err := a.model.reach(ctx)
		if ctx.Err() != nil {
			return ctx.Err() // says nothing of the endpoint
		}
		a.ping.at, a.ping.err = now, err
	}
	return a.ping.err
}

func (c *client) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, fmt.Errorf("%w (%s)", errSlow, pingTimeout))
	defer cancel()
	n := &notes{}
	_, err := c.api.ListModels(context.WithValue(ctx, notesKey{}, n))
	switch {
	case err == nil, n.status == http.StatusOK, n.status == http.StatusNotFound, n.status == http.StatusMethodNotAllowed, n.status == http.StatusTooManyRequests:
		return nil // it answers, and nothing is wrong with the key
	}
	f := classify(ctx, err, *n, c.now())
	if f.cause == causeKey {
		return fmt.Errorf("%w: %w", ErrModelKey, f.detail)
	}
	return fmt.Errorf("%w: %w", ErrModelUnreachable, f.detail)
}
