package bolt

import (
	"bytes"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// rows is one bbolt transaction. rows reads and writes the rows of buckets, and has the undo log of the running
// closure. Returned slices are valid until the transaction ends. Callers must not write to returned slices.
//
// A removed row stays in bbolt until just before the commit, and reads skip the row. bbolt's cursors fail on pages that
// the same transaction has emptied. On such a page, Prev and Seek stop or skip rows, and Last may never return. Because
// removed rows stay, no page is emptied before the commit, and cursors work.
type rows struct {
	tx      *bbolt.Tx
	open    [bucketEnd]*bbolt.Bucket
	removed [bucketEnd]map[string]bool // by key: removed rows that stay in bbolt until the commit
	seekers [bucketEnd]*cursor         // by bucket: the cursor that reads single rows
	scratch scratch
	changes []change           // the changes of the running closure
	known   map[recordID]known // records that the running closure has read or written
	written bool               // closures that have ended have written something
	plain   bool               // the store has an older layout, in which rows have no checksums
	dealt   []recordID         // damaged records that the running closure set aside
	damage  *damages           // collects damaged rows that lists skip; nil: damaged rows are not collected
	leaves  uint64             // how many entries the journal has; 0: not read yet
}

// recordID names a record, or the head of an audit chain.
type recordID struct {
	in bucket
	id string
}

// known is the current state of a record. A closure that reads the same record repeatedly gets this state, so the
// record is looked up and decoded only once.
type known struct {
	row    []byte
	record any // a pointer to the record; the record must not be changed; nil: the record is not decoded yet
}

// change is the state of one row before a change by the closure. The field old is nil if the row did not exist.
type change struct {
	in       bucket
	key      []byte
	old      []byte
	asStored bool // the field old includes the checksum, which may be wrong
}

// filled is the fraction of a page that bbolt fills when it splits the page. The fraction is high, because ids rise
// with time, and most rows are added at the end.
const filled = 0.9

func (r *rows) bucket(b bucket) *bbolt.Bucket {
	if r == nil {
		panic("store/bolt: a transaction was used after its closure had returned")
	}
	if r.open[b] == nil {
		r.open[b] = r.tx.Bucket([]byte(bucketNames[b]))
		switch {
		case r.open[b] == nil: // a bucket that an older layout does not have
		case b == auditJournal:
			r.open[b].FillPercent = 1 // rows are added only at the end of this bucket
		default:
			r.open[b].FillPercent = filled
		}
	}
	return r.open[b]
}

// seeker returns the shared cursor for single rows of a bucket. Sharing the cursor avoids an allocation for each read.
func (r *rows) seeker(in bucket) *cursor {
	if r.seekers[in] == nil {
		r.seekers[in] = r.cursor(in)
	}
	return r.seekers[in]
}

// get reads a row. The result is nil if the row does not exist. If the row is damaged, get panics. Guard and the writer
// turn the panic into an error.
func (r *rows) get(in bucket, key []byte) []byte {
	v, err := r.fetch(in, key)
	if err != nil {
		panic(err)
	}
	return v
}

// fetch is like get, but returns damage as a *store.DamagedError.
func (r *rows) fetch(in bucket, key []byte) ([]byte, error) {
	stored, there := r.lookUp(in, key)
	if !there {
		return nil, nil
	}
	v, damaged := r.value(in, key, stored)
	if damaged != nil {
		r.note(damaged)
		return nil, damaged
	}
	return v, nil
}

// lookUp returns a row's value as stored in the file. If damage makes the row look like a bucket, lookUp returns nil
// and true.
func (r *rows) lookUp(in bucket, key []byte) (stored []byte, there bool) {
	c := r.seeker(in)
	if c.gone(key) {
		return nil, false
	}
	k, stored := c.c.Seek(key)
	if k == nil || !bytes.Equal(k, key) {
		return nil, false
	}
	return stored, true
}

// value verifies a row's checksum. value returns the decompressed value without the checksum.
func (r *rows) value(in bucket, k, stored []byte) ([]byte, *store.DamagedError) {
	if r.plain {
		return stored, nil
	}
	v, ok := cutChecksum(in, k, stored)
	if !ok {
		return nil, damagedRow(in, k, whyChecksum)
	}
	v, err := unpack(in, v)
	if err != nil {
		return nil, damagedRow(in, k, "it can't be unpacked: "+err.Error())
	}
	return v, nil
}

// note records a damaged row.
func (r *rows) note(damaged *store.DamagedError) {
	if r.damage != nil {
		r.damage.Found(damaged.Damage)
	}
}

// stored returns the stored form of a value, with the checksum. stored compresses the value only if closed is true or
// the bucket has allRows in packings, and only if the compressed value is shorter. The parameter closed is the result
// of table.closed for the record.
func (r *rows) stored(in bucket, key, value []byte, closed bool) []byte {
	if r.plain {
		return value
	}
	if closed || packings[in].rows == allRows {
		if smaller, ok := pack(r.scratch.space(len(value)), in, value); ok {
			value = r.scratch.done(smaller)
		}
	}
	return r.scratch.extend(value, checksum(in, key, value))
}

// set writes a row. The parameter old is the current value of the row, which every caller has already read.
func (r *rows) set(in bucket, key, old, value []byte) error {
	return r.setRecord(in, key, old, value, false)
}

// setRecord is like set, and compresses the row if its record is closed.
func (r *rows) setRecord(in bucket, key, old, value []byte, closed bool) error {
	err := error(nil)
	if closed && old != nil { // the record gets smaller, so the row is deleted first: bbolt merges only pages from which a row was deleted
		err = r.bucket(in).Delete(key)
	}
	if err == nil {
		err = r.put(in, key, r.stored(in, key, value, closed))
	}
	if err != nil {
		return fmt.Errorf("store: write to %s: %w", in, err)
	}
	r.changes = append(r.changes, change{in: in, key: key, old: old})
	return nil
}

// put writes a row to bbolt.
func (r *rows) put(in bucket, key, stored []byte) error {
	if err := r.bucket(in).Put(key, stored); err != nil {
		return err
	}
	delete(r.removed[in], string(key))
	return nil
}

// remove deletes an existing row.
func (r *rows) remove(in bucket, key, old []byte) error {
	r.hide(in, key)
	r.changes = append(r.changes, change{in: in, key: key, old: old})
	return nil
}

// discard deletes a row, even a damaged row, and returns the stored value. If the row does not exist, discard returns
// nil.
func (r *rows) discard(in bucket, key []byte) (stored []byte, err error) {
	stored, there := r.lookUp(in, key)
	switch {
	case !there:
		return nil, nil
	case stored == nil:
		return nil, damagedRow(in, key, "it is marked as a bucket")
	}
	stored = bytes.Clone(stored)
	r.hide(in, key)
	r.changes = append(r.changes, change{in: in, key: key, old: stored, asStored: true})
	return stored, nil
}

// discardAll is like discard, for many rows. Damage of the rows is over then.
func (r *rows) discardAll(in bucket, keys [][]byte) error {
	for _, key := range keys {
		if _, err := r.discard(in, key); err != nil {
			return err
		}
		r.dealt = append(r.dealt, recordID{in, string(key)})
	}
	return nil
}

// hide makes reads skip a row. sweep deletes the row before the commit.
func (r *rows) hide(in bucket, key []byte) {
	if r.removed[in] == nil {
		r.removed[in] = map[string]bool{}
	}
	r.removed[in][string(key)] = true
}

// sweep deletes removed rows from bbolt. After sweep, no code may read from the transaction.
func (r *rows) sweep() error {
	for in, keys := range r.removed {
		for key := range keys {
			if err := r.bucket(bucket(in)).Delete([]byte(key)); err != nil {
				return fmt.Errorf("store: delete from %s: %w", bucket(in), err)
			}
		}
		clear(keys)
	}
	return nil
}

// reset assigns another transaction to rows, and reuses the memory. After a reset with nil, rows has no transaction.
func (r *rows) reset(btx *bbolt.Tx) {
	r.forget()
	r.scratch.reset()
	for in, keys := range r.removed {
		if len(keys) > maxRemoved {
			r.removed[in] = nil
		}
		clear(keys)
	}
	*r = rows{tx: btx, scratch: r.scratch, changes: r.changes, known: r.known, removed: r.removed, damage: r.damage}
}

// The next transaction reuses a map of removed rows only if the map had at most maxRemoved rows.
const maxRemoved = 1000

// know stores the current state of a record in r.known.
func (r *rows) know(what recordID, k known) {
	if r.known == nil {
		r.known = map[recordID]known{}
	}
	r.known[what] = k
}

// keep makes the changes of the closure a part of the transaction.
func (r *rows) keep() {
	r.written = r.written || len(r.changes) > 0
	for _, x := range r.dealt {
		r.damage.over(x.in, []byte(x.id))
	}
	r.forget()
}

// forget clears the state of one closure.
func (r *rows) forget() {
	clear(r.changes)
	r.changes = r.changes[:0]
	clear(r.known)
	r.dealt = nil
}

// revert undoes the changes of the closure, the last change first.
func (r *rows) revert() error {
	for i := len(r.changes) - 1; i >= 0; i-- {
		c := r.changes[i]
		var err error
		switch {
		case c.old == nil:
			r.hide(c.in, c.key)
		case c.asStored:
			err = r.put(c.in, c.key, c.old)
		default:
			err = r.put(c.in, c.key, r.stored(c.in, c.key, c.old, false))
		}
		if err != nil {
			return fmt.Errorf("undo a change in %s: %w", c.in, err)
		}
	}
	r.forget()
	r.leaves = 0
	return nil
}

// birth returns the next birth number of the bucket (see the package documentation). Failed closures leave gaps in the
// numbers.
func (r *rows) birth(in bucket) (uint64, error) {
	n, err := r.bucket(in).NextSequence()
	if err != nil {
		return 0, fmt.Errorf("store: number a row of %s: %w", in, err)
	}
	return n, nil
}

// scan iterates over the rows whose keys start with prefix, in ascending order. The parameter from is the lowest key.
// If from is nil, scan iterates over all rows with the prefix. Like get, scan panics if a row is damaged. The caller
// must not write to the bucket during the iteration.
func (r *rows) scan(in bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return r.each(in, prefix, from, false, func(_ []byte, damaged *store.DamagedError) {
		r.note(damaged)
		panic(damaged)
	})
}

// sound is like scan, but reports damaged rows and skips them. sound is for lists of independent rows.
func (r *rows) sound(in bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return r.each(in, prefix, from, false, func(_ []byte, damaged *store.DamagedError) { r.note(damaged) })
}

// keys returns keys that start with prefix, also those of damaged rows, up to a limit. It is for the erasure of rows,
// which does not need their content.
func (r *rows) keys(in bucket, prefix []byte, limit int) (keys [][]byte) {
	for k := range r.each(in, prefix, nil, false, func(k []byte, damaged *store.DamagedError) {
		r.note(damaged)
		keys = append(keys, k)
	}) {
		if keys = append(keys, k); len(keys) >= limit {
			break
		}
	}
	return keys[:max(0, min(len(keys), limit))]
}

// back iterates over the rows whose keys start with prefix, in descending order. All keys of the iteration are below
// the parameter from. If from is nil, back iterates over all rows with the prefix. The prefix must end with a text
// part. back reports damaged rows and skips them. The caller must not write to the bucket during the iteration.
func (r *rows) back(in bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return r.each(in, prefix, from, true, func(_ []byte, damaged *store.DamagedError) { r.note(damaged) })
}

// mostStrays limits how many damaged rows one scan skips. If a scan reads more damaged rows, it has probably found
// pages that form a cycle.
const mostStrays = 1 << 16

// each iterates over rows in one direction. The last parameter is called for every damaged row whose key has the
// prefix. If this function does not panic, the iteration skips the row. The key of a damaged row may be wrong. So the
// iteration continues after a damaged row, even if the row's key does not have the prefix.
func (r *rows) each(in bucket, prefix, from []byte, falling bool, damaged func(k []byte, d *store.DamagedError)) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := r.cursor(in)
		k, v, step := start(c, prefix, from, falling)
		var before []byte
		for strays := 0; k != nil; k, v = step() {
			value, wrong := r.value(in, k, v)
			if wrong != nil {
				if strays++; strays > mostStrays {
					panic(errPageOrder{in})
				}
				if bytes.HasPrefix(k, prefix) {
					damaged(k, wrong)
				}
				continue
			}
			if !bytes.HasPrefix(k, prefix) {
				return
			}
			if order := bytes.Compare(k, before); before != nil && (order == 0 || order < 0 != falling) {
				panic(errPageOrder{in})
			}
			if before = k; !yield(k, value) {
				return
			}
		}
	}
}

// asStored iterates over the rows of a bucket, including damaged rows. The parameter from is the lowest key. If from
// is nil, asStored iterates over all rows. asStored reports each damaged row, and yields it with storedValue.sound
// false. asStored is for verification.
func (r *rows) asStored(in bucket, from []byte) iter.Seq2[[]byte, storedValue] {
	return func(yield func(k []byte, v storedValue) bool) {
		next := r.nextStored(in, from)
		for k, v := next(); k != nil; k, v = next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// nextStored returns a function that returns the next row of asStored. After the last row, the key is nil. iter.Pull2
// would read the rows in another goroutine, in which Guard has no effect.
func (r *rows) nextStored(in bucket, from []byte) func() (k []byte, v storedValue) {
	c := r.cursor(in)
	step := func() ([]byte, []byte) { return c.seek(from) }
	var before []byte
	return func() ([]byte, storedValue) {
		k, v := step()
		step = c.next
		if k == nil {
			return nil, storedValue{}
		}
		if before != nil && bytes.Compare(k, before) <= 0 {
			panic(errPageOrder{in})
		}
		before = k
		value, wrong := r.value(in, k, v)
		if wrong != nil {
			r.note(wrong)
			value = valueOf(in, v)
		}
		return k, storedValue{value, wrong == nil}
	}
}

// storedValue is a decompressed value without its checksum.
type storedValue struct {
	value []byte
	sound bool
}

// start returns the first row of a scan, and a function that returns the next row.
func start(c *cursor, prefix, from []byte, falling bool) (k, v []byte, step func() ([]byte, []byte)) {
	if !falling {
		if from == nil {
			from = prefix
		}
		k, v = c.seek(from)
		return k, v, c.next
	}
	if from == nil {
		from = beyond(prefix)
	}
	k, v = c.below(from)
	return k, v, c.prev
}

// last returns the row with the highest key that starts with prefix. If no key starts with prefix, the key is nil. The
// prefix must end with a text part. Like get, last panics if the row is damaged.
func (r *rows) last(in bucket, prefix []byte) (key, value []byte) {
	key, value, damaged := r.highest(in, prefix)
	if damaged != nil {
		panic(damaged)
	}
	return key, value
}

// highest is like last, but returns damage as an error.
func (r *rows) highest(in bucket, prefix []byte) (key, value []byte, damaged *store.DamagedError) {
	key, value = r.seeker(in).below(beyond(prefix))
	if !bytes.HasPrefix(key, prefix) {
		return nil, nil, nil
	}
	if value, damaged = r.value(in, key, value); damaged != nil {
		r.note(damaged)
	}
	return key, value, damaged
}

// end returns the row with the highest key in a bucket, as stored in the file. If the bucket has no rows, the key is
// nil.
func (r *rows) end(in bucket) (key, stored []byte) { return r.seeker(in).last() }
