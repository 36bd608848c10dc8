package bolt

import (
	"go.etcd.io/bbolt"
)

// cursor iterates over the rows of a bucket, and skips removed rows.
type cursor struct {
	*rows
	in bucket
	c  *bbolt.Cursor
}

func (r *rows) cursor(in bucket) *cursor { return &cursor{r, in, r.bucket(in).Cursor()} }

// gone reports whether a row was removed.
func (c *cursor) gone(k []byte) bool { return k != nil && c.removed[c.in][string(k)] }

// seek goes to the first row at or above the key.
func (c *cursor) seek(key []byte) (k, v []byte) {
	if k, v = c.c.Seek(key); c.gone(k) {
		return c.next()
	}
	return k, v
}

// below goes to the last row below the key.
func (c *cursor) below(key []byte) (k, v []byte) {
	if k, _ := c.c.Seek(key); k == nil {
		return c.last()
	}
	return c.prev()
}

// last goes to the last row of all.
func (c *cursor) last() (k, v []byte) {
	if k, v = c.c.Last(); c.gone(k) {
		return c.prev()
	}
	return k, v
}

func (c *cursor) next() (k, v []byte) {
	for k, v = c.c.Next(); c.gone(k); k, v = c.c.Next() {
	}
	return k, v
}

func (c *cursor) prev() (k, v []byte) {
	for k, v = c.c.Prev(); c.gone(k); k, v = c.c.Prev() {
	}
	return k, v
}
