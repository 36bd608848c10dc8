package audit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/approvers"
	"countersign/store"
)

// sealEvery is the interval between attempts to seal new records. sealAgain is the delay after a failed attempt.
const (
	sealEvery = time.Second
	sealAgain = time.Minute
)

// Sealer signs a head over the new records about once a second, and passes the heads to the shippers. The bot continues
// after a failed seal. Sealer stops only after ErrCommitUnknown, because then the state of the disk is unknown, and
// after ErrOtherKey.
type Sealer struct {
	workflow Signer
	store    store.Store
	keys     []approvers.SealKey
	Shippers []*HeadShipper
	// Trusted lists the public keys of the key file. The sealer ends with ErrOtherKey if another key has signed the
	// newest head. If Trusted is empty, the sealer does not check the newest head's key.
	Trusted  []string
	log      *slog.Logger
	released uint64 // the number of the last head that is known to be durable

	mu  sync.Mutex
	err error // the error of the last attempt
}

// Signer signs and stores heads, as workflow.History does. Seal signs a head over the new records, and returns the
// number of new records that the head covers.
type Signer interface {
	Seal(ctx context.Context, keys ...approvers.SealKey) (int, error)
}

// NewSealer returns a sealer that signs with the first key, and ships to the targets.
func NewSealer(keys []approvers.SealKey, targets []HeadTarget, wf Signer, db store.Store, log *slog.Logger) *Sealer {
	out := &Sealer{workflow: wf, store: db, keys: keys, log: log}
	for _, to := range targets {
		c := NewHeadShipper(to, db, log)
		c.durable(0) // nothing is shipped until the number of the last durable head is known
		out.Shippers = append(out.Shippers, c)
	}
	return out
}

// Run seals until ctx ends. Then Run forgets the last error, because another replica may seal from now on.
func (s *Sealer) Run(ctx context.Context) error {
	defer s.forgetFailure()
	var g errgroup.Group
	for _, c := range s.Shippers {
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
			if errors.Is(err, store.ErrCommitUnknown) || errors.Is(err, ErrOtherKey) {
				return err
			}
		}
	})
	return g.Wait()
}

// seal seals all new records.
func (s *Sealer) seal(ctx context.Context) (err error) {
	err = s.release(ctx) // heads of earlier processes
	for n := 1; n > 0 && err == nil; {
		if n, err = s.workflow.Seal(ctx, s.keys...); err == nil {
			err = s.release(ctx)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, store.ErrFenced) {
		return err // the bot stops, or another replica seals
	}
	s.mu.Lock()
	before := s.err
	s.err = err
	s.mu.Unlock()
	if err != nil && before == nil && !errors.Is(err, store.ErrMoved) { // ErrMoved is logged elsewhere
		s.log.ErrorContext(ctx, "the history can't be sealed", "cause", err)
	}
	return err
}

func (s *Sealer) forgetFailure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
}

// ErrOtherKey means that another replica has signed the newest head with a key that this process does not know.
var ErrOtherKey = errors.New("another replica signs the history with a key that this process does not have: all replicas need the same key file. " +
	"Start this bot again, and it says what is missing")

// release lets the shippers ship all heads in the store. The caller ensures that no head is being signed. So all heads
// in the store are durable.
func (s *Sealer) release(ctx context.Context) error {
	var last store.Head
	err := s.store.View(ctx, func(r store.Reader) (err error) {
		if last, err = r.LastHead(); errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil || last.Number == s.released {
		return err
	}
	if len(s.Trusted) > 0 && last.Number > 0 && !signedByOne(s.Trusted, last.Note) {
		return ErrOtherKey
	}
	s.released = last.Number
	for _, c := range s.Shippers {
		c.durable(last.Number)
		c.notify()
	}
	return nil
}

// Finish seals the last records, and ships the last heads.
func (s *Sealer) Finish(ctx context.Context) {
	if err := s.seal(ctx); err != nil {
		return // the error was logged; the next start seals the records
	}
	for _, c := range s.Shippers {
		c.Ship(ctx)
	}
}

// Ready returns the reason why the history is not being sealed. If the history is being sealed, Ready returns nil.
func (s *Sealer) Ready(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// HeadsShipped returns the errors of the shippers' last attempts. If these attempts succeeded, HeadsShipped returns
// nil.
func (s *Sealer) HeadsShipped(context.Context) error {
	var errs []error
	for _, c := range s.Shippers {
		errs = append(errs, c.Err())
	}
	return errors.Join(errs...)
}
