package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// Store is an open file. It is safe for use by many goroutines.
type Store struct {
	db     *bbolt.DB
	writer *writer
	close  func() error
}

var _ store.Store = (*Store)(nil)

func newStore(db *bbolt.DB, rehearse bool) *Store {
	s := &Store{db: db, writer: startWriter(db, rehearse)}
	s.close = sync.OnceValue(func() error {
		s.writer.stop()
		if err := db.Close(); err != nil { // waits for views
			return fmt.Errorf("store: close: %w", err)
		}
		return nil
	})
	return s
}

// Update runs fn when its turn comes, and returns when what it wrote is durable. A context that ends before then takes the closure out of
// the queue; once it runs, it runs to its end.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.writer.update(ctx, fn)
}

// View runs fn over what is committed. Writers go on meanwhile; Close waits.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.writer.broken(); err != nil {
		return err
	}
	btx, err := s.db.Begin(false)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("store: begin a view: %w", err)
	}
	r := &reader{&rows{tx: btx}}
	defer func() {
		r.rows = nil
		_ = btx.Rollback() // a read transaction has nothing that can fail
	}()
	return Guard(func() error { return fn(r) })
}

// Close waits for the transactions under way and releases the file. Closures that still wait for their turn get ErrClosed.
func (s *Store) Close() error { return s.close() }
