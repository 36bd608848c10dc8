package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Errors of Ping and Try. The wrapping error gives the reason.
var (
	// ErrModelUnreachable means that the model's endpoint gives no usable response, for example because it is down,
	// overloaded, or not a chat-completions endpoint.
	ErrModelUnreachable = errors.New("the model's endpoint can't be used")
	// ErrModelKey means that the endpoint refuses the key.
	ErrModelKey = errors.New("the model's endpoint refuses the key")
	// ErrNoModel means that the endpoint responds that the model, or the path of the request, does not exist.
	ErrNoModel = errors.New("the model's endpoint does not have this model")
	// ErrModelRefuses means that the endpoint rejects the request.
	ErrModelRefuses = errors.New("the model's endpoint refuses the request")
	// ErrToolsTooLong means that the definitions of the tools are too long for the model.
	ErrToolsTooLong = errors.New("the model's endpoint refuses the definitions of the tools as too long")
)

// pingTimeout limits one check of the endpoint. The limit is shorter than that of a probe of /readyz, so that /readyz
// gives the reason.
const pingTimeout = 4 * time.Second

// pinged is the result of the last check.
type pinged struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// RenewKey replaces the API key of the model's endpoint for all later calls.
func (a *Agent) RenewKey(key string) {
	a.model.key.Store(&key)
	a.ping.mu.Lock()
	defer a.ping.mu.Unlock()
	a.ping.at = time.Time{} // without a cached result, the next Ping uses the new key
}

// Ping checks that the model's endpoint responds and accepts the key. Ping requests the list of models, which is
// free. It caches the result for Config.PingEvery. An endpoint without a list of models counts as reachable.
func (a *Agent) Ping(ctx context.Context) error {
	a.ping.mu.Lock()
	defer a.ping.mu.Unlock()
	if now := a.Now(); a.ping.at.IsZero() || now.Sub(a.ping.at) >= a.PingEvery || now.Before(a.ping.at) {
		err := a.model.reach(ctx)
		if ctx.Err() != nil {
			return ctx.Err() // the check did not finish
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
		return nil // the endpoint responds, and the key was not refused
	}
	f := classify(ctx, err, *n, c.now())
	if f.cause == causeKey {
		return fmt.Errorf("%w: %w", ErrModelKey, f.detail)
	}
	return fmt.Errorf("%w: %w", ErrModelUnreachable, f.detail)
}
