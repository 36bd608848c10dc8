package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

// hold is a connection with the advisory lock that keeps other processes away from a database.
type hold struct {
	conn *pgx.Conn
}

// holdClass tells our advisory locks from those of others. The second half of the lock is the schema.
const holdClass = 0x43534e

// Hold keeps other processes away that hold the database, too, until Close. If one is there already, it returns
// store.ErrLocked with a sentence that names it.
func (s *Store) Hold(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	h := &hold{conn: conn}
	for end := time.Now().Add(lingering); ; pause(20 * time.Millisecond) {
		var held bool
		err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, to_regnamespace($2)::oid::int)", holdClass, s.config.schema).Scan(&held)
		if err != nil {
			h.end()
			return s.config.sentence(err)
		}
		if held {
			s.hold = h
			return nil
		}
		if time.Now().After(end) {
			break
		}
	}
	defer h.end()
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
	return fmt.Errorf("%w: %s is held by %s. Stop it first, or name another database. One process at a time works on a database", store.ErrLocked, s.config.name(), who)
}

// lingering is how long the server may need to notice that a process has ended.
const lingering = 300 * time.Millisecond

func (h *hold) end() {
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	defer cancel()
	_, _ = h.conn.Exec(ctx, "SELECT pg_advisory_unlock_all()") // else the lock ends a little after the connection
	_ = h.conn.Close(ctx)
}
