package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

// hold is an advisory lock on a database, with its own connection. Replicas take the lock as a shared lock. A process
// that needs the database alone takes an exclusive lock.
type hold struct {
	store  *Store
	shared bool
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// holdClass is the first half of the key of Countersign's advisory lock. holdClass distinguishes this lock from the
// locks of other programs. The second half of the key is the schema.
const holdClass = 0x43534e

const (
	lingering = 300 * time.Millisecond // how long the server may take to notice that a process has ended
	holdAgain = 500 * time.Millisecond // time between two attempts to take a lost lock
	usurped   = 5 * time.Second        // if another process holds a lost lock for longer than this time, the store stops; commands hold the lock for a shorter time
)

// Hold reserves the database until Close. If shared is not set, no other process can hold the database. Hold in another
// process then returns store.ErrLocked, with a text that names the holder. If several processes set shared, they can
// hold the database at the same time. If the lock's connection is lost, the store takes the lock over a new connection
// as soon as the database answers. If another process has taken the lock in the meantime and keeps the lock, the store
// stops.
func (s *Store) Hold(ctx context.Context, shared bool) error {
	conn, err := s.lock(ctx, shared)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &hold{store: s, shared: shared, stop: stop}
	h.wg.Go(func() { h.keep(ctx, conn) })
	s.hold = h
	return nil
}

// keep waits until the lock's connection is lost, and then takes the lock over a new connection.
func (h *hold) keep(ctx context.Context, conn *pgx.Conn) {
	for {
		for err := error(nil); err == nil; { // heard waits for a notification that never arrives, so it returns only when the connection is lost or ctx ends
			_, err = heard(ctx, conn)
		}
		if ctx.Err() != nil {
			unlock(conn)
			return
		}
		_ = conn.Close(ctx)
		var other time.Time // the time at which another process was first found to hold the lock
		for {
			var err error
			if conn, err = h.store.lock(ctx, h.shared); err == nil {
				break
			}
			switch {
			case !errors.Is(err, store.ErrLocked):
				other = time.Time{}
			case other.IsZero():
				other = time.Now()
			case time.Since(other) > usurped:
				h.store.stopped(fmt.Errorf("the connection to the database was lost, and another process has taken over the database: %w", err))
				return
			}
			select {
			case <-time.After(holdAgain):
			case <-ctx.Done():
				return
			}
		}
	}
}

// unlock releases the lock and closes its connection.
func unlock(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	defer cancel()
	_, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock_all()") // without this statement, the server releases the lock slightly after the connection ends
	_ = conn.Close(ctx)
}

func (h *hold) end() {
	h.stop()
	h.wg.Wait()
}

// lock takes the lock over a separate connection. The first call uses the connection that Open has made.
func (s *Store) lock(ctx context.Context, shared bool) (*pgx.Conn, error) {
	try := "pg_try_advisory_lock"
	if shared {
		try = "pg_try_advisory_lock_shared"
	}
	s.mu.Lock()
	conn, err := s.first, error(nil)
	s.first = nil
	s.mu.Unlock()
	if conn == nil {
		if conn, err = s.config.connect(ctx); err != nil {
			return nil, err
		}
	}
	for end := time.Now().Add(lingering); ; pause(20 * time.Millisecond) {
		var held bool
		err = conn.QueryRow(ctx, "SELECT "+try+"($1, to_regnamespace($2)::oid::int)", holdClass, s.config.schema).Scan(&held)
		if err == nil && held {
			return conn, nil
		}
		if err != nil || time.Now().After(end) {
			break
		}
	}
	defer unlock(conn)
	if err != nil {
		return nil, s.config.sentence(err)
	}
	who := "another process"
	var program, pid, address string
	err = conn.QueryRow(ctx, `
SELECT coalesce(a.application_name, ''), l.pid::text, coalesce(host(a.client_addr), 'this machine')
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = $1::int::oid AND l.objid = to_regnamespace($2)::oid AND l.granted`, holdClass, s.config.schema).Scan(&program, &pid, &address)
	if err == nil {
		who = fmt.Sprintf("%s on %s (process %s of the server)", program, address, pid)
	}
	return nil, fmt.Errorf("%w: %s is held by %s. Stop it first, or name another database", store.ErrLocked, s.config.name(), who)
}
