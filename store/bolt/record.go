package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"countersign/store"
	"countersign/store/record"
)

// table describes how one kind of guarded record is stored. A guarded record is a record with a version: see package
// store.
type table[T any] struct {
	in    bucket
	name  string
	id    func(*T) (id string, version *uint64)
	index func(r *T, birth uint64) []row // the record's rows in index buckets
	// indexes lists the buckets of the index rows. If the records have no index rows, indexes is nil.
	indexes []bucket
	// closed reports whether a record is finished, so that it will hardly ever change. Only such records are
	// compressed. If closed is nil, no record is compressed.
	closed func(r *T) bool
}

func (t *table[T]) isClosed(rec *T) bool { return t.closed != nil && t.closed(rec) }

// row is a row of an index bucket. The value of the row is the record's id.
type row struct {
	in  bucket
	key []byte
}

// header precedes the JSON of a guarded record. With the header, the store can overwrite a record without decoding the
// record's old JSON.
type header struct {
	version uint64
	birth   uint64
	index   []row
}

func (h header) append(b []byte) []byte {
	b = binary.AppendUvarint(b, h.version)
	b = binary.AppendUvarint(b, h.birth)
	b = binary.AppendUvarint(b, uint64(len(h.index)))
	for _, x := range h.index {
		b = append(b, byte(x.in))
		b = binary.AppendUvarint(b, uint64(len(x.key)))
		b = append(b, x.key...)
	}
	return b
}

var errHeader = errors.New("store: a record's header is damaged")

// cutHeader reads a header. The result rest is the JSON that follows the header.
func cutHeader(b []byte) (h header, rest []byte, err error) {
	next := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			err = errHeader
			return 0
		}
		b = b[size:]
		return n
	}
	h.version, h.birth = next(), next()
	n := next()
	if n > 0 {
		h.index = make([]row, 0, min(n, uint64(bucketEnd)))
	}
	for ; n > 0 && err == nil; n-- {
		if len(b) == 0 {
			return h, nil, errHeader
		}
		in := bucket(b[0])
		b = b[1:]
		size := next()
		if in == 0 || in >= bucketEnd || size > uint64(len(b)) {
			return h, nil, errHeader
		}
		h.index = append(h.index, row{in, b[:size:size]})
		b = b[size:]
	}
	return h, b, err
}

// has reports whether the header lists the index row.
func (h header) has(x row) bool {
	for _, y := range h.index {
		if x.in == y.in && bytes.Equal(x.key, y.key) {
			return true
		}
	}
	return false
}

func (t *table[T]) read(r *rows, id string) (rec T, err error) {
	k, err := t.find(r, id)
	if err != nil {
		return rec, err
	}
	if k.row == nil {
		return rec, fmt.Errorf("%s %q: %w", t.name, id, store.ErrNotFound)
	}
	if k.record == nil {
		decoded := new(T)
		_, b, err := cutHeader(k.row)
		if err == nil {
			err = record.Decode(b, decoded)
		}
		if err != nil {
			damaged := damagedRow(t.in, []byte(id), "it can't be decoded: "+err.Error())
			r.note(damaged)
			return rec, damaged
		}
		k.record = decoded
		r.know(recordID{t.in, id}, k)
	}
	return *k.record.(*T), nil
}

// find looks up a record that may not exist. If find returns an error, the error is a *store.DamagedError.
func (t *table[T]) find(r *rows, id string) (k known, err error) {
	k, ok := r.known[recordID{t.in, id}]
	if !ok {
		k.row, err = r.fetch(t.in, []byte(id))
	}
	return k, err
}

// write puts a record and updates its index rows. The record's version must be the stored version, or zero if the
// record is new.
func (t *table[T]) write(r *rows, rec T) error {
	id, version := t.id(&rec)
	if err := keyable(t.name+"'s id", id); err != nil {
		return err
	}
	key := []byte(id)
	found, err := t.find(r, id)
	if err != nil {
		return err
	}
	stored := found.row
	var old header
	if stored == nil {
		if t.indexes != nil && *version == 0 {
			old.birth, err = r.birth(t.in)
		}
	} else {
		old, _, err = cutHeader(stored)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", t.name, id, err)
	}
	if *version != old.version {
		return fmt.Errorf("%s %q: version %d is stored, %d was given: %w", t.name, id, old.version, *version, store.ErrConflict)
	}
	*version++
	h := header{version: *version, birth: old.birth}
	if t.indexes != nil {
		h.index = t.index(&rec, h.birth)
	}
	value, err := record.Append(h.append(r.scratch.space(max(512, len(stored)+len(stored)/4))), &rec)
	if err != nil {
		return fmt.Errorf("%s %q: %w", t.name, id, err)
	}
	value = r.scratch.done(value)
	if err := r.setRecord(t.in, key, stored, value, t.isClosed(&rec)); err != nil {
		return err
	}
	r.know(recordID{t.in, id}, known{row: value})
	return reindex(r, key, old, h)
}

// reindex writes the new index rows of a record, and deletes its old index rows.
func reindex(r *rows, id []byte, old, now header) error {
	for _, x := range old.index {
		if !now.has(x) {
			if err := r.remove(x.in, x.key, id); err != nil {
				return err
			}
		}
	}
	for _, x := range now.index {
		if !old.has(x) {
			if err := r.set(x.in, x.key, nil, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// erase deletes a record and its index rows.
func (t *table[T]) erase(r *rows, id string) error {
	key := []byte(id)
	found, err := t.find(r, id)
	if err != nil {
		return err
	}
	stored := found.row
	if stored == nil {
		return fmt.Errorf("%s %q: %w", t.name, id, store.ErrNotFound)
	}
	old, _, err := cutHeader(stored)
	if err != nil {
		return fmt.Errorf("%s %q: %w", t.name, id, err)
	}
	if err := r.remove(t.in, key, stored); err != nil {
		return err
	}
	r.know(recordID{t.in, id}, known{})
	return reindex(r, key, old, header{})
}
