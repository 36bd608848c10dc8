package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
	"countersign/store/record"
)

// maxFaults limits the number of faults that one check reports.
const maxFaults = 20

// Check verifies the pages of bbolt, and every audit chain with its payloads. Check also verifies that records and
// index rows agree. Writers wait while the pages are verified, but not during the rest of the check.
func (s *Store) Check(ctx context.Context) error {
	if err := s.checkPages(ctx); err != nil {
		return err
	}
	return s.View(ctx, func(r store.Reader) error {
		c := &checker{ctx: ctx, rows: r.(*reader).rows}
		c.rows.damage = &damages{}
		c.rows.damage.OnDamage(func(x store.Damage) {
			s.damage.Found(x)
			c.fault("%v", x)
		})
		checkTable(c, conversationTable)
		checkTable(c, turnTable)
		checkTable(c, callTable)
		checkTable(c, requestTable)
		checkTable(c, executionTable)
		checkTable(c, elicitationTable)
		c.files()
		checkTable(c, inboxTable)
		checkTable(c, outboxTable)
		checkTable(c, settingTable)
		c.policy()
		checkTable(c, grantTable)
		checkTable(c, absenceTable)
		checkRecords(c, messages, func(m *store.Message) []byte { return number(text(nil, m.Conversation), m.Seq) })
		checkRecords(c, renderings, func(r *store.Rendering) []byte { return number(text(nil, r.OutboxMessage), r.Post) })
		c.timers()
		c.counters()
		c.audit()
		for range c.rows.sound(setAside, nil, nil) {
			if !c.going() {
				break
			}
		}
		return c.outcome()
	})
}

// checkPages first verifies that every page is readable, because bbolt's own check would panic at an unreadable page.
// No caller could recover this panic, because bbolt's check runs in a separate goroutine. Then checkPages runs bbolt's
// check, which reads the list of free pages. Writers change this list, so checkPages holds the write lock.
func (s *Store) checkPages(ctx context.Context) error {
	if err := cmp.Or(s.readable(), s.torn); err != nil {
		return err
	}
	btx, err := s.db.Begin(true)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("store: begin a check: %w", within{err})
	}
	if err := walkPages(ctx, s.identity.file, btx); err != nil {
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

// get reads a row. The result is nil if the row does not exist or is damaged. rows.damage collects the damage, and
// Check reports it.
func (c *checker) get(in bucket, key []byte) []byte {
	v, _ := c.rows.fetch(in, key)
	return v
}

// going reports whether the check may continue. The check stops when its context ends.
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

// policy verifies that the policy in force is readable and not empty.
func (c *checker) policy() {
	s, err := settingTable.read(c.rows, policyKey)
	if err != nil {
		return // there is no such row, or the row is damaged; damage is reported separately
	}
	var p store.Policy
	if err := record.Decode(s.Value, &p); err != nil || p.Version != s.Version {
		c.fault("the policy in force: it is at version %d, its setting at %d (%v)", p.Version, s.Version, err)
	}
	if _, err := settingTable.read(c.rows, contentKey); errors.Is(err, store.ErrNotFound) {
		c.fault("the policy in force has no content")
	}
}

// checkTable verifies that each guarded record of a bucket has its index rows, and that each index row has its record.
func checkTable[T any](c *checker, t *table[T]) {
	for k, v := range c.rows.sound(t.in, nil, nil) {
		if !c.going() {
			return
		}
		h, js, err := cutHeader(v)
		var rec T
		if err == nil {
			err = record.Decode(js, &rec)
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
			if id := c.get(x.in, x.key); !bytes.Equal(id, k) {
				c.fault("%s %q: its row %x in %s says %q", t.name, k, x.key, x.in, id)
			}
		}
	}
	for _, in := range t.indexes {
		for k, id := range c.rows.sound(in, nil, nil) {
			h, _, err := cutHeader(c.get(t.in, id))
			if err != nil || !h.has(row{in, k}) {
				c.fault("%s: its row %x names %s %q, whose header does not name that row", in, k, t.name, id)
			}
		}
	}
}

// checkRecords verifies that each record of a bucket is stored under its own key.
func checkRecords[T any](c *checker, in bucket, key func(*T) []byte) {
	for k, v := range c.rows.sound(in, nil, nil) {
		if !c.going() {
			return
		}
		var rec T
		if err := record.Decode(v, &rec); err != nil {
			c.fault("%s: row %x: %v", in, k, err)
		} else if !bytes.Equal(k, key(&rec)) {
			c.fault("%s: row %x holds the record of %x", in, k, key(&rec))
		}
	}
}

func (c *checker) timers() {
	checkRecords(c, timers, func(t *store.Timer) []byte {
		due := moment(nil, t.Due)
		if got := c.get(timerRef, timerKindRef(t.Kind, t.Ref)); !bytes.Equal(got, due) {
			c.fault("%s: the row of the timer %s %q says %x, but the timer is due at %x", timerRef, t.Kind, t.Ref, got, due)
		}
		return timerKey(t.Kind, due, t.Ref)
	})
	for k, due := range c.rows.sound(timerRef, nil, nil) {
		kind, rest, ok := cutText(k)
		ref, rest, ok2 := cutText(rest)
		if !ok || !ok2 || len(rest) > 0 || c.get(timers, timerKey(store.TimerKind(kind), due, ref)) == nil {
			c.fault("%s: row %x names a timer that does not exist", timerRef, k)
		}
	}
}

func (c *checker) counters() {
	for k, n := range c.rows.sound(counters, nil, nil) {
		key, at, id, ok := cutCounter(k)
		if !ok || len(n) != 8 || binary.BigEndian.Uint64(n) == 0 || c.get(counterTime, counterTimeKey(at, key, id)) == nil {
			c.fault("%s: row %x is damaged, or has no row in %s", counters, k, counterTime)
		}
	}
	for k := range c.rows.sound(counterTime, nil, nil) {
		at, key, id, ok := cutCounterTime(k)
		if !ok || c.get(counters, counterKey(key, at, id)) == nil {
			c.fault("%s: row %x names a counter that does not exist", counterTime, k)
		}
	}
}
