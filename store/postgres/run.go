package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/store"
)

// run is one run of a closure on one connection. A run sends nothing before the first read, and collects writes until
// the closure ends or calls the method change. If a read depends on collected writes, the run makes these writes in a
// savepoint, reads, and rolls back the savepoint, all in one round trip. The rollback releases the row locks of these
// writes, so two transactions do not wait for each other's row locks.
type run struct {
	ctx      context.Context
	store    *Store
	conn     *pgxpool.Conn
	begin    string        // the statement that begins the transaction
	claims   []store.Claim // the claims under which the transaction works
	turn     bool          // the transaction waits for the turns of other replicas, and does not have its turn yet
	begun    bool          // the statement begin was sent
	answered bool          // the server has answered the statement begin
	expects  []any         // parameters of policy checks that were not sent yet
	pending  []*write
	byKey    map[key]*write // the pending write of a row
	hasty    bool           // the transaction has locked rows, so it waits only briefly for further locks: see the method change
	known    map[key]known  // the state of rows as the closure sees it
	lists    lists          // lists of rows as the closure sees them
	journal  journalPlace   // where the last page of the journal ended
	wrote    bool           // the closure has written something
	careful  bool           // the run must look for an existing record before it creates a record
	assumed  bool           // the run has assumed that some record does not exist
	failure  error          // why the transaction can't continue; if set, the closure's own result is ignored
	swapped  bool           // the connection was replaced
	aside    []store.Damage // rows that were set aside
	newest   *store.Head    // the newest head that was known when the run began; nil: there was none
	head     *store.Head    // the head that the run writes
	ended    bool           // the closure has returned
}

// journalPlace is the end of a page of journal entries that no head covers. The next page begins there. Without
// journalPlace, the query for the next page would have to skip all earlier entries.
type journalPlace struct {
	next  uint64 // the number of the next entry; 0: unknown
	after int64
}

// key names a row.
type key struct {
	table string
	id    string
	n     int64 // for a row whose key has a number
}

// write is a pending statement.
type write struct {
	key   key
	fresh bool // the write creates a record
	moved bool // the write creates a record, or changes a column by which lists find or order records
	sql   string
	args  []any
}

// known is the state of a row. If the row does not exist, value is nil.
type known struct {
	value   any
	version uint64
	damaged *store.DamagedError // the row exists, but can't be read
}

const (
	beginUpdate = "begin isolation level serializable"
	beginView   = "begin isolation level repeatable read, read only"
)

// patience is how long the client waits for an answer. patience is longer than statement_timeout, so usually the server
// gives up first.
const patience = statementTimeout + 5*time.Second

func newRun(ctx context.Context, s *Store, conn *pgxpool.Conn, begin string) *run {
	return &run{ctx: ctx, store: s, conn: conn, begin: begin, byKey: map[key]*write{}, known: map[key]known{}, lists: newLists(), newest: s.newest.Load()}
}

// forget discards the known states of rows, because a statement may change any row.
func (r *run) forget() {
	clear(r.known)
	r.lists = newLists()
	r.wrote = true
}

// queryable is a function that adds the statement of a read to a batch.
type queryable func(b *pgx.Batch)

// depends is a function that reports whether a read depends on a pending write, so that the write must be made before
// the read. If the function is nil, the read depends on no pending write.
type depends func(*write) bool

// The function on is for a read that depends on all pending writes to the given tables.
func on(tables ...string) depends {
	return func(w *write) bool { return slices.Contains(tables, w.key.table) }
}

// onRows is for a read that depends only on the pending writes to the rows with the given id.
func onRows(table, id string) depends {
	return func(w *write) bool { return w.key.table == table && w.key.id == id }
}

// onPrefix is like onRows, for a table whose ids have several parts. The parameter prefix is the first part of the id.
func onPrefix(table, prefix string) depends {
	return func(w *write) bool { return w.key.table == table && strings.HasPrefix(w.key.id, prefix+"\x00") }
}

// batch returns a batch for the next statements. The batch begins with the statements that must be sent first, such as
// BEGIN and checks.
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
		if r.turn {
			lockTurn(b, func() { r.turn = false })
		}
		for _, c := range r.claims {
			b.Queue("SELECT check_claim($1, $2, $3)", c.Name, c.Owner, c.Epoch)
		}
	}
	for _, load := range r.expects {
		b.Queue("SELECT check_policy($1)", load)
	}
	return b
}

// flush adds pending writes to a batch. flush adds only the writes for which its last parameter returns true.
func (r *run) flush(b *pgx.Batch, of depends) {
	slices.SortStableFunc(r.pending, inOrder)
	for _, w := range r.pending {
		if of(w) {
			b.Queue(w.sql, w.args...)
		}
	}
}

func everything(*write) bool { return true }

// inOrderOfCreation lists the tables with a column born, which gives the order of creation. New rows of these tables
// are written in the order of creation, because their ids may sort differently.
var inOrderOfCreation = []string{"conversations", "calls", "elicitations", "outbox_messages", "grants"}

// inOrder is the order in which every transaction writes rows: by table and key. Without a common order, two
// transactions that write the same rows could wait for each other, until the server ends one of them after a second
// (deadlock_timeout). Journal entries come last, in the order in which they were added.
func inOrder(a, b *write) int {
	rank := func(w *write) int {
		switch {
		case w.key.table == "audit_journal", w.key.table == "audit_heads":
			return 2
		case w.fresh && slices.Contains(inOrderOfCreation, w.key.table):
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

// query sends reads in one round trip. The reads see the pending writes on which they depend. After an error, the
// transaction can't continue.
func (r *run) query(of depends, queries ...queryable) error {
	return r.sendAll(func(b *pgx.Batch) {
		own := of != nil && slices.ContainsFunc(r.pending, of)
		if own {
			b.Queue("savepoint own")
			r.flush(b, of)
		}
		for _, q := range queries {
			q(b)
		}
		if own {
			b.Queue("rollback to savepoint own")
			b.Queue("release savepoint own")
		}
	})
}

// change sends the pending writes, followed by a statement that changes rows. The statement locks rows, so the
// transaction could deadlock with other transactions. Therefore the transaction waits at most 100 ms for a lock. If it
// does not get the lock, it fails and runs again.
func (r *run) change(statement queryable) error {
	r.forget()
	r.hasty = true
	err := r.sendAll(func(b *pgx.Batch) {
		r.flush(b, everything)
		b.Queue(hastily)
		statement(b)
	})
	if err == nil {
		r.pending = nil
		clear(r.byKey)
	}
	return err
}

// sendAll sends statements in one round trip.
func (r *run) sendAll(statements queryable) error {
	for r.failure == nil {
		b := r.batch()
		statements(b)
		err := r.send(b)
		if err == nil {
			r.expects = nil
			return nil
		}
		// An idle connection may be dead. If the server has not answered on this connection yet, another connection can
		// replace this connection.
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

// hastily is a statement that sets a lock timeout well below deadlock_timeout (1 s).
const hastily = "SET LOCAL lock_timeout = '100ms'"

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

// rows returns the query of a list. The query calls scan for each row.
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

// row returns the query of one row. The row need not exist.
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

// exec runs a statement that changes rows, and returns the number of changed rows.
func (r *run) exec(sql string, args ...any) (n int, err error) {
	err = r.change(func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}

// returning is like exec, for a statement that returns one text for each row. returning returns these texts.
func (r *run) returning(sql string, args ...any) (list []string, err error) {
	err = r.change(rows(sql, args, func(found pgx.Rows) error {
		var s string
		err := found.Scan(&s)
		list = append(list, s)
		return err
	}))
	return list, err
}

// put adds a pending write. If a write to the same row is already pending, put only replaces its values. So if the
// pending write creates the row, it still does.
func (r *run) put(k key, create, change string, exists, moved bool, args ...any) {
	r.wrote = true
	if w := r.byKey[k]; w != nil {
		w.args, w.moved = args, w.moved || moved
		return
	}
	w := &write{key: k, sql: change, args: args, moved: moved}
	if !exists {
		w.sql, w.fresh = create, true
	}
	r.pending = append(r.pending, w)
	r.byKey[k] = w
}

// always adds a pending write with a statement that works whether the row exists or not.
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

// rollback rolls the transaction back.
func (r *run) rollback() {
	r.ended = true
	if !r.begun || r.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	_, _ = r.conn.Exec(ctx, "rollback") // if this fails, the connection is not used again: see pgxpool.Conn.Release
}
