package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Relocated reports whether the tables were restored from a dump, or the database was copied: what happened in the
// original since then is missing here. A restored base backup is not noticed, because it is the same place.
func (s *Store) Relocated(ctx context.Context) (is bool, err error) {
	err = s.inPlace(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM origin WHERE place = current_place('origin'::regclass))").Scan(&is)
	})
	return is, err
}

// Settle says that the database is in use where it is now: Relocated is false from then on.
func (s *Store) Settle(ctx context.Context) error {
	return s.inPlace(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "INSERT INTO origin (place) VALUES (current_place('origin'::regclass)) ON CONFLICT (one) DO UPDATE SET place = excluded.place")
		return err
	})
}

func (s *Store) inPlace(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := fn(conn.Conn()); err != nil {
		return explain(err)
	}
	return nil
}
