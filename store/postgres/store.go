package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/store"
)

// Store is an open database. Store is safe for concurrent use.
type Store struct {
	config  *config
	rights  Rights // rights of the store's role
	pool    *pgxpool.Pool
	gate    sync.RWMutex // held for writing by a transaction that was retried too often, so that no other transaction of this process runs at the same time
	mu      sync.Mutex   // guards first, closed, updates, failure, renewed, and calls of running.Add
	first   *pgx.Conn    // the connection that Open used, for Hold; nil: Hold was called
	closed  bool
	updates map[*time.Time]bool // when each running Update began
	failure error               // why the store has stopped; nil: the store has not stopped
	renewed time.Time           // when the connections of the pool were last replaced
	damage  store.Damages
	refusal refusal
	broken  chan struct{} // closed when the store has stopped
	closing chan struct{}
	running sync.WaitGroup
	once    sync.Once
	ending  atomic.Pointer[chan struct{}] // closed when the last View has released its connection; nil: there was no View
	hold    *hold                         // nil: Hold was not called
	replica atomic.Pointer[Replica]       // nil: Join was not called
	turns   turns
	newest  atomic.Pointer[store.Head] // the newest head that this process has signed or seen; nil: there was none
}

var _ store.Store = (*Store)(nil)

// enter begins a call. If the store is closed, enter returns false.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

// Close waits for running transactions and closes the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.running.Wait()
	s.once.Do(func() {
		if r := s.replica.Load(); r != nil {
			r.Leave()
		}
		s.closePool()
		if s.hold != nil {
			s.hold.end()
		}
		if s.first != nil {
			hangUp(s.first)
		}
	})
	return nil
}

// poolEnds is the time limit for closing the pool. If the server does not answer the cancellation of a statement, pgx
// closes the statement's connection only after 15 seconds.
const poolEnds = time.Second

// closePool closes the pool. No transaction is running any more. If closing takes too long, it continues in the
// background.
func (s *Store) closePool() {
	closed := make(chan struct{})
	go func() {
		s.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(poolEnds):
	}
}

// aboutToEnd is how long acquire waits for the end of a View. A connection that works needs much less time.
const aboutToEnd = time.Second

// acquire takes a connection from the pool. acquire waits for a free connection for at most twice connect_timeout.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	within := 2 * s.config.pool.ConnConfig.ConnectTimeout
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if end := s.ending.Load(); end != nil && s.pool.Stat().IdleConns() == 0 {
		select { // a connection that is about to be free is faster than a new connection
		case <-*end:
		case <-time.After(aboutToEnd):
		case <-limited.Done():
		}
	}
	conn, err := s.pool.Acquire(limited)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("%w: no connection became free within %s (%w)", store.ErrUnavailable, within, err)
	}
	return nil, s.config.sentence(err)
}

// View runs fn over one snapshot. View takes no locks, so no transaction waits for a View. If the context ends while
// View waits for a connection, View returns the context's error. If the database does not answer a read before the
// deadline of the context, View fails with ErrUnavailable.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.enter() {
		return store.ErrClosed
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		s.running.Done()
		return err
	}
	limited, cancel := context.WithoutCancel(ctx), func() {}
	if end, ok := ctx.Deadline(); ok {
		limited, cancel = context.WithDeadline(limited, end)
	}
	r := newRun(limited, s, conn, beginView)
	defer func() {
		r.ended = true
		end := make(chan struct{})
		s.ending.Store(&end)
		go func() { // the caller does not need to wait for the end of the snapshot
			defer s.running.Done()
			defer cancel()
			r.rollback()
			r.conn.Release()
			close(end)
		}()
	}()
	err = fn(reader{r})
	if r.failure != nil {
		s.refusal.note(r.failure)
		if isLost(r.failure) {
			s.renew(connectionOf(r.conn.Conn()).made)
		}
		return explain(r.failure)
	}
	return err
}

// Size returns the size of the database in bytes.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	if !s.enter() {
		return 0, store.ErrClosed
	}
	defer s.running.Done()
	conn, err := s.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&bytes)
	if err != nil {
		return 0, s.config.sentence(err)
	}
	return bytes, nil
}

// outcome is the result of one run of a closure.
type outcome int

const (
	done      outcome = iota
	contended         // the transaction conflicted with other transactions
	missed            // the turn of another replica took too long
	mistaken          // a record exists, although the run assumed that it did not
	lost              // the connection was lost, and nothing was committed
)

// A closure runs at most maxContended times because of conflicts, and at most maxLost times because of lost
// connections. After aloneFrom conflicts, the closure runs alone in its process.
const (
	maxContended = 50
	maxLost      = 3
	aloneFrom    = 3
)

// Update runs fn in a serializable transaction. If the transaction conflicts with other transactions, fn runs again. If
// the context ends before fn starts, fn does not run. After fn has started, Update waits for the outcome.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.enter() {
		return store.ErrClosed
	}
	defer s.running.Done()
	defer s.under()()
	if err := s.Failure(); err != nil {
		return err
	}
	careful, turn := false, s.turns.due()
	var met, failed int
	for {
		out, err := s.attempt(ctx, fn, careful, turn, met >= aloneFrom)
		switch out {
		case done:
			s.turns.ended()
			return err
		case mistaken:
			careful = true
		case contended:
			if met++; met == maxContended {
				return explain(err)
			}
			turn = s.turns.conflicted()
			pause(time.Duration(min(met, 10)) * time.Millisecond)
		case missed:
			turn = false
		case lost:
			if failed++; failed == maxLost {
				return explain(err)
			}
			pause(time.Duration(failed) * 50 * time.Millisecond)
		}
		ctx = context.WithoutCancel(ctx) // fn has started
	}
}

// pause waits for about the given time. The duration is random, so two conflicting transactions do not retry at the
// same moment.
func pause(about time.Duration) { time.Sleep(about/2 + rand.N(about)) }

// attempt runs fn once, and commits the transaction.
func (s *Store) attempt(ctx context.Context, fn func(store.Tx) error, careful, turn, alone bool) (out outcome, err error) {
	if turn {
		has, leave, err := s.turns.take(ctx)
		if err != nil {
			return done, err
		}
		defer leave()
		turn = has
	}
	if alone {
		s.gate.Lock()
		defer s.gate.Unlock()
	} else {
		s.gate.RLock()
		defer s.gate.RUnlock()
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return done, err
	}
	r := newRun(context.WithoutCancel(ctx), s, conn, beginUpdate)
	r.careful, r.claims = careful, store.ClaimsOf(ctx)
	if replica := s.replica.Load(); turn && replica != nil {
		r.turn = replica.Alive() > 1
	}
	committed := false
	defer func() {
		if !committed { // committed is also false if fn panicked or ended the goroutine
			r.rollback()
		}
		r.conn.Release()
	}()
	err = fn(&tx{reader{r}})
	switch {
	case r.failure != nil:
		return r.judge(r.failure)
	case err != nil && r.assumed:
		return mistaken, err // the wrong assumption may have caused the closure's error
	case err != nil:
		return done, err
	}
	out, err = r.commit()
	committed = out == done && err == nil
	if committed {
		s.refusal.committed(r.byKey)
		for _, x := range r.aside {
			s.damage.Over(x.Bucket, x.Key)
		}
		if r.head != nil {
			s.saw(*r.head)
		}
	}
	return out, err
}

// judge returns the outcome of a transaction that failed with err and was not committed. judge also returns the error
// for the caller.
func (r *run) judge(err error) (outcome, error) {
	switch {
	case code(err) == codeUnique && !r.careful:
		return mistaken, err
	case r.turn && code(err) == codeLockTimeout:
		return missed, err
	case isContended(err), r.hasty && code(err) == codeLockTimeout:
		return contended, err
	case code(err) == codeFenced:
		r.store.fenced(r.claims)
	case isLost(err):
		r.store.renew(connectionOf(r.conn.Conn()).made)
		return lost, err
	}
	r.store.refusal.note(err)
	return done, explain(err)
}

// commit sends the pending writes and the COMMIT in one round trip.
func (r *run) commit() (outcome, error) {
	if !r.begun && len(r.pending) == 0 && len(r.expects) == 0 {
		return done, nil // nothing was read or written
	}
	b := r.batch()
	r.flush(b, everything)
	own := connectionOf(r.conn.Conn())
	if r.wrote {
		own.commits++
		b.Queue("SELECT number_commit($1, $2)", own.id, own.commits)
	}
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("store: COMMIT was answered with %s", tag)
		}
		return nil
	})
	err := r.send(b)
	r.ended = true
	switch {
	case err == nil:
		return done, nil
	case !r.wrote, isAnswer(err), pgconn.SafeToRetry(err):
		return r.judge(err)
	}
	committed, err := r.store.settle(r.ctx, own, err)
	switch {
	case err != nil:
		return done, r.store.fail(err)
	case committed:
		return done, nil
	}
	r.store.renew(own.made)
	return lost, errNotCommitted
}

// renew replaces the connections of the pool. The store calls renew after the loss of a connection, because other
// connections may have been lost at the same moment. The parameter made is the time at which the lost connection was
// made. If the pool's connections were replaced after that time, renew does nothing.
func (s *Store) renew(made time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made.After(s.renewed) {
		s.renewed = time.Now()
		s.pool.Reset()
	}
}

var errNotCommitted = errors.New("the connection was lost during a COMMIT, and the transaction was not committed")

// Check compares the columns with the records, and verifies every audit chain.
func (s *Store) Check(ctx context.Context) error {
	return s.View(ctx, func(r store.Reader) error {
		if err := r.(reader).run.knowsAll(); err != nil {
			return err
		}
		return check(ctx, r.(reader))
	})
}
