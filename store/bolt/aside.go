package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"countersign/store"
)

var (
	_ store.Inspected = (*Store)(nil)
	_ store.SetAside  = (*tx)(nil)
)

// SetAside moves a damaged record unchanged to the bucket set_aside, and removes the record's index rows.
func (t *tx) SetAside(name, id string) (of []string, done bool, err error) {
	for in := range recordBuckets {
		if in.String() == name {
			return t.setAside(in, []byte(id))
		}
	}
	return nil, false, fmt.Errorf("store: %q is not a bucket of records", name)
}

func (t *tx) setAside(in bucket, id []byte) (of []string, done bool, err error) {
	value, damaged := t.rows.fetch(in, id)
	if damaged == nil {
		if value == nil || !t.undecodable(in, string(id)) {
			return nil, false, nil
		}
	}
	stored, err := t.rows.discard(in, id)
	if err != nil {
		return nil, false, err
	}
	if stored == nil {
		stored = []byte{}
	}
	key := append(text(nil, in.String()), id...)
	if _, err := t.rows.discard(setAside, key); err != nil { // a row from an earlier call may be there
		return nil, false, err
	}
	if err := t.rows.set(setAside, key, nil, stored); err != nil {
		return nil, false, err
	}
	delete(t.rows.known, recordID{in, string(id)})
	for _, index := range indexesOf[in] {
		names, err := t.leaveIndex(index, id)
		if err != nil {
			return nil, false, err
		}
		if index == belongs[in] {
			of = names
		}
	}
	t.rows.dealt = append(t.rows.dealt, recordID{in, string(id)})
	return of, true, nil
}

// EraseSetAside deletes old rows of the bucket set_aside. SetAside and the repair of a file write rows without a time,
// so EraseSetAside adds a time to the keys of these rows.
func (t *tx) EraseSetAside(now, before time.Time, limit int) (erased int, done bool, err error) {
	type asideRow struct{ key, value []byte }
	timed := text(nil, "")
	var old, untimed []asideRow
	for k, v := range t.rows.asStored(setAside, nil) {
		if len(old)+len(untimed) >= limit {
			break
		}
		at, ok := bytes.CutPrefix(k, timed)
		switch {
		case !ok:
			untimed = append(untimed, asideRow{k, v.value})
		case len(at) < 8 || readMoment(at[:8]).Before(before):
			old = append(old, asideRow{key: k})
		}
	}
	for _, row := range slices.Concat(old, untimed) {
		if _, err := t.rows.discard(setAside, row.key); err != nil {
			return 0, false, err
		}
		t.rows.dealt = append(t.rows.dealt, recordID{setAside, string(row.key)})
	}
	for _, row := range untimed {
		key := append(moment(slices.Clone(timed), now), row.key...)
		key = key[:min(len(key), bbolt.MaxKeySize)] // a longer key is cut off, because nothing reads the rest
		if err := t.rows.set(setAside, key, nil, row.value); err != nil {
			return 0, false, err
		}
	}
	return len(old), len(old)+len(untimed) < limit, nil
}

// undecodable reports whether a record can't be decoded although its checksum is right.
func (t *tx) undecodable(in bucket, id string) bool {
	read := reads[in]
	return read != nil && errors.Is(read(t.rows, id), store.ErrDamaged)
}

// leaveIndex removes a record's rows from an index. The record's header lists these rows, but the header is unreadable.
// So leaveIndex searches the whole index. The result names has the first part of each removed row's key (see belongs).
func (t *tx) leaveIndex(index bucket, id []byte) (names []string, err error) {
	var keys [][]byte
	for k, v := range t.rows.sound(index, nil, nil) {
		if string(v) == string(id) {
			keys = append(keys, k)
			if name, _, ok := cutText(k); ok {
				names = append(names, name)
			}
		}
	}
	for _, k := range keys {
		if _, err := t.rows.discard(index, k); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// belongs maps a bucket of records to an index of these records. The keys of the index begin with the id of the
// record's owner, such as the conversation of a turn.
var belongs = map[bucket]bucket{
	conversations: conversationPlace, turns: turnConversation, calls: callTurn, requests: requestConversation, executions: executionConversation,
	elicitations: elicitationExecution, outboxMessages: outboxRef,
}

// indexesOf maps each bucket of records to its index buckets. reads maps each bucket of records to a function that
// reads one of the records.
var indexesOf, reads = map[bucket][]bucket{}, map[bucket]func(*rows, string) error{}

func registerTable[T any](t *table[T]) {
	indexesOf[t.in] = t.indexes
	for _, index := range t.indexes {
		isIndex[index] = true
	}
	reads[t.in] = func(r *rows, id string) error {
		_, err := t.read(r, id)
		return err
	}
}

func init() {
	registerTable(conversationTable)
	registerTable(turnTable)
	registerTable(callTable)
	registerTable(requestTable)
	registerTable(executionTable)
	registerTable(elicitationTable)
	registerTable(inboxTable)
	registerTable(outboxTable)
	registerTable(settingTable)
	registerTable(grantTable)
	registerTable(absenceTable)
}
