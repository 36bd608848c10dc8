package bolt

import (
	"bytes"
	"errors"
	"time"

	"countersign/store"
)

var inboxTable = &table[store.Inbox]{
	in: inbox, name: "inbox row",
	id:      func(i *store.Inbox) (string, *uint64) { return i.ID, &i.Version },
	indexes: []bucket{inboxUnhandled, inboxHandled},
	closed:  func(i *store.Inbox) bool { return !i.HandledAt.IsZero() },
	index: func(i *store.Inbox, _ uint64) []row {
		if i.HandledAt.IsZero() {
			return []row{{inboxUnhandled, text(moment(nil, i.ReceivedAt), i.ID)}}
		}
		return []row{{inboxHandled, text(moment(nil, i.HandledAt), i.ID)}}
	},
}

func (t reader) Inbox(id string) (store.Inbox, error) { return inboxTable.read(t.rows, id) }

func (t reader) Unhandled(kind store.InboxKind, received time.Time) (bool, error) {
	bound := moment(nil, received.Add(time.Microsecond))
	for k, id := range t.rows.sound(inboxUnhandled, nil, nil) { // the oldest first
		if bytes.Compare(k, bound) >= 0 {
			break
		}
		row, err := t.Inbox(string(id))
		if errors.Is(err, store.ErrDamaged) {
			continue // the row's content is lost, so no handler will process the row
		}
		if err != nil || row.Kind == kind {
			return err == nil, err
		}
	}
	return false, nil
}

func (t *tx) PutInbox(i store.Inbox) error { return inboxTable.write(t.rows, i) }

func (t *tx) ForgetInbox(handledBefore time.Time, limit int) (int, error) {
	var ids []string
	bound := moment(nil, handledBefore)
	for k, id := range t.rows.sound(inboxHandled, nil, nil) {
		if len(ids) >= limit || bytes.Compare(k, bound) >= 0 {
			break
		}
		ids = append(ids, string(id))
	}
	for i, id := range ids {
		err := inboxTable.erase(t.rows, id)
		if errors.Is(err, store.ErrDamaged) {
			_, _, err = t.SetAside(inbox.String(), id)
		}
		if err != nil {
			return i, err
		}
	}
	return len(ids), nil
}
