package bolt

import (
	"bytes"
	"fmt"
	"slices"

	"countersign/store"
	"countersign/store/record"
)

var outboxTable = &table[store.OutboxMessage]{
	in: outboxMessages, name: "outbox message",
	id:      func(s *store.OutboxMessage) (string, *uint64) { return s.ID, &s.Version },
	indexes: []bucket{outboxRef, outboxSlackMessage},
	closed:  func(s *store.OutboxMessage) bool { return s.State != store.OutboxWanted },
	index: func(s *store.OutboxMessage, birth uint64) []row {
		rows := []row{{outboxRef, number(text(nil, s.Ref), birth)}}
		if s.Channel != "" && s.TS != "" {
			rows = append(rows, row{outboxSlackMessage, number(text(text(nil, s.Channel), s.TS), birth)})
		}
		return rows
	},
}

func (t reader) OutboxMessage(id string) (store.OutboxMessage, error) {
	return outboxTable.read(t.rows, id)
}

func (t reader) OutboxMessagesOf(ref string) ([]store.OutboxMessage, error) {
	return outboxTable.readable(t.rows, t.rows.sound(outboxRef, text(nil, ref), nil), noLimit)
}

func (t reader) OutboxRefs(after string, limit int) (refs []string, err error) {
	for from := beyond(text(nil, after)); len(refs) < limit; {
		ref, found := "", false
		for k := range t.rows.sound(outboxRef, nil, from) {
			if ref, _, found = cutText(k); found {
				break
			}
		}
		if !found {
			break
		}
		refs = append(refs, ref)
		from = beyond(text(nil, ref))
	}
	return refs, nil
}

func (t reader) OutboxMessageAt(channel, ts string) (store.OutboxMessage, error) {
	_, id := t.rows.last(outboxSlackMessage, text(text(nil, channel), ts))
	if id == nil {
		return store.OutboxMessage{}, fmt.Errorf("outbox message at %s %s: %w", channel, ts, store.ErrNotFound)
	}
	return outboxTable.read(t.rows, string(id))
}

func (t *tx) PutOutboxMessage(s store.OutboxMessage) error { return outboxTable.write(t.rows, s) }

func (t *tx) EraseOutboxMessage(id string) error {
	e := &eraser{rows: t.rows, kinds: t.timerKinds(), left: noLimit}
	return store.IgnoreNotFound(e.outboxMessage(id))
}

func (t reader) Rendering(message string, post uint64) (store.Rendering, error) {
	var r store.Rendering
	v, err := t.rows.fetch(renderings, number(text(nil, message), post))
	if err != nil {
		return r, err
	}
	if v == nil {
		return r, fmt.Errorf("rendering %d of outbox message %q: %w", post, message, store.ErrNotFound)
	}
	return r, record.Decode(v, &r)
}

func (t reader) Renderings(message string) ([]store.Rendering, error) {
	return listSound[store.Rendering](t.rows, renderings, text(nil, message), noLimit)
}

func (t *tx) PutRendering(r store.Rendering) error {
	if err := keyable("rendering's outbox message", r.OutboxMessage); err != nil {
		return err
	}
	key := number(text(nil, r.OutboxMessage), r.Post)
	if t.rows.get(renderings, key) != nil {
		return fmt.Errorf("rendering %d of outbox message %q already exists: %w", r.Post, r.OutboxMessage, store.ErrConflict)
	}
	return put(t.rows, renderings, key, &r)
}

func (t *tx) EraseRenderings(message string, below uint64) (int, error) {
	keys := t.rows.keys(renderings, text(nil, message), noLimit)
	end := number(text(nil, message), below)
	keys = slices.DeleteFunc(keys, func(k []byte) bool { return below > 0 && bytes.Compare(k, end) >= 0 })
	return len(keys), t.rows.discardAll(renderings, keys)
}
