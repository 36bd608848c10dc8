package postgres

import (
	"errors"
	"fmt"

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
	c, err := t.Conversation(id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case c.Turn != "":
		return false, fmt.Errorf("conversation %q has a current turn, %q: %w", id, c.Turn, store.ErrConflict)
	}
	if limit <= 0 {
		return false, nil
	}
	refs, err := t.run.returning(belonging, text(id))
	if err != nil {
		return false, err
	}
	refs = append(refs, text(id))
	left := limit
	// The server evaluates each ARRAY once, and finds the rows by an index. With a join instead, the server would
	// depend on its statistics. If the statistics are still those of empty tables, the server would read both tables
	// for each row.
	for _, part := range []struct {
		sql string // deletes at most $2 rows, and returns their ids
		of  any
	}{
		{"DELETE FROM renderings WHERE ctid = ANY(ARRAY(SELECT ctid FROM renderings WHERE message = ANY(ARRAY(SELECT id FROM outbox_messages WHERE ref = ANY($1))) LIMIT $2)) RETURNING ''", refs},
		{"DELETE FROM outbox_messages WHERE id = ANY(ARRAY(SELECT id FROM outbox_messages WHERE ref = ANY($1) LIMIT $2)) RETURNING id", refs},
		{"DELETE FROM files WHERE ctid = ANY(ARRAY(SELECT ctid FROM files WHERE execution = ANY(ARRAY(SELECT id FROM executions WHERE conversation = $1)) LIMIT $2)) RETURNING ''", text(id)},
		{"DELETE FROM elicitations WHERE id = ANY(ARRAY(SELECT id FROM elicitations WHERE execution = ANY(ARRAY(SELECT id FROM executions WHERE conversation = $1)) LIMIT $2)) RETURNING id", text(id)},
		{"DELETE FROM executions WHERE id = ANY(ARRAY(SELECT id FROM executions WHERE conversation = $1 LIMIT $2)) RETURNING id", text(id)},
		{"WITH gone AS (DELETE FROM requests WHERE id = ANY(ARRAY(SELECT id FROM requests WHERE conversation = $1 ORDER BY id LIMIT $2)) RETURNING id), " +
			"people AS (DELETE FROM request_people USING gone WHERE request = gone.id) SELECT id FROM gone", text(id)},
		{"DELETE FROM calls WHERE id = ANY(ARRAY(SELECT id FROM calls WHERE turn = ANY(ARRAY(SELECT id FROM turns WHERE conversation = $1)) LIMIT $2)) RETURNING id", text(id)},
		{"DELETE FROM turns WHERE id = ANY(ARRAY(SELECT id FROM turns WHERE conversation = $1 LIMIT $2)) RETURNING id", text(id)},
		{"DELETE FROM messages WHERE ctid = ANY(ARRAY(SELECT ctid FROM messages WHERE conversation = $1 LIMIT $2)) RETURNING ''", text(id)},
	} {
		gone, err := t.run.returning(part.sql, part.of, left)
		if err != nil {
			return false, err
		}
		if left -= len(gone); len(gone) > 0 && gone[0] != "" {
			if _, err := t.run.exec("DELETE FROM timers WHERE ref = ANY($1)", gone); err != nil {
				return false, err
			}
		}
		if left <= 0 {
			return false, nil
		}
	}
	_, err = t.run.returning("WITH timed AS (DELETE FROM timers WHERE ref = $1) DELETE FROM conversations WHERE id = $1 RETURNING id", text(id))
	return err == nil, err
}
