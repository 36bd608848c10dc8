package bolt

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"countersign/store"
)

// reader is the read half of a transaction.
type reader struct{ rows *rows }

// tx is a transaction as one closure sees it. Once the closure has returned its rows are nil.
type tx struct{ reader }

var (
	_ store.Reader = reader{}
	_ store.Tx     = &tx{}
)

const noLimit = math.MaxInt

// put writes a record that is not guarded by a version.
func put[T any](r *rows, in bucket, key []byte, record *T) error {
	value, err := encode(r.scratch.space(512), record)
	if err != nil {
		return err
	}
	return r.set(in, key, r.get(in, key), r.scratch.done(value))
}

// list reads the records that a scan finds.
func list[T any](found iter.Seq2[[]byte, []byte]) ([]T, error) { return listTo[T](found, noLimit) }

func listTo[T any](found iter.Seq2[[]byte, []byte], limit int) ([]T, error) {
	var out []T
	for _, v := range found {
		if len(out) >= limit {
			break
		}
		var rec T
		if err := decode(v, &rec); err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// every reads all records of the bucket, by id.
func (t *table[T]) every(r *rows) ([]T, error) {
	var out []T
	for id, v := range r.scan(t.in, nil, nil) {
		_, js, err := cutHeader(v)
		var rec T
		if err == nil {
			err = decode(js, &rec)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", t.name, id, err)
		}
		out = append(out, rec)
	}
	return out, nil
}

// all reads the records whose ids a scan of an index finds, up to a limit.
func (t *table[T]) all(r *rows, found iter.Seq2[[]byte, []byte], limit int) ([]T, error) {
	var out []T
	for _, id := range found {
		if len(out) >= limit {
			break
		}
		rec, err := t.read(r, string(id))
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("store: an index names %s %q, which is not there", t.name, id)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}
