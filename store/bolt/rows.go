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
	seekers [bucketEnd]*bbolt.Cursor // for single rows
	scratch scratch
	changes []change           // by the closure that is running
	known   map[recordID]known // what the closure that is running has read or written
	written bool               // by closures that have ended well
	leaves  uint64             // how many entries the journal has; 0: not looked up
}

// recordID names a record, or the head of an audit chain.
type recordID struct {
	in bucket
	id string
}

// known is a record as it stands, so that a closure that reads it again need not look it up and decode it again.
type known struct {
	row    []byte
	record any // a pointer to it, which nobody writes to; nil: not decoded yet
}

// change is one row as it was before the closure changed it. A nil old row was not there.
type change struct {
	in  bucket
	key []byte
	old []byte
}

// filled is how much of a page is filled before it is split. Ids rise with the time, so that rows come mostly at the end.
const filled = 0.9

func (r *rows) bucket(b bucket) *bbolt.Bucket {
	if r == nil {
		panic("store/bolt: a transaction was used after its closure had returned")
	}
	if r.open[b] == nil {
		r.open[b] = r.tx.Bucket([]byte(bucketNames[b]))
		switch {
		case r.open[b] == nil: // an older store, while it is upgraded
		case b == auditJournal:
			r.open[b].FillPercent = 1 // it grows at its end alone
		default:
			r.open[b].FillPercent = filled
		}
	}
	return r.open[b]
}

// seek is a cursor at the first row at or above the key. It is the same for all single rows, which spares the memory of one for each.
func (r *rows) seek(in bucket, key []byte) (c *bbolt.Cursor, k, v []byte) {
	b := r.bucket(in)
	if r.seekers[in] == nil {
		r.seekers[in] = b.Cursor()
	}
	c = r.seekers[in]
	k, v = c.Seek(key)
	return c, k, v
}

// get reads a row; nil: there is none.
func (r *rows) get(in bucket, key []byte) []byte {
	if _, k, v := r.seek(in, key); bytes.Equal(k, key) {
		return v
	}
	return nil
}

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
	if c, k, _ := r.seek(in, key); bytes.Equal(k, key) {
		if err := c.Delete(); err != nil {
			return fmt.Errorf("store: delete from %s: %w", in, err)
		}
	}
	r.changes = append(r.changes, change{in, key, old})
	return nil
}

// drop deletes a row that is there and was not read yet.
func (r *rows) drop(in bucket, key []byte) error { return r.remove(in, key, r.get(in, key)) }

// reset makes rows those of another transaction, with the memory that they have; nil: of none.
func (r *rows) reset(btx *bbolt.Tx) {
	r.forget()
	r.scratch.reset()
	*r = rows{tx: btx, scratch: r.scratch, changes: r.changes, known: r.known}
}

// know notes how a record stands.
func (r *rows) know(what recordID, k known) {
	if r.known == nil {
		r.known = map[recordID]known{}
	}
	r.known[what] = k
}

// keep makes the closure's changes part of the transaction.
func (r *rows) keep() {
	r.written = r.written || len(r.changes) > 0
	r.forget()
}

// forget ends what is kept for one closure.
func (r *rows) forget() {
	clear(r.changes)
	r.changes = r.changes[:0]
	clear(r.known)
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
	r.forget()
	r.leaves = 0
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
		var before []byte
		for k, v := c.Seek(from); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if before != nil && bytes.Compare(k, before) <= 0 {
				panic(disorder{in})
			}
			if before = k; !yield(k, v) {
				return
			}
		}
	}
}

// back goes through the rows that start with prefix, which ends with a text part, in falling order from the last key below from (nil: all).
// The bucket must not be written to meanwhile.
func (r *rows) back(in bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if from == nil {
			from = beyond(prefix)
		}
		c := r.bucket(in).Cursor()
		beyond, _ := c.Seek(from)
		step := c.Prev
		if beyond == nil {
			step = c.Last
		}
		k, v := step()
		var before []byte
		for ; k != nil && bytes.HasPrefix(k, prefix); k, v = c.Prev() {
			if before != nil && bytes.Compare(k, before) >= 0 {
				panic(disorder{in})
			}
			if before = k; !yield(k, v) {
				return
			}
		}
	}
}

// last is the highest row that starts with prefix, which ends with a text part. A nil key: there is none.
func (r *rows) last(in bucket, prefix []byte) (key, value []byte) {
	c, k, _ := r.seek(in, beyond(prefix))
	if k == nil {
		key, value = c.Last()
	} else {
		key, value = c.Prev()
	}
	if !bytes.HasPrefix(key, prefix) {
		return nil, nil
	}
	return key, value
}
