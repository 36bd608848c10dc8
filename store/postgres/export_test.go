package postgres

import (
	"context"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/store"
)

// Freeze ends the heartbeats, as if the process were suspended.
func (r *Replica) Freeze() {
	r.stop()
	r.work.Wait()
}

// Thaw restarts the heartbeats after Freeze.
func (r *Replica) Thaw() { r.start() }

// BeatNow sends a heartbeat now.
func (r *Replica) BeatNow() { r.beatNow() }

// Exec executes a statement outside of the store's transactions.
func (s *Store) Exec(ctx context.Context, sql string) error {
	_, err := s.pool.Exec(ctx, sql)
	return err
}

// AwaitIdle waits until every connection of the pool is free. A test needs AwaitIdle, because View may return before
// its snapshot has ended.
func (s *Store) AwaitIdle(ctx context.Context) error {
	for s.pool.Stat().AcquiredConns() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// Reconnect makes a new connection, and closes this connection.
func (s *Store) Reconnect(ctx context.Context) error {
	conn, err := s.config.connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Renew replaces the connections of the pool.
func (s *Store) Renew() { s.renew(time.Now()) }

// CopiedTables lists the tables whose rows are copied.
func CopiedTables() (tables []string) {
	for _, p := range parts {
		tables = append(tables, p.tables...)
	}
	return tables
}

// Shown returns the value that a setting of the server has in a transaction.
func (s *Store) Shown(ctx context.Context, setting string) (value string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		return r.(reader).run.query(nil, row("SELECT current_setting($1)", []any{setting}, func(found pgx.Row) error { return found.Scan(&value) }))
	})
	return value, err
}

// RunIn runs a statement in a transaction.
func RunIn(x store.Reader, sql string) error {
	r, ok := x.(reader)
	if !ok {
		r = x.(*tx).reader
	}
	return r.run.query(nil, func(b *pgx.Batch) { b.Queue(sql) })
}

// OpenAs opens a database like a program with other migrations.
func OpenAs(ctx context.Context, url string, migrations fs.FS, opts Options) (*Store, error) {
	c, err := parse(url)
	if err != nil {
		return nil, err
	}
	c.migrations = migrations
	return c.open(ctx, opts)
}

// MigrateAs migrates a database like a program with other migrations.
func MigrateAs(ctx context.Context, url string, migrations fs.FS, dry bool) ([]string, error) {
	c, err := parse(url)
	if err != nil {
		return nil, err
	}
	c.migrations = migrations
	return c.update(ctx, dry)
}

// OpenWith opens a database with changed settings of the connections.
func OpenWith(ctx context.Context, url string, change func(*pgx.ConnConfig)) (*Store, error) {
	s, err := Open(ctx, url, Options{})
	if err != nil {
		return nil, err
	}
	s.pool.Close()
	change(s.config.pool.ConnConfig)
	s.pool, err = pgxpool.NewWithConfig(ctx, s.config.pool)
	return s, err
}

// OpenNeeding opens a database like a program that needs a newer server.
func OpenNeeding(ctx context.Context, url string, oldest int) (*Store, error) {
	c, err := parse(url)
	if err != nil {
		return nil, err
	}
	c.oldest = oldest
	return c.open(ctx, Options{})
}

// Payloads divides a notice as notify does.
func Payloads(n store.Notice) (list []string) { return payloads(sent{From: "x", Notice: n}) }

// Turns are the turns of a process.
type Turns = turns

// Take waits for a turn.
func (t *turns) Take(ctx context.Context) (has bool, leave func(), err error) { return t.take(ctx) }

// Conflicted reports whether a transaction that runs again after a conflict takes a turn.
func (t *turns) Conflicted() bool { return t.conflicted() }

// TakeTurns makes the next transactions take turns.
func (s *Store) TakeTurns() {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	s.turns.left = manyTurns
}

// TakesTurns reports whether the next transaction takes a turn.
func (s *Store) TakesTurns() bool { return s.turns.due() }
