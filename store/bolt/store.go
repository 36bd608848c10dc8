package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// Store is an open file. Store is safe for concurrent use.
type Store struct {
	db       *bbolt.DB
	writer   *writer
	damage   *damages
	identity *identity
	readOnly bool  // see Options
	torn     error // why rows can't be read or written; nil: they can
	close    func() error
}

var _ store.Store = (*Store)(nil)

func newStore(db *bbolt.DB, file *os.File, id *identity, rehearse bool) *Store {
	damage := &damages{}
	s := &Store{db: db, writer: startWriter(db, id, rehearse, damage), damage: damage, identity: id}
	s.close = sync.OnceValue(func() error {
		s.writer.stop()
		release := db.Close // waits for views
		if s.writer.cut {
			release = file.Close // after a transaction that could not be ended, bbolt never releases its locks
		}
		if err := errors.Join(release(), id.close()); err != nil {
			return fmt.Errorf("store: close: %w", within{err})
		}
		return nil
	})
	return s
}

// Size returns the size of the used part of the file in bytes. Free pages before the last used page count as used.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		bytes = r.(*reader).rows.tx.Size()
		return nil
	})
	return bytes, err
}

// Update queues fn, runs it, and returns when fn's writes are durable. If the context ends while fn is queued, fn does
// not run. After the writer has taken fn, Update waits for the outcome, even if the context ends. fn may run more than
// once.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if s.readOnly {
		return errReadOnly
	}
	if s.torn != nil {
		return s.torn
	}
	return s.writer.update(ctx, fn)
}

var errReadOnly = errors.New("store: the store is open for reading only")

// View runs fn over committed data. While fn runs, writers continue, and Close waits.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cmp.Or(s.readable(), s.torn); err != nil {
		return err
	}
	btx, err := s.begin()
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("store: begin a view: %w", within{err})
	}
	r := &reader{&rows{tx: btx, damage: s.damage}}
	defer func() {
		r.rows = nil
		_ = btx.Rollback() // rolling back a read transaction can't fail
	}()
	err = Guard(func() error { return fn(r) })
	s.damage.failed(err)
	return err
}

// begin begins a read transaction.
func (s *Store) begin() (btx *bbolt.Tx, err error) {
	err = Guard(func() (err error) {
		btx, err = s.db.Begin(false)
		return err
	})
	return btx, err
}

// Stalled returns how long the current write transaction has been running. If there is no transaction, Stalled returns
// 0. Stalled never blocks.
func (s *Store) Stalled() time.Duration { return s.writer.stalled() }

// Broken returns a channel that is closed when the store stops: see store.ErrCommitUnknown. No write succeeds after the
// store has stopped.
func (s *Store) Broken() <-chan struct{} { return s.writer.stopped }

// Failure returns the reason why the store has stopped. If the store has not stopped, Failure returns nil.
func (s *Store) Failure() error { return s.writer.broken() }

// readable returns an error if the store has stopped or the file was truncated.
func (s *Store) readable() error {
	if err := s.writer.broken(); err != nil {
		return err
	}
	err := s.identity.whole()
	if errors.Is(err, store.ErrDamaged) {
		return s.writer.fail(err)
	}
	return err
}

// Close waits for running transactions and releases the file. Queued closures get ErrClosed.
func (s *Store) Close() error { return s.close() }
