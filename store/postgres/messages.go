package postgres

import (
	"cmp"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/record"
)

// numberedTable describes a table of records without a version. The key of such a record is an id and a number.
type numberedTable[T any] struct{ in, id, n string }

var (
	messageTable   = numberedTable[store.Message]{"messages", "conversation", "seq"}
	renderingTable = numberedTable[store.Rendering]{"renderings", "message", "post"}
	fileTable      = numberedTable[store.File]{"files", "execution", "index"}
)

func (t numberedTable[T]) selects() string {
	return fmt.Sprintf("SELECT %s, %s, checksum, record FROM %s ", t.id, t.n, t.in)
}

// scan reads a row. If the row is damaged, the error is a *store.DamagedError.
func (t numberedTable[T]) scan(found pgx.Row) (id string, n int64, rec T, err error) {
	var sum, js []byte
	if err := found.Scan(&id, &n, &sum, &js); err != nil {
		return id, n, rec, err
	}
	x := store.Damage{Bucket: t.in, Key: fmt.Sprintf("%s %d", readText(id), n)}
	if t.in == messageTable.in {
		x.ID, x.Seq = readText(id), uint64(n)
	}
	rec, err = decodeRow[T](x, numbered(id, n), sum, js)
	return id, n, rec, err
}

// list reads records of one id with a SELECT. The parameter where is the end of this SELECT. list also returns the
// damage of the first unreadable record.
func (t numberedTable[T]) list(r *run, id, where string, args ...any) (out []T, damaged error, err error) {
	err = r.query(onRows(t.in, id), rows(t.selects()+where, args, func(found pgx.Rows) error {
		_, _, rec, err := t.scan(found)
		if torn := r.note(err); torn != nil {
			if damaged == nil {
				damaged = torn
			}
			return nil
		}
		out = append(out, rec)
		return err
	}))
	if err != nil {
		return nil, nil, err
	}
	return out, damaged, nil
}

// all is like list, but fails if a record is damaged.
func (t numberedTable[T]) all(r *run, id, where string, args ...any) ([]T, error) {
	list, damaged, err := t.list(r, id, where, args...)
	if err = cmp.Or(err, damaged); err != nil {
		return nil, err
	}
	return list, nil
}

// inspect reads the next page of records, and reports the damage that it finds. inspect returns the key of the page's
// last record. The key is empty if there are no more records.
func (t numberedTable[T]) inspect(r *run, id string, n int64) (lastID string, last int64, err error) {
	where := fmt.Sprintf("WHERE (%s, %s) > ($1, $2) ORDER BY 1, 2", t.id, t.n)
	err = r.query(on(t.in), rows(limited(t.selects()+where, inspectPage), []any{id, n}, func(found pgx.Rows) error {
		var err error
		lastID, last, _, err = t.scan(found)
		return r.unlessDamaged(err)
	}))
	return lastID, last, err
}

func (t reader) Messages(conversation string, after uint64) ([]store.Message, error) {
	return messageTable.all(t.run, conversation, "WHERE conversation = $1 AND seq > $2 ORDER BY seq", text(conversation), number(after))
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
		"INSERT INTO messages (conversation, seq, record, checksum) VALUES ($1, $2, $3, $4)"+
			" ON CONFLICT (conversation, seq) DO UPDATE SET record = excluded.record, checksum = excluded.checksum",
		text(m.Conversation), number(m.Seq), js, rowSum("messages", numbered(text(m.Conversation), number(m.Seq)), js))
	t.run.aside = append(t.run.aside, store.Damage{Bucket: "messages", Key: fmt.Sprintf("%s %d", m.Conversation, m.Seq)}) // if the old row was damaged, its damage is resolved
	return nil
}

func (t reader) Rendering(message string, post uint64) (store.Rendering, error) {
	list, err := renderingTable.all(t.run, message, "WHERE message = $1 AND post = $2", text(message), number(post))
	if err != nil {
		return store.Rendering{}, err
	}
	if len(list) == 0 {
		return store.Rendering{}, fmt.Errorf("rendering %d of outbox message %q: %w", post, message, store.ErrNotFound)
	}
	return list[0], nil
}

func (t reader) Renderings(message string) ([]store.Rendering, error) {
	list, _, err := renderingTable.list(t.run, message, "WHERE message = $1 ORDER BY post", text(message))
	return list, err
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
	t.run.always(k, "INSERT INTO renderings (message, post, record, checksum) VALUES ($1, $2, $3, $4)",
		text(x.OutboxMessage), number(x.Post), js, rowSum("renderings", numbered(text(x.OutboxMessage), number(x.Post)), js))
	return nil
}

func (t *tx) EraseRenderings(message string, below uint64) (int, error) {
	if below == 0 {
		return t.run.exec("DELETE FROM renderings WHERE message = $1", text(message))
	}
	return t.run.exec("DELETE FROM renderings WHERE message = $1 AND post < $2", text(message), number(below))
}

// exists reports whether a row exists. exists is for rows that are written only once. Like table.write, exists assumes
// that a row does not exist if the transaction has not read the row. If this assumption is wrong, the insert fails, and
// the closure runs again. In this second run, the server is asked whether the row exists.
func (r *run) exists(k key, sql string, args ...any) (bool, error) {
	if known, ok := r.known[k]; ok {
		return known.value != nil, nil
	}
	if !r.careful {
		r.assumed = true
		return false, r.failure
	}
	there := false
	err := r.query(nil, row(sql, args, func(found pgx.Row) error {
		var one int
		err := found.Scan(&one)
		there = err == nil
		return err
	}))
	return there, err
}
