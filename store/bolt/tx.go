package bolt

import (
	"errors"
	"iter"
	"math"

	"countersign/store"
	"countersign/store/record"
)

// reader is the read half of a transaction.
type reader struct{ rows *rows }

// tx is a transaction as seen by one closure. When the closure has returned, the rows of its tx are nil.
type tx struct{ reader }

var (
	_ store.Reader = reader{}
	_ store.Tx     = &tx{}
)

const noLimit = math.MaxInt

// put writes a record without a version.
func put[T any](r *rows, in bucket, key []byte, rec *T) error {
	value, err := record.Append(r.scratch.space(512), rec)
	if err != nil {
		return err
	}
	value = r.scratch.done(value)
	old, damaged := r.fetch(in, key)
	if damaged != nil { // the damage is resolved, because the record is overwritten
		if _, err := r.discard(in, key); err != nil {
			return err
		}
	}
	return r.set(in, key, old, value)
}

// list reads the records of the rows that a scan yields.
func list[T any](found iter.Seq2[[]byte, []byte]) ([]T, error) { return listTo[T](found, noLimit) }

func listTo[T any](found iter.Seq2[[]byte, []byte], limit int) ([]T, error) {
	var out []T
	for _, v := range found {
		if len(out) >= limit {
			break
		}
		var rec T
		if err := record.Decode(v, &rec); err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// listSound is like listTo, but reports unreadable rows and skips them. listSound is for lists of independent rows.
func listSound[T any](r *rows, in bucket, prefix []byte, limit int) ([]T, error) {
	var out []T
	for k, v := range r.sound(in, prefix, nil) {
		if len(out) >= limit {
			break
		}
		var rec T
		if err := record.Decode(v, &rec); err != nil {
			r.note(damagedRow(in, k, "it can't be decoded: "+err.Error()))
			continue
		}
		out = append(out, rec)
	}
	return out, nil
}

// every reads all records of the bucket in the order of their ids. every reports unreadable records, and skips them.
func (t *table[T]) every(r *rows) ([]T, error) {
	var out []T
	for id, v := range r.sound(t.in, nil, nil) {
		_, js, err := cutHeader(v)
		var rec T
		if err == nil {
			err = record.Decode(js, &rec)
		}
		if err != nil {
			r.note(damagedRow(t.in, id, "it can't be decoded: "+err.Error()))
			continue
		}
		out = append(out, rec)
	}
	return out, nil
}

// all reads the records whose ids an index scan yields, up to a limit.
func (t *table[T]) all(r *rows, found iter.Seq2[[]byte, []byte], limit int) ([]T, error) {
	return t.listed(r, found, limit, func(error) bool { return false })
}

// readable is like all, but reports unreadable records and skips them.
func (t *table[T]) readable(r *rows, found iter.Seq2[[]byte, []byte], limit int) ([]T, error) {
	return t.listed(r, found, limit, func(err error) bool { return errors.Is(err, store.ErrDamaged) })
}

// listed is like all, but skips the records for whose errors the function skip returns true.
func (t *table[T]) listed(r *rows, found iter.Seq2[[]byte, []byte], limit int, skip func(error) bool) ([]T, error) {
	var out []T
	for _, id := range found {
		if len(out) >= limit {
			break
		}
		rec, err := t.read(r, string(id))
		if errors.Is(err, store.ErrNotFound) {
			err = r.missing(t.in, id)
		}
		switch {
		case err == nil:
			out = append(out, rec)
		case !skip(err):
			return nil, err
		}
	}
	return out, nil
}

// missing reports and returns the damage of a missing record that an index names.
func (r *rows) missing(in bucket, id []byte) error {
	damaged := damagedRow(in, id, "it is missing, and an index names it")
	r.note(damaged)
	return damaged
}
