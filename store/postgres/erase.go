package postgres

import (
	"errors"
	"slices"

	"countersign/store"
)

// belonging is a query for ids. It returns the ids of those records of a conversation to which outbox messages and
// timers may refer.
const belonging = `
SELECT id FROM turns WHERE conversation = $1
UNION ALL SELECT c.id FROM calls c JOIN turns t ON t.id = c.turn WHERE t.conversation = $1
UNION ALL SELECT id FROM requests WHERE conversation = $1
UNION ALL SELECT id FROM executions WHERE conversation = $1
UNION ALL SELECT e.id FROM elicitations e JOIN executions x ON x.id = e.execution WHERE x.conversation = $1`

// EraseConversation deletes a record's subordinate records before the record itself. The conversation's own row is
// deleted last, so an interrupted erasure can be repeated.
func (t *tx) EraseConversation(id string, limit int) (done bool, err error) {
	if err := store.ErasableConversation(t, id); err != nil {
		return errors.Is(err, store.ErrNotFound), store.IgnoreNotFound(err)
	}
	if limit <= 0 {
		return false, nil
	}
	refs, err := t.run.returning(belonging, text(id))
	if err != nil {
		return false, err
	}
	refs = append(refs, text(id))
	if done, err = t.eraseParts(refs, limit, []erasure{
		{"DELETE FROM files WHERE ctid = ANY(ARRAY(SELECT ctid FROM files WHERE execution = ANY(ARRAY(SELECT id FROM executions WHERE conversation = $1)) LIMIT $2)) RETURNING ''", []any{text(id)}},
		{"DELETE FROM elicitations WHERE id = ANY(ARRAY(SELECT id FROM elicitations WHERE execution = ANY(ARRAY(SELECT id FROM executions WHERE conversation = $1)) LIMIT $2)) RETURNING id", []any{text(id)}},
		{"DELETE FROM executions WHERE id = ANY(ARRAY(SELECT id FROM executions WHERE conversation = $1 LIMIT $2)) RETURNING id", []any{text(id)}},
		{"WITH gone AS (DELETE FROM requests WHERE id = ANY(ARRAY(SELECT id FROM requests WHERE conversation = $1 ORDER BY id LIMIT $2)) RETURNING id), " +
			"people AS (DELETE FROM request_people USING gone WHERE request = gone.id) SELECT id FROM gone", []any{text(id)}},
		{"DELETE FROM calls WHERE id = ANY(ARRAY(SELECT id FROM calls WHERE turn = ANY(ARRAY(SELECT id FROM turns WHERE conversation = $1)) LIMIT $2)) RETURNING id", []any{text(id)}},
		{"DELETE FROM turns WHERE id = ANY(ARRAY(SELECT id FROM turns WHERE conversation = $1 LIMIT $2)) RETURNING id", []any{text(id)}},
		{"DELETE FROM messages WHERE ctid = ANY(ARRAY(SELECT ctid FROM messages WHERE conversation = $1 LIMIT $2)) RETURNING ''", []any{text(id)}},
	}); !done || err != nil {
		return false, err
	}
	_, err = t.run.returning("WITH timed AS (DELETE FROM timers WHERE ref = $1) DELETE FROM conversations WHERE id = $1 RETURNING id", text(id))
	return err == nil, err
}

// turnRefs is a query for ids. It returns the ids of those records of a turn to which outbox messages and timers may
// refer.
const turnRefs = `
SELECT id FROM calls WHERE turn = $1
UNION ALL SELECT id FROM elicitations WHERE execution = ANY($2)`

// EraseTurn deletes the first message and the turn's own row last, so an interrupted erasure can be repeated.
func (t *tx) EraseTurn(turn store.TurnRecords, limit int) (done bool, err error) {
	stored, err := store.ErasableTurn(t, turn.ID)
	if err != nil {
		return errors.Is(err, store.ErrNotFound), store.IgnoreNotFound(err)
	}
	executions, requests := texts(turn.Executions), texts(turn.Requests)
	refs, err := t.run.returning(turnRefs, text(turn.ID), executions)
	if err != nil || limit <= 0 {
		return false, err
	}
	refs = slices.Concat(refs, executions, requests, texts([]string{turn.ID}))
	first, others := turn.FirstMessage()
	if done, err = t.eraseParts(refs, limit, []erasure{
		{"DELETE FROM files WHERE ctid = ANY(ARRAY(SELECT ctid FROM files WHERE execution = ANY($1) LIMIT $2)) RETURNING ''", []any{executions}},
		{"DELETE FROM elicitations WHERE id = ANY(ARRAY(SELECT id FROM elicitations WHERE execution = ANY($1) LIMIT $2)) RETURNING id", []any{executions}},
		{"DELETE FROM executions WHERE id = ANY(ARRAY(SELECT id FROM executions WHERE id = ANY($1) LIMIT $2)) RETURNING id", []any{executions}},
		{"WITH gone AS (DELETE FROM requests WHERE id = ANY(ARRAY(SELECT id FROM requests WHERE id = ANY($1) ORDER BY id LIMIT $2)) RETURNING id), " +
			"people AS (DELETE FROM request_people USING gone WHERE request = gone.id) SELECT id FROM gone", []any{requests}},
		{"DELETE FROM calls WHERE id = ANY(ARRAY(SELECT id FROM calls WHERE turn = $1 LIMIT $2)) RETURNING id", []any{text(turn.ID)}},
		{"DELETE FROM messages WHERE ctid = ANY(ARRAY(SELECT ctid FROM messages WHERE conversation = $1 AND seq = ANY($2) LIMIT $3)) RETURNING ''",
			[]any{text(stored.Conversation), bigints(others)}},
	}); !done || err != nil {
		return false, err
	}
	_, err = t.run.returning("WITH timed AS (DELETE FROM timers WHERE ref = $1), said AS (DELETE FROM messages WHERE conversation = $2 AND seq = ANY($3)) "+
		"DELETE FROM turns WHERE id = $1 RETURNING id", text(turn.ID), text(stored.Conversation), bigints(first))
	return err == nil, err
}

// erasure deletes rows of one table. The server evaluates each ARRAY once, and finds the rows by an index. With a join
// instead, the server would depend on its statistics. If the statistics are still those of empty tables, the server
// would read both tables for each row.
type erasure struct {
	sql  string // deletes at most as many rows as its last parameter says, and returns their ids
	args []any  // the other parameters
}

// eraseParts deletes up to limit rows, and the timers of these rows: first the outbox messages with the given refs, then
// the rows of the given parts. done reports whether fewer rows than limit were left.
func (t *tx) eraseParts(refs []string, limit int, parts []erasure) (done bool, err error) {
	outbox := []erasure{
		{"DELETE FROM renderings WHERE ctid = ANY(ARRAY(SELECT ctid FROM renderings WHERE message = ANY(ARRAY(SELECT id FROM outbox_messages WHERE ref = ANY($1))) LIMIT $2)) RETURNING ''", []any{refs}},
		{"DELETE FROM outbox_messages WHERE id = ANY(ARRAY(SELECT id FROM outbox_messages WHERE ref = ANY($1) LIMIT $2)) RETURNING id", []any{refs}},
	}
	for _, part := range append(outbox, parts...) {
		gone, err := t.run.returning(part.sql, append(slices.Clip(part.args), limit)...)
		if err != nil {
			return false, err
		}
		if limit -= len(gone); len(gone) > 0 && gone[0] != "" {
			if _, err := t.run.exec("DELETE FROM timers WHERE ref = ANY($1)", gone); err != nil {
				return false, err
			}
		}
		if limit <= 0 {
			return false, nil
		}
	}
	return true, nil
}

// texts converts ids as text does.
func texts(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = text(id)
	}
	return out
}

// bigints converts sequence numbers to the database's type.
func bigints(seqs []uint64) []int64 {
	out := make([]int64, len(seqs))
	for i, seq := range seqs {
		out[i] = int64(seq)
	}
	return out
}
