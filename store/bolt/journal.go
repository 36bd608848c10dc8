package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"countersign/approvers"
	"countersign/store"
)

// auditHeader is the length of the leaf and the hash before a record's bytes.
const auditHeader = 8 + len(approvers.Sum{})

// auditKey reads a key of the buckets audit and audit_payloads. If the key is invalid, ok is false.
func auditKey(k []byte) (chain string, seq uint64, ok bool) {
	chain, rest, ok := cutText(k)
	if !ok || chain == "" || len(rest) != 8 {
		return "", 0, false
	}
	return chain, binary.BigEndian.Uint64(rest), true
}

// auditRow reads a row of the bucket audit. Unreadable parts stay zero, so the result matches no record.
func auditRow(k, v []byte) (x approvers.AuditRow) {
	x.Chain, x.Seq, _ = auditKey(k)
	x.Record = []byte{}
	if len(v) >= auditHeader {
		x.Leaf = binary.BigEndian.Uint64(v)
		x.Sum = approvers.Sum(v[8:auditHeader])
		x.Record = v[auditHeader:]
	}
	return x
}

func (t reader) AuditRow(chain string, seq uint64) (approvers.AuditRow, error) {
	key := number(text(nil, chain), seq)
	stored, there := t.rows.lookUp(audit, key)
	if !there {
		return approvers.AuditRow{}, fmt.Errorf("audit record %d of chain %q: %w", seq, chain, store.ErrNotFound)
	}
	v, damaged := t.rows.value(audit, key, stored)
	if damaged != nil {
		t.rows.note(damaged)
		v = valueOf(audit, stored)
	}
	x := auditRow(key, v)
	x.Damaged = damaged != nil
	return x, nil
}

// EachAuditRow iterates over the bucket of records and the bucket of payloads at the same time, because the two buckets
// have the same keys.
func (t reader) EachAuditRow(fn func(approvers.AuditRow) error) error {
	next := t.rows.nextStored(auditPayloads, nil)
	var pk, pv []byte
	advance := func() {
		k, v := next()
		pk, pv = k, v.value
	}
	advance()
	alone := func() error { // a payload without a record
		x := approvers.AuditRow{Payload: pv}
		x.Chain, x.Seq, _ = auditKey(pk)
		advance()
		return fn(x)
	}
	for k, v := range t.rows.asStored(audit, nil) {
		for pk != nil && bytes.Compare(pk, k) < 0 {
			if err := alone(); err != nil {
				return err
			}
		}
		x := auditRow(k, v.value)
		x.Damaged = !v.sound
		if bytes.Equal(pk, k) {
			x.Payload = pv
			advance()
		}
		if err := fn(x); err != nil {
			return err
		}
	}
	for pk != nil {
		if err := alone(); err != nil {
			return err
		}
	}
	return nil
}

// journal appends the entry of a record to the journal.
func (r *rows) journal(chain string, seq uint64, sum approvers.Sum) (leaf uint64, err error) {
	if r.leaves == 0 {
		switch k, v := r.end(auditJournal); {
		case len(k) == 8:
			if _, damaged := r.value(auditJournal, k, v); damaged != nil && (r.plain || stateOf(auditJournal, k, v) != rowMarked) {
				r.note(damaged)
				return 0, damaged
			}
			r.leaves = leafOf(k) + 1
		case k != nil:
			return 0, damagedRow(auditJournal, k, "its key is not a valid key of the journal")
		}
	}
	leaf = r.leaves
	value := append(number(text(r.scratch.space(len(chain)+64), chain), seq), sum[:]...)
	if err := r.set(auditJournal, number(nil, leaf), nil, r.scratch.done(value)); err != nil {
		return 0, err
	}
	r.leaves++
	return leaf, nil
}

// leafOf reads a key of the journal. An invalid key sorts after all leaves.
func leafOf(k []byte) uint64 {
	if len(k) != 8 {
		return math.MaxUint64
	}
	return binary.BigEndian.Uint64(k)
}

// entryOf reads a row of the journal. Unreadable parts stay zero, so the result matches no record.
func entryOf(k, v []byte) approvers.JournalEntry {
	e := approvers.JournalEntry{Leaf: leafOf(k)}
	chain, rest, ok := cutText(v)
	if !ok || len(rest) != 8+len(e.Sum) {
		return e
	}
	e.Chain, e.Seq, e.Sum = chain, binary.BigEndian.Uint64(rest), approvers.Sum(rest[8:])
	return e
}

func (t reader) Journal(from uint64, limit int) ([]approvers.JournalEntry, error) {
	var out []approvers.JournalEntry
	for k, v := range t.rows.asStored(auditJournal, number(nil, from)) {
		if len(out) >= limit {
			break
		}
		e := approvers.JournalEntry{Leaf: leafOf(k)} // for a damaged entry, only the leaf is known
		if v.sound {
			e = entryOf(k, v.value)
		}
		out = append(out, e)
	}
	return out, nil
}

// headOf reads a row of the bucket audit_heads, which has the size and the signed note.
func headOf(k, v []byte) store.Head {
	h := store.Head{Number: leafOf(k)}
	if len(v) >= 8 {
		h.Size, h.Note = binary.BigEndian.Uint64(v), string(v[8:])
	}
	return h
}

func (t reader) LastHead() (store.Head, error) {
	k, v := t.rows.end(auditHeads)
	if k == nil {
		return store.Head{}, fmt.Errorf("signed head: %w", store.ErrNotFound)
	}
	v, damaged := t.rows.value(auditHeads, k, v)
	if damaged != nil {
		t.rows.note(damaged)
		return store.Head{}, damaged
	}
	return headOf(k, v), nil
}

func (t reader) Heads(after uint64, limit int) ([]store.Head, error) {
	var out []store.Head
	if after == math.MaxUint64 {
		return nil, nil
	}
	for k, v := range t.rows.asStored(auditHeads, number(nil, after+1)) {
		if len(out) >= limit {
			break
		}
		h := headOf(k, v.value)
		h.Damaged = !v.sound
		out = append(out, h)
	}
	return out, nil
}

func (t *tx) PutHead(h store.Head) error {
	key := number(nil, h.Number)
	switch stored, damaged := t.rows.fetch(auditHeads, key); {
	case stored != nil:
		return fmt.Errorf("signed head %d is stored already: %w", h.Number, store.ErrConflict)
	case damaged != nil:
		if _, err := t.rows.discard(auditHeads, key); err != nil {
			return err
		}
	}
	before, err := t.LastHead()
	if err == nil && before.Number > h.Number { // h replaces a damaged head that is not the last one
		if after, failed := t.headAt(h.Number + 1); failed == nil && after.Follows(h) != nil {
			return after.Follows(h)
		}
		before, err = t.headAt(h.Number - 1)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := h.Follows(before); err != nil {
		return err
	}
	if t.rows.get(auditJournal, number(nil, h.Size-1)) == nil {
		return fmt.Errorf("store: head %d covers %d records, but there are fewer", h.Number, h.Size)
	}
	value := append(number(t.rows.scratch.space(8+len(h.Note)), h.Size), h.Note...)
	t.rows.dealt = append(t.rows.dealt, recordID{auditHeads, string(key)})
	return t.rows.set(auditHeads, key, nil, t.rows.scratch.done(value))
}

// headAt returns the head with a number.
func (t reader) headAt(number uint64) (store.Head, error) {
	heads, err := t.Heads(number-1, 1)
	switch {
	case err != nil:
		return store.Head{}, err
	case len(heads) == 0 || heads[0].Number != number:
		return store.Head{}, fmt.Errorf("signed head %d: %w", number, store.ErrNotFound)
	case heads[0].Damaged:
		return store.Head{}, damagedRow(auditHeads, nil, whyChecksum)
	}
	return heads[0], nil
}
