package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

// Relocated reports whether the tables were restored from a dump, or the database was copied. Changes that were made to
// the original after the dump or the copy are missing in this database. If the tables were restored, the table origin
// names another place. If only the rows were restored, the row in origin was not written by the transaction that the
// row names. Relocated does not detect a restored base backup, because the row is then as it was.
func (s *Store) Relocated(ctx context.Context) (is bool, err error) {
	err = s.inPlace(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, relocated).Scan(&is)
	})
	return is, err
}

// Settle records the current place of the database as the right place. After Settle, Relocated returns false.
func (s *Store) Settle(ctx context.Context) error {
	return s.inPlace(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settle)
		return err
	})
}

const settle = "INSERT INTO origin (place, written) VALUES (current_place('origin'::regclass), pg_current_xact_id()) ON CONFLICT (one) DO UPDATE SET place = excluded.place"

// relocated compares the row with its place and with its writer. The column xmin has the last 32 bits of the
// transaction's id, also after VACUUM has frozen the row.
const relocated = `
SELECT NOT EXISTS (SELECT FROM origin
WHERE place = current_place('origin'::regclass) AND xmin::text::bigint = written::text::numeric % 4294967296)`

// mustBeComplete returns store.ErrIncomplete if a copy into the database was interrupted.
func (s *Store) mustBeComplete(ctx context.Context) error {
	return s.inPlace(ctx, func(conn *pgx.Conn) error {
		var is bool
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM origin WHERE starts_with(place, $1))", copying).Scan(&is)
		if err == nil && is {
			err = fmt.Errorf("%w: the command that filled %s was interrupted. Run it again, and it continues", store.ErrIncomplete, s.config.name())
		}
		return err
	})
}

func (s *Store) inPlace(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = fn(conn.Conn())
	switch {
	case err == nil:
		return nil
	case conn.Conn().IsClosed():
		err = lostError{err}
	}
	return explain(err)
}
