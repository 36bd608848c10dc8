package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"countersign/store"
)

// place is somewhere outside of the store where heads are kept.
type place interface {
	String() string
	// last is the number of the head that was brought last, so that the next ones follow it.
	last(ctx context.Context, s store.Store) (uint64, error)
	bring(ctx context.Context, heads []store.Head) error
}

// courier brings heads to one place. What can't be brought now is brought later.
type courier struct {
	to    place
	store store.Store
	log   *slog.Logger
	bell  chan struct{}

	mu    sync.Mutex
	known bool // where it stands
	after uint64
	err   error // why the last try failed
}

func newCourier(to place, s store.Store, log *slog.Logger) *courier {
	return &courier{to: to, store: s, log: log, bell: make(chan struct{}, 1)}
}

// bringAgain is how long a courier waits after a failure.
const bringAgain = 10 * time.Second

// bringBatch is how many heads are brought at a time.
const bringBatch = 100

// ring says that there is a new head.
func (c *courier) ring() {
	select {
	case c.bell <- struct{}{}:
	default: // it was told already
	}
}

// work brings heads until ctx ends.
func (c *courier) work(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.bell:
		case <-again.C:
		}
		if c.bring(ctx); c.state() != nil {
			again.Reset(bringAgain)
		}
	}
}

// bring brings every head that was not brought yet.
func (c *courier) bring(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.bringAll(ctx)
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && c.err == nil:
		c.log.Error("signed heads of the history can't be brought; it is tried again", "to", c.to.String(), "cause", err)
	case err == nil && c.err != nil:
		c.log.Info("signed heads of the history are brought again", "to", c.to.String())
	}
	c.err = err
}

func (c *courier) bringAll(ctx context.Context) error {
	if !c.known {
		after, err := c.to.last(ctx, c.store)
		if err != nil {
			return err
		}
		c.after, c.known = after, true
	}
	for {
		var heads []store.Head
		err := c.store.View(ctx, func(r store.Reader) (err error) {
			heads, err = r.Heads(c.after, bringBatch)
			return err
		})
		if err != nil || len(heads) == 0 {
			return err
		}
		if err := c.to.bring(ctx, heads); err != nil {
			return err
		}
		c.after = heads[len(heads)-1].Number
	}
}

// state says why heads are not there.
func (c *courier) state() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.to, c.err)
}

// waiting is how many heads were not brought yet.
func (c *courier) waiting(ctx context.Context) (n uint64, err error) {
	err = c.store.View(ctx, func(r store.Reader) error {
		last, err := r.LastHead()
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		n = last.Number - min(c.after, last.Number)
		return err
	})
	return n, err
}
