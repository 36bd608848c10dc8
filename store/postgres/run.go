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
// the closure ends. If a read depends on collected writes, the run makes these writes in a savepoint, reads, and rolls
// back the savepoint. All of this takes one round trip. So while a transaction waits for another transaction, it holds
// no row for which the other could wait.
type run struct {
	ctx      context.Context
	store    *Store
	conn     *pgxpool.Conn
	begin    string        // the statement that begins the transaction
	claims   []store.Claim // that the transaction works under
	begun    bool          // it was sent
	answered bool          // and answered
	expects  []any         // parameters of checks of the policy that were not sent yet
	pending  []*write
	byKey    map[key]*write // the pending write of a row
	hasty    bool           // it may have rows of others while it waits: see change
	known    map[key]known  // rows as the closure sees them
	lists    lists          // and lists of rows
	journal  journalPlace   // where the last page of the journal ended
	wrote    bool           // something was put
	careful  bool           // look before a record is created
	assumed  bool           // a record was assumed to be absent
	failure  error          // the transaction can't continue: what the closure returns does not count
	swapped  bool           // the connection was replaced
	aside    []store.Damage // rows that were set aside
	ended    bool           // the closure has returned
}

// journalPlace is the end of a page of entries that no head covers. It has the place of the page's last entry, and the
// number of the next entry. The next page begins at this place. Without this place, the next page would have to skip
// all entries before it.
type journalPlace struct {
	next  uint64 // 0: it is not known
	after int64
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
	moved bool // it changes columns by which lists find and order the record, or creates it
	sql   string
	args  []any
}

// known is the state of a row. If there is no row, value is nil.
type known struct {
	value   any
	version uint64
	damaged *store.DamagedError // it is there, and can't be read
}

const (
	beginUpdate = "begin isolation level serializable"
	beginView   = "begin isolation level repeatable read, read only"
)

// patience is how long the client waits for an answer. The server gives up earlier, because statement_timeout is
// shorter.
const patience = statementTimeout + 5*time.Second

func newRun(ctx context.Context, s *Store, conn *pgxpool.Conn, begin string) *run {
	return &run{ctx: ctx, store: s, conn: conn, begin: begin, byKey: map[key]*write{}, known: map[key]known{}, lists: newLists()}
}

// forget discards the known states of rows, because a statement may change any row.
func (r *run) forget() {
	clear(r.known)
	r.lists = newLists()
	r.wrote = true
}

// queryable queues the statement of a read.
type queryable func(b *pgx.Batch)

// depends reports whether a read needs a pending write on the server first. If depends is nil, the read needs no
// pending write.
type depends func(*write) bool

// on returns the dependence on the writes to some tables.
func on(tables ...string) depends {
	return func(w *write) bool { return slices.Contains(tables, w.key.table) }
}

// onRows says that a read depends on the writes to a table's rows with an id.
func onRows(table, id string) depends {
	return func(w *write) bool { return w.key.table == table && w.key.id == id }
}

// onPrefix is like onRows, for a table whose ids have several parts. prefix is the first part.
func onPrefix(table, prefix string) depends {
	return func(w *write) bool { return w.key.table == table && strings.HasPrefix(w.key.id, prefix+"\x00") }
}

// batch returns the statements that precede the next one.
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
	for _, load := range r.expects {
		b.Queue("SELECT check_policy($1)", load)
	}
	return b
}

// flush adds to a batch the pending writes that the function of selects.
func (r *run) flush(b *pgx.Batch, of depends) {
	slices.SortStableFunc(r.pending, inOrder)
	for _, w := range r.pending {
		if of(w) {
			b.Queue(w.sql, w.args...)
		}
	}
}

func everything(*write) bool { return true }

// inOrderOfCreation lists the tables with the order of creation of their records. The order is in the column born. The
// ids in these tables are random.
var inOrderOfCreation = []string{"conversations", "calls", "elicitations", "outbox_messages", "grants"}

// inOrder is the order in which every transaction writes rows: by table and key. Otherwise two transactions that write
// the same rows could wait for each other. After a second (deadlock_timeout), the server would end one of them. The
// entries of the journal also keep their order. The entries of the journal come last.
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

// query sends reads in one round trip. The reads see the pending writes on which they depend. An error ends the
// transaction.
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

// change first sends the pending writes, and then a statement that changes rows. From here on, the transaction has
// locked rows, and may wait for other transactions in any order. So the transaction waits only for a moment, and then
// runs again.
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
		// A connection that was idle may be dead. If the transaction has not used the connection yet, another
		// connection can replace it.
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

// row returns a read of one row, which may not exist.
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

// exec runs a statement that may change rows that the run knows. It returns the number of changed rows.
func (r *run) exec(sql string, args ...any) (n int, err error) {
	err = r.change(func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}

// returning is like exec, for a statement that returns one text for each row. The function returns these texts.
func (r *run) returning(sql string, args ...any) (list []string, err error) {
	err = r.change(rows(sql, args, func(found pgx.Rows) error {
		var s string
		err := found.Scan(&s)
		list = append(list, s)
		return err
	}))
	return list, err
}

// put makes a write pending. If a write to the same row is already pending, put only replaces its values. So if the
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

// always makes a write pending. The write works whether the row exists or not.
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
