package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

func (t reader) CounterSum(key string, after time.Time) (sum int, err error) {
	err = t.run.query(onPrefix("counters", key), row("SELECT coalesce(sum(n), 0)::bigint FROM counters WHERE key = $1 AND at > $2", []any{text(key), moment(after)},
		func(found pgx.Row) error { return found.Scan(&sum) }))
	return sum, err
}

func (t *tx) AddCounter(c store.Counter) error {
	if err := keyable("counter's key", c.Key); err != nil {
		return err
	}
	if err := keyable("counter's id", c.ID); err != nil {
		return err
	}
	if c.N < 1 {
		return fmt.Errorf("store: the counter %q of %q adds %d: the minimum is 1", c.ID, c.Key, c.N)
	}
	t.run.always(key{"counters", c.Key + "\x00" + c.ID, c.At.UnixMicro()},
		"INSERT INTO counters (key, at, id, n) VALUES ($1, $2, $3, $4) ON CONFLICT (key, at, id) DO UPDATE SET n = excluded.n", text(c.Key), moment(c.At), text(c.ID), int64(c.N))
	return nil
}

func (t *tx) PruneCounters(before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	return t.run.exec("DELETE FROM counters WHERE ctid = ANY(ARRAY(SELECT ctid FROM counters WHERE at < $1 ORDER BY at, key, id LIMIT $2))", moment(before), limit)
}
