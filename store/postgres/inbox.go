package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

func (t reader) Unhandled(kind store.InboxKind, received time.Time) (there bool, err error) {
	err = t.run.query(on(inboxTable.in), row("SELECT true FROM inbox WHERE kind = $1 AND received_at <= $2 AND handled_at IS NULL LIMIT 1", []any{text(kind), moment(received)},
		func(found pgx.Row) error { return found.Scan(&there) }))
	return there, err
}

func (t *tx) ForgetInbox(handledBefore time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	return t.run.exec("DELETE FROM inbox WHERE id = ANY(ARRAY(SELECT id FROM inbox WHERE handled_at < $1 ORDER BY handled_at, id LIMIT $2))", moment(handledBefore), limit)
}
