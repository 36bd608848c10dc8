package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"countersign/store"
)

// HeadTarget stores heads outside of the store.
type HeadTarget interface {
	String() string
	// Last returns the number of a head that the target has, or 0. Shipping continues with the next head.
	Last(ctx context.Context, s store.Store) (uint64, error)
	Ship(ctx context.Context, heads []store.Head) error
}

// HeadShipper copies heads to one target, and retries after a failure. HeadShipper starts with the head after
// Target.Last.
type HeadShipper struct {
	Target HeadTarget
	store  store.Store
	log    *slog.Logger
	wake   chan struct{}
	upTo   atomic.Uint64 // the number of the last durable head; later heads are not shipped

	mu    sync.Mutex
	known bool // the number of the target's last head is known
	after uint64
	err   error // the error of the last attempt
}

// NewHeadShipper returns a shipper that ships every head in the store, until a call of durable sets a limit.
func NewHeadShipper(to HeadTarget, s store.Store, log *slog.Logger) *HeadShipper {
	c := &HeadShipper{Target: to, store: s, log: log, wake: make(chan struct{}, 1)}
	c.upTo.Store(math.MaxUint64)
	return c
}

// durable sets the number of the newest head that is synced to the store's disk. A read transaction can return a
// newer head. If the newer head were shipped and the power failed, the target could have a head that the store lacks.
func (c *HeadShipper) durable(number uint64) { c.upTo.Store(number) }

// shipRetry is the delay after a failure.
const shipRetry = 10 * time.Second

// shipBatch is the number of heads in one read.
const shipBatch = 100

// notify signals to the method work that there is a new head.
func (c *HeadShipper) notify() {
	select {
	case c.wake <- struct{}{}:
	default: // the signal is already pending
	}
}

// The method work ships heads until ctx ends. Then work forgets the last error, because another replica may ship from
// now on.
func (c *HeadShipper) work(ctx context.Context) {
	defer c.forgetFailure()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-again.C:
		}
		if c.Ship(ctx); c.Err() != nil {
			again.Reset(shipRetry)
		}
	}
}

func (c *HeadShipper) forgetFailure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = nil
}

// Ship copies every head that the target lacks. Ship logs an error only if the previous attempt had none. The method
// Err returns the error.
func (c *HeadShipper) Ship(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.shipAll(ctx)
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && c.err == nil:
		c.log.ErrorContext(ctx, "signed heads of the history can't be shipped; this is tried again", "to", c.Target.String(), "cause", err)
	case err == nil && c.err != nil:
		c.log.InfoContext(ctx, "signed heads of the history are shipped again", "to", c.Target.String())
	}
	c.err = err
}

func (c *HeadShipper) shipAll(ctx context.Context) error {
	if !c.known {
		after, err := c.Target.Last(ctx, c.store)
		if err != nil {
			return err
		}
		c.after, c.known = after, true
	}
	for {
		var heads []store.Head
		err := c.store.View(ctx, func(r store.Reader) (err error) {
			heads, err = r.Heads(c.after, shipBatch)
			return err
		})
		if err != nil {
			return err
		}
		heads = slices.DeleteFunc(heads, func(h store.Head) bool { return h.Number > c.upTo.Load() })
		if len(heads) == 0 {
			return nil
		}
		if err := c.Target.Ship(ctx, heads); err != nil {
			return err
		}
		c.after = heads[len(heads)-1].Number
	}
}

// Err returns the error of the last attempt. Err returns nil if the attempt succeeded.
func (c *HeadShipper) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.Target, c.err)
}

// Waiting returns the number of heads that the target lacks. Until the target's last head is known, Waiting counts all
// heads.
func (c *HeadShipper) Waiting(ctx context.Context) (n uint64, err error) {
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
