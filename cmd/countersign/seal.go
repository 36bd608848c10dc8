package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/config"
	"countersign/store"
)

// How often the history is sealed while there is something to seal, and how long the sealer waits after a failure.
const (
	sealEvery = time.Second
	sealAgain = time.Minute
)

// sealing is what the sealer works with. The zero value: nothing is sealed.
type sealing struct {
	keys   []approvers.SealKey // the first one signs
	places []place             // where the heads are brought
}

// openSealing reads the key, or makes one, and finds out where heads are brought.
func openSealing(ctx context.Context, a config.Audit, s store.Store, log *slog.Logger) (out sealing, err error) {
	if out.keys, err = openSealKeys(ctx, a.Key, s, log); err != nil {
		return out, err
	}
	if a.Heads != "" {
		out.places = append(out.places, headFile(a.Heads))
	}
	if a.Syslog.Network != "" {
		out.places = append(out.places, &headSyslog{to: a.Syslog, now: time.Now})
	}
	return out, nil
}

// sealer signs a head over what was recorded, every second or so, and has the heads brought elsewhere. It never stops the bot, unless
// nobody knows whether the store wrote.
type sealer struct {
	desk     *desk.Desk
	keys     []approvers.SealKey
	couriers []*courier
	log      *slog.Logger

	mu  sync.Mutex
	err error // why the last try failed
}

func newSealer(s sealing, d *desk.Desk, db store.Store, log *slog.Logger) *sealer {
	out := &sealer{desk: d, keys: s.keys, log: log}
	for _, to := range s.places {
		out.couriers = append(out.couriers, newCourier(to, db, log))
	}
	return out
}

// work seals until ctx ends.
func (s *sealer) work(ctx context.Context) error {
	var g errgroup.Group
	for _, c := range s.couriers {
		g.Go(func() error { c.work(ctx); return nil })
	}
	g.Go(func() error {
		next := time.NewTimer(0)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-next.C:
			}
			err := s.seal(ctx)
			next.Reset(sealEvery)
			if err != nil {
				next.Reset(sealAgain)
			}
			if errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
		}
	})
	return g.Wait()
}

// seal seals everything that was recorded by now.
func (s *sealer) seal(ctx context.Context) (err error) {
	sealed := false
	for n := 1; n > 0 && err == nil; {
		n, err = s.desk.Seal(ctx, s.keys...)
		sealed = sealed || n > 0
	}
	if errors.Is(err, context.Canceled) {
		return err // the bot stops
	}
	s.mu.Lock()
	before := s.err
	s.err = err
	s.mu.Unlock()
	if err != nil && before == nil {
		s.log.Error("the history can't be sealed", "cause", err)
	}
	if sealed {
		for _, c := range s.couriers {
			c.ring()
		}
	}
	return err
}

// finish seals what was recorded until the very end, and brings the last heads.
func (s *sealer) finish(ctx context.Context) {
	if err := s.seal(ctx); err != nil {
		return // it was logged, and is sealed at the next start
	}
	for _, c := range s.couriers {
		c.bring(ctx)
	}
}

// probes are the sealer's lines on /readyz.
func (s *sealer) probes() []probe {
	if s == nil {
		return nil
	}
	return []probe{
		{name: "seal", ready: s.ready, notice: true},
		{name: "heads", ready: s.brought, notice: true},
	}
}

// ready says why the history is not sealed.
func (s *sealer) ready(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// brought says why heads are not where they should be.
func (s *sealer) brought(context.Context) error {
	var errs []error
	for _, c := range s.couriers {
		errs = append(errs, c.state())
	}
	return errors.Join(errs...)
}
