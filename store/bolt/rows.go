package bolt

import (
	"bytes"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"
)

// rows is one bbolt transaction as the record code sees it: buckets of keys and values, and the way back from what a
// closure wrote. Slices that it returns hold until the transaction ends and are never written to.
type rows struct {
	tx      *bbolt.Tx
	open    [bucketEnd]*bbolt.Bucket
	scratch *scratch
	changes []change // by the closure that is running
	written bool     // by closures that have ended well
}

// change is one row as it was before the closure changed it. A nil old row was not there.
type change struct {
	in  bucket
	key []byte
	old []byte
}

func (r *rows) bucket(b bucket) *bbolt.Bucket {
	if r == nil {
		panic("store/bolt: a transaction was used after its closure had returned")
	}
	if r.open[b] == nil {
		r.open[b] = r.tx.Bucket([]byte(bucketNames[b]))
	}
	return r.open[b]
}

// get reads a row; nil: there is none.
func (r *rows) get(in bucket, key []byte) []byte { return r.bucket(in).Get(key) }

// set writes a row. old is what get says of it now: every caller has read it before, so it is not looked up again.
func (r *rows) set(in bucket, key, old, value []byte) error {
	if err := r.bucket(in).Put(key, value); err != nil {
		return fmt.Errorf("store: write to %s: %w", in, err)
	}
	r.changes = append(r.changes, change{in, key, old})
	return nil
}

// remove deletes a row that is there.
func (r *rows) remove(in bucket, key, old []byte) error {
	if err := r.bucket(in).Delete(key); err != nil {
		return fmt.Errorf("store: delete from %s: %w", in, err)
	}
	r.changes = append(r.changes, change{in, key, old})
	return nil
}

// keep makes the closure's changes part of the transaction.
func (r *rows) keep() {
	r.written = r.written || len(r.changes) > 0
	clear(r.changes)
	r.changes = r.changes[:0]
}

// revert takes the closure's changes back, the last one first.
func (r *rows) revert() error {
	for i := len(r.changes) - 1; i >= 0; i-- {
		c := r.changes[i]
		var err error
		if c.old == nil {
			err = r.bucket(c.in).Delete(c.key)
		} else {
			err = r.bucket(c.in).Put(c.key, c.old)
		}
		if err != nil {
			return fmt.Errorf("take back a change in %s: %w", c.in, err)
		}
	}
	clear(r.changes)
	r.changes = r.changes[:0]
	return nil
}

// birth is a new number for a record of the bucket. Numbers of closures that failed are left out.
func (r *rows) birth(in bucket) (uint64, error) {
	n, err := r.bucket(in).NextSequence()
	if err != nil {
		return 0, fmt.Errorf("store: number a row of %s: %w", in, err)
	}
	return n, nil
}

// scan goes through the rows that start with prefix, in rising order from the first key at or above from (nil: all).
// The bucket must not be written to meanwhile.
func (r *rows) scan(in bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if from == nil {
			from = prefix
		}
		c := r.bucket(in).Cursor()
		for k, v := c.Seek(from); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// last is the highest row that starts with prefix, which ends with a text part. A nil key: there is none.
func (r *rows) last(in bucket, prefix []byte) (key, value []byte) {
	c := r.bucket(in).Cursor()
	if k, _ := c.Seek(beyond(prefix)); k == nil {
		key, value = c.Last()
	} else {
		key, value = c.Prev()
	}
	if !bytes.HasPrefix(key, prefix) {
		return nil, nil
	}
	return key, value
}
