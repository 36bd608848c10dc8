package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

// Freeze ends the heartbeats, as if the process were stopped.
func (r *Replica) Freeze() {
	r.stop()
	<-r.done
}

// Thaw starts the heartbeats again.
func (r *Replica) Thaw() {
	r.done = make(chan struct{})
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go r.keep(ctx)
}

// Shown returns a setting of the server as a transaction sees it.
func (s *Store) Shown(ctx context.Context, setting string) (value string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		return r.(reader).run.query(row("SELECT current_setting($1)", []any{setting}, func(found pgx.Row) error { return found.Scan(&value) }))
	})
	return value, err
}
