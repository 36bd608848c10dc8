package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/store"
)

// run is one run of a closure on one connection. It sends nothing before the first read, and gathers writes until a
// read needs the server or the closure ends; both then go in one round trip.
type run struct {
	ctx      context.Context
	store    *Store
	conn     *pgxpool.Conn
	begin    string        // the statement that begins the transaction
	claims   []store.Claim // that the transaction works under
	begun    bool          // it was sent
	answered bool          // and answered
	pending  []*write
	byKey    map[key]*write // the pending write of a row
	known    map[key]known  // rows as the closure sees them
	lists    lists          // and lists of rows
	wrote    bool           // something was put
	careful  bool           // look before a record is created
	assumed  bool           // a record was assumed to be absent
	failure  error          // the transaction can't continue: what the closure returns does not count
	swapped  bool           // the connection was replaced
	aside    []store.Damage // rows that were set aside
	ended    bool           // the closure has returned
}

// key names a row.
type key struct {
	table string
	id    string
	n     int64 // of a row with a number
}

// write is a pending statement.
type write struct {
	key   key
	fresh bool // it creates a record
	sql   string
	args  []any
}

// known is the state of a row; value nil: there is none.
type known struct {
	value   any
	version uint64
	damaged *store.DamagedError // it is there, and can't be read
}

const (
	beginUpdate = "begin isolation level serializable"
	beginView   = "begin isolation level repeatable read, read only"
)

// patience is how long the client waits for an answer. The server gives up earlier, at statement_timeout.
const patience = statementTimeout + 5*time.Second

func newRun(ctx context.Context, s *Store, conn *pgxpool.Conn, begin string) *run {
	return &run{ctx: ctx, store: s, conn: conn, begin: begin, byKey: map[key]*write{}, known: map[key]known{}, lists: newLists()}
}

// forget discards what is known of rows, because a statement may change any of them.
func (r *run) forget() {
	clear(r.known)
	r.lists = newLists()
	r.wrote = true
}

// queryable queues the statement of a read.
type queryable func(b *pgx.Batch)

// batch returns the statements that precede the next read.
func (r *run) batch() *pgx.Batch {
	if r.ended {
		panic("store: a transaction is used after its closure has returned")
	}
	b := &pgx.Batch{}
	if !r.begun {
		b.Queue(r.begin).Exec(func(pgconn.CommandTag) error {
			r.answered = true
			return nil
		})
		for _, c := range r.claims {
			b.Queue("SELECT check_claim($1, $2, $3)", c.Name, c.Owner, c.Epoch)
		}
	}
	slices.SortStableFunc(r.pending, inOrder)
	for _, w := range r.pending {
		b.Queue(w.sql, w.args...)
	}
	return b
}

// inOrder is the order in which every transaction writes rows: by table and key. Otherwise two transactions that write
// the same rows could wait for each other, until the server ends one of them after a second (deadlock_timeout). New
// records of a table keep their order, and so do the entries of the journal, which come last.
func inOrder(a, b *write) int {
	rank := func(w *write) int {
		switch {
		case w.key.table == "audit_journal", w.key.table == "audit_heads":
			return 2
		case w.fresh:
			return 1
		}
		return 0
	}
	x, y := rank(a), rank(b)
	switch {
	case x == 2 || y == 2:
		return cmp.Compare(x, y)
	case a.key.table != b.key.table:
		return cmp.Compare(a.key.table, b.key.table)
	case x == 1 || y == 1:
		return cmp.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(a.key.id, b.key.id), cmp.Compare(a.key.n, b.key.n))
}

// query sends the pending writes and the reads in one round trip. An error ends the transaction.
func (r *run) query(queries ...queryable) error {
	for r.failure == nil {
		b := r.batch()
		for _, q := range queries {
			q(b)
		}
		err := r.send(b)
		if err == nil {
			r.pending = nil
			clear(r.byKey)
			return nil
		}
		// A connection that was idle may be dead. Another one can replace it if nothing was done or read over it yet.
		if isLost(err) && !r.answered && r.swap() {
			continue
		}
		r.failure = err
	}
	return r.failure
}

func (r *run) send(b *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	r.begun = true
	err := r.conn.SendBatch(ctx, b).Close()
	if err != nil && r.conn.Conn().IsClosed() {
		return lostError{err}
	}
	return err
}

// swap replaces a dead connection once.
func (r *run) swap() bool {
	if r.swapped {
		return false
	}
	conn, err := r.store.acquire(r.ctx)
	if err != nil {
		return false
	}
	r.conn.Release()
	r.conn, r.begun, r.swapped = conn, false, true
	return true
}

// rows returns a read of a list. scan is called for each row.
func rows(sql string, args []any, scan func(pgx.Rows) error) queryable {
	return func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(func(found pgx.Rows) error {
			for found.Next() {
				if err := scan(found); err != nil {
					return err
				}
			}
			return found.Err()
		})
	}
}

// row returns a read of one row, if there is one.
func row(sql string, args []any, scan func(pgx.Row) error) queryable {
	return func(b *pgx.Batch) {
		b.Queue(sql, args...).QueryRow(func(found pgx.Row) error {
			if err := scan(found); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		})
	}
}

// exec runs a statement that may change rows that the run knows, and returns the number of changed rows.
func (r *run) exec(sql string, args ...any) (n int, err error) {
	r.forget()
	err = r.query(func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}

// returning is like exec, for a statement that returns one text for each row. It returns these texts.
func (r *run) returning(sql string, args ...any) (list []string, err error) {
	r.forget()
	err = r.query(rows(sql, args, func(found pgx.Rows) error {
		var s string
		err := found.Scan(&s)
		list = append(list, s)
		return err
	}))
	return list, err
}

// put makes a write pending. If a write to the same row is pending already, put only replaces its values, so a pending
// write that creates the row still does.
func (r *run) put(k key, create, change string, exists bool, args ...any) {
	r.wrote = true
	if w := r.byKey[k]; w != nil {
		w.args = args
		return
	}
	w := &write{key: k, sql: change, args: args}
	if !exists {
		w.sql, w.fresh = create, true
	}
	r.pending = append(r.pending, w)
	r.byKey[k] = w
}

// always makes a write pending that does not depend on whether the row exists.
func (r *run) always(k key, sql string, args ...any) {
	r.wrote = true
	w := r.byKey[k]
	if w == nil {
		w = &write{key: k}
		r.pending = append(r.pending, w)
		r.byKey[k] = w
	}
	w.sql, w.args = sql, args
}

// rollback gives the transaction up.
func (r *run) rollback() {
	r.ended = true
	if !r.begun || r.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	_, _ = r.conn.Exec(ctx, "rollback") // if this fails, the connection is not used again: see pgxpool.Conn.Release
}
