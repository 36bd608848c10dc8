package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

// If the answer to a COMMIT is lost, the store looks up whether the transaction was committed. Each connection of the
// pool has a row in the table connections. The last statement of a writing transaction calls number_commit, which
// stores the number of the commit in the row of the connection. After a connection is lost, the method settle opens
// another connection. settle marks the row of the lost connection as fenced, and reads the number of its last commit:
//
//   - If this number is the number of the transaction, the transaction was committed.
//   - If this number is lower, the transaction was not committed. It can't be committed later either, because
//     number_commit fails for a fenced connection.
//   - If the row is locked, the transaction is open. After a second (untilEnd), settle ends the transaction's server
//     process.
//
// PostgreSQL's function pg_xact_status can't replace the table connections, for two reasons. First, the client would
// need the transaction's id before the COMMIT, and reading this id takes one more round trip. Second, the server may
// assign the same id to another transaction after a crash. pg_xact_status would then describe the other transaction.

// connection identifies a connection. No two connections ever have the same id.
type connection struct {
	id      string
	commits int64
	made    time.Time
}

const connectionKey = "countersign"

// connectionOf returns the identity of a connection of the pool.
func connectionOf(conn *pgx.Conn) *connection {
	return conn.PgConn().CustomData()[connectionKey].(*connection)
}

// register inserts the row of a new connection of the pool.
func register(ctx context.Context, conn *pgx.Conn) error {
	own := &connection{id: rand.Text(), made: time.Now()}
	conn.PgConn().CustomData()[connectionKey] = own
	_, err := conn.Exec(ctx, "INSERT INTO connections (id, backend, began, used) SELECT $1, pid, backend_start, now() FROM pg_stat_get_activity(pg_backend_pid())", own.id)
	return err
}

// deleteOldConnections is a statement that removes the rows of connections that ended long ago.
const deleteOldConnections = `
DELETE FROM connections c WHERE used < now() - interval '1 day'
AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = c.backend AND a.backend_start = c.began)`

// settleFor is how long settle tries to reach the database. untilEnd is how long settle waits for the end of an open
// transaction.
const (
	settleFor = 10 * time.Minute
	untilEnd  = time.Second
)

// settle finds out whether a transaction was committed after the answer to its COMMIT was lost. settle tries until the
// database answers, the store is closed, or ten minutes have passed.
func (s *Store) settle(ctx context.Context, lost *connection, cause error) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	began := time.Now()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		number, err := s.fence(ctx, lost, time.Since(began) > untilEnd)
		switch {
		case err == nil:
			return number >= lost.commits, nil
		case errors.Is(err, pgx.ErrNoRows):
			return false, fmt.Errorf("%w: the database does not know the connection any more (%w)", store.ErrCommitUnknown, cause)
		}
		select {
		case <-time.After(wait):
			continue
		case <-ctx.Done():
		case <-s.closing:
		}
		return false, fmt.Errorf("%w: the connection was lost (%w), and the database could not be asked (%w)", store.ErrCommitUnknown, cause, err)
	}
}

// fence marks a connection as fenced, so the connection can't commit any more. fence returns the number of the
// connection's last commit. If the parameter end is true, fence first ends the connection's server process.
func (s *Store) fence(ctx context.Context, lost *connection, end bool) (number int64, err error) {
	conn, err := s.config.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // an error of Close has no effect
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if end {
		_, err := conn.Exec(ctx, "SELECT pg_terminate_backend(a.pid) FROM connections c JOIN pg_stat_activity a ON a.pid = c.backend AND a.backend_start = c.began WHERE c.id = $1", lost.id)
		if err != nil {
			return 0, err
		}
	}
	if _, err := conn.Exec(ctx, "SET lock_timeout = '500ms'"); err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, "UPDATE connections SET fenced = true WHERE id = $1 RETURNING last", lost.id).Scan(&number)
	return number, err
}
