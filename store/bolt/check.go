package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// maxFaults bounds how many faults one check reports.
const maxFaults = 20

// Check verifies bbolt's pages, that every record and its index rows agree, and every audit chain with its payloads. Writers
// wait while the pages are verified, and go on during the rest.
func (s *Store) Check(ctx context.Context) error {
	if err := s.checkPages(ctx); err != nil {
		return err
	}
	return s.View(ctx, func(r store.Reader) error {
		c := &checker{ctx: ctx, rows: r.(*reader).rows}
		checkTable(c, conversationTable)
		checkTable(c, turnTable)
		checkTable(c, callTable)
		checkTable(c, requestTable)
		checkTable(c, executionTable)
		checkTable(c, elicitationTable)
		c.files()
		checkTable(c, inboxTable)
		checkTable(c, surfaceTable)
		checkTable(c, settingTable)
		checkTable(c, grantTable)
		checkTable(c, absenceTable)
		checkRecords(c, messages, func(m *store.Message) []byte { return number(text(nil, m.Conversation), m.Seq) })
		checkRecords(c, renderings, func(r *store.Rendering) []byte { return number(text(nil, r.Surface), r.Post) })
		c.timers()
		c.tallies()
		c.audit()
		return c.outcome()
	})
}

// checkPages makes sure that every page can be read, and has bbolt verify the rest, which panics in a goroutine of its own about one
// that can't. That needs the list of free pages, which writers change, so it holds the write lock.
func (s *Store) checkPages(ctx context.Context) error {
	if err := s.writer.broken(); err != nil {
		return err
	}
	btx, err := s.db.Begin(true)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("store: begin a check: %w", err)
	}
	if err := walkPages(ctx, s.db.Path(), btx); err != nil {
		return errors.Join(fmt.Errorf("%w (%w). Put a backup in its place", store.ErrDamaged, err), btx.Rollback())
	}
	c := &checker{}
	for err := range btx.Check() {
		c.fault("%s: %v", s.db.Path(), err)
	}
	if err := btx.Rollback(); err != nil {
		return fmt.Errorf("store: end a check: %w", err)
	}
	return c.outcome()
}

// checker collects faults.
type checker struct {
	ctx    context.Context
	rows   *rows
	faults []error
	more   int
}

func (c *checker) fault(format string, args ...any) {
	if len(c.faults) == maxFaults {
		c.more++
		return
	}
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// going reports whether the check goes on, which it does until its context ends.
func (c *checker) going() bool { return c.ctx.Err() == nil }

func (c *checker) outcome() error {
	if c.ctx != nil && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	if len(c.faults) == 0 {
		return nil
	}
	if c.more > 0 {
		c.faults = append(c.faults, fmt.Errorf("and %d more", c.more))
	}
	return fmt.Errorf("store: the check found faults: %w", errors.Join(c.faults...))
}

// checkTable verifies a bucket of guarded records and the rows that they have in index buckets, both ways.
func checkTable[T any](c *checker, t *table[T]) {
	for k, v := range c.rows.scan(t.in, nil, nil) {
		if !c.going() {
			return
		}
		h, js, err := cutHeader(v)
		var rec T
		if err == nil {
			err = decode(js, &rec)
		}
		if err != nil {
			c.fault("%s %q: %v", t.name, k, err)
			continue
		}
		if id, version := t.id(&rec); id != string(k) || *version != h.version {
			c.fault("%s %q: it holds %q at version %d, its header says %d", t.name, k, id, *version, h.version)
		}
		var want []row
		if t.indexes != nil {
			want = t.index(&rec, h.birth)
		}
		if len(want) != len(h.index) {
			c.fault("%s %q: it should be in %d indexes, its header names %d", t.name, k, len(want), len(h.index))
		}
		for _, x := range want {
			if !h.has(x) {
				c.fault("%s %q: its header does not name its row %x in %s", t.name, k, x.key, x.in)
			}
			if id := c.rows.get(x.in, x.key); !bytes.Equal(id, k) {
				c.fault("%s %q: its row %x in %s says %q", t.name, k, x.key, x.in, id)
			}
		}
	}
	for _, in := range t.indexes {
		for k, id := range c.rows.scan(in, nil, nil) {
			h, _, err := cutHeader(c.rows.get(t.in, id))
			if err != nil || !h.has(row{in, k}) {
				c.fault("%s: its row %x names %s %q, which does not have it", in, k, t.name, id)
			}
		}
	}
}

// checkRecords verifies that each record of a bucket lies under its own key.
func checkRecords[T any](c *checker, in bucket, key func(*T) []byte) {
	for k, v := range c.rows.scan(in, nil, nil) {
		if !c.going() {
			return
		}
		var rec T
		if err := decode(v, &rec); err != nil {
			c.fault("%s: row %x: %v", in, k, err)
		} else if !bytes.Equal(k, key(&rec)) {
			c.fault("%s: row %x holds the record of %x", in, k, key(&rec))
		}
	}
}

func (c *checker) timers() {
	checkRecords(c, timers, func(t *store.Timer) []byte {
		due := moment(nil, t.Due)
		if got := c.rows.get(timerRef, timerKindRef(t.Kind, t.Ref)); !bytes.Equal(got, due) {
			c.fault("%s: the row of %s %q says %x, it is due %x", timerRef, t.Kind, t.Ref, got, due)
		}
		return timerKey(t.Kind, due, t.Ref)
	})
	for k, due := range c.rows.scan(timerRef, nil, nil) {
		kind, rest, ok := cutText(k)
		ref, rest, ok2 := cutText(rest)
		if !ok || !ok2 || len(rest) > 0 || c.rows.get(timers, timerKey(store.TimerKind(kind), due, ref)) == nil {
			c.fault("%s: row %x names a timer that is not there", timerRef, k)
		}
	}
}

func (c *checker) tallies() {
	for k, n := range c.rows.scan(tallies, nil, nil) {
		key, at, id, ok := cutTally(k)
		if !ok || len(n) != 8 || binary.BigEndian.Uint64(n) == 0 || c.rows.get(tallyTime, tallyTimeKey(at, key, id)) == nil {
			c.fault("%s: row %x is damaged, or has no row in %s", tallies, k, tallyTime)
		}
	}
	for k := range c.rows.scan(tallyTime, nil, nil) {
		at, key, id, ok := cutTallyTime(k)
		if !ok || c.rows.get(tallies, tallyKey(key, at, id)) == nil {
			c.fault("%s: row %x names a tally that is not there", tallyTime, k)
		}
	}
}
