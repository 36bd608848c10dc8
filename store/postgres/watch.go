package postgres

import (
	"errors"
	"time"

	"countersign/store"
)

// Stalled returns how long the oldest running Update has been running. If no Update is running, Stalled returns 0.
// Stalled returns quickly, even if the database does not answer.
func (s *Store) Stalled() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Duration
	for began := range s.updates {
		oldest = max(oldest, time.Since(*began))
	}
	return oldest
}

// under adds the running Update to the list from which Stalled reads. The caller calls the returned function when the
// Update has ended.
func (s *Store) under() func() {
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates[&began] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.updates, &began)
	}
}

// Broken returns a channel that is closed when the store has stopped. The store stops if the outcome of a commit is
// unknown, or if another process holds the database. The store also stops if the tables became too new for this
// program.
func (s *Store) Broken() <-chan struct{} { return s.broken }

// Failure returns the reason why the store has stopped. If the store has not stopped, Failure returns nil.
func (s *Store) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// fail stops the store if err is ErrCommitUnknown, because the process must not use the store any more.
func (s *Store) fail(err error) error {
	if errors.Is(err, store.ErrCommitUnknown) {
		s.stopped(err)
	}
	return err
}

// stopped stops the store.
func (s *Store) stopped(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil && !s.closed {
		s.failure = err
		close(s.broken)
	}
}

// Holds reports whether the id (see the function ID) is the id of the store's database.
func (s *Store) Holds(id string) bool { return id == s.config.id() }
