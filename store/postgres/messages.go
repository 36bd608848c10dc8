package postgres

import (
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/record"
)

// records reads the records of a table without versions.
func records[T any](r *run, sql string, args ...any) (out []T, err error) {
	err = r.query(rows(sql, args, func(found pgx.Rows) error {
		var js []byte
		if err := found.Scan(&js); err != nil {
			return err
		}
		var rec T
		if err := record.Decode(js, &rec); err != nil {
			return err
		}
		out = append(out, rec)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (t reader) Messages(conversation string, after uint64) ([]store.Message, error) {
	return records[store.Message](t.run, "SELECT record FROM messages WHERE conversation = $1 AND seq > $2 ORDER BY seq", text(conversation), number(after))
}

func (t *tx) PutMessage(m store.Message) error {
	if err := keyable("message's conversation", m.Conversation); err != nil {
		return err
	}
	if m.Seq == 0 || m.Seq > math.MaxInt64 {
		return fmt.Errorf("store: a message of conversation %q can't have the seq %d: a seq is at least 1", m.Conversation, m.Seq)
	}
	js, err := record.Append(nil, &m)
	if err != nil {
		return err
	}
	t.run.always(key{"messages", m.Conversation, number(m.Seq)},
		"INSERT INTO messages (conversation, seq, record) VALUES ($1, $2, $3) ON CONFLICT (conversation, seq) DO UPDATE SET record = excluded.record",
		text(m.Conversation), number(m.Seq), js)
	return nil
}

func (t reader) Rendering(message string, post uint64) (store.Rendering, error) {
	list, err := records[store.Rendering](t.run, "SELECT record FROM renderings WHERE message = $1 AND post = $2", text(message), number(post))
	if err != nil {
		return store.Rendering{}, err
	}
	if len(list) == 0 {
		return store.Rendering{}, fmt.Errorf("rendering %d of outbox message %q: %w", post, message, store.ErrNotFound)
	}
	return list[0], nil
}

func (t reader) Renderings(message string) ([]store.Rendering, error) {
	return records[store.Rendering](t.run, "SELECT record FROM renderings WHERE message = $1 ORDER BY post", text(message))
}

func (t *tx) PutRendering(x store.Rendering) error {
	if err := keyable("rendering's outbox message", x.OutboxMessage); err != nil {
		return err
	}
	js, err := record.Append(nil, &x)
	if err != nil {
		return err
	}
	k := key{"renderings", x.OutboxMessage, number(x.Post)}
	there, err := t.run.exists(k, "SELECT 1 FROM renderings WHERE message = $1 AND post = $2", text(x.OutboxMessage), number(x.Post))
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("rendering %d of outbox message %q already exists: %w", x.Post, x.OutboxMessage, store.ErrConflict)
	}
	t.run.known[k] = known{value: true}
	t.run.always(k, "INSERT INTO renderings (message, post, record) VALUES ($1, $2, $3)", text(x.OutboxMessage), number(x.Post), js)
	return nil
}

func (t *tx) EraseRenderings(message string, below uint64) (int, error) {
	if below == 0 {
		return t.run.exec("DELETE FROM renderings WHERE message = $1", text(message))
	}
	return t.run.exec("DELETE FROM renderings WHERE message = $1 AND post < $2", text(message), number(below))
}

// exists reports whether a row that is written only once is there already. Like table.write, it assumes that a row that
// it has not seen is absent. If that was wrong, the closure runs again and looks.
func (r *run) exists(k key, sql string, args ...any) (bool, error) {
	if known, ok := r.known[k]; ok {
		return known.value != nil, nil
	}
	if !r.careful {
		r.assumed = true
		return false, r.failure
	}
	there := false
	err := r.query(row(sql, args, func(found pgx.Row) error {
		var one int
		err := found.Scan(&one)
		there = err == nil
		return err
	}))
	return there, err
}
