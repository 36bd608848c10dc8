package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

// maxFaults limits the number of faults that one check reports.
const maxFaults = 20

// checkPage is the number of rows that one query reads.
const checkPage = 500

// checker collects faults.
type checker struct {
	ctx    context.Context
	reader reader
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

func check(ctx context.Context, r reader) error {
	c := &checker{ctx: ctx, reader: r}
	for _, part := range []func() error{
		func() error { return checkTable(c, conversationTable) },
		func() error { return checkTable(c, turnTable) },
		func() error { return checkTable(c, callTable) },
		func() error { return checkTable(c, requestTable) },
		func() error { return checkTable(c, executionTable) },
		func() error { return checkTable(c, elicitationTable) },
		func() error { return checkTable(c, inboxTable) },
		func() error { return checkTable(c, outboxTable) },
		func() error { return checkTable(c, settingTable) },
		func() error { return checkTable(c, policyTable) },
		func() error { return checkTable(c, grantTable) },
		func() error { return checkTable(c, absenceTable) },
		func() error {
			return checkRecords(c, messageTable, func(m *store.Message) (string, int64) { return m.Conversation, number(m.Seq) })
		},
		func() error {
			return checkRecords(c, renderingTable, func(x *store.Rendering) (string, int64) { return x.OutboxMessage, number(x.Post) })
		},
		c.policy, c.files, c.people, c.audit, c.auditColumns,
	} {
		if err := errors.Join(part(), ctx.Err()); err != nil {
			return err
		}
	}
	if len(c.faults) == 0 {
		return nil
	}
	if c.more > 0 {
		c.faults = append(c.faults, fmt.Errorf("and %d more", c.more))
	}
	return fmt.Errorf("store: the check found faults: %w", errors.Join(c.faults...))
}

// checkTable compares the columns of each row with its record.
func checkTable[T any](c *checker, t *table[T]) error {
	columns := "id, version, checksum, record"
	for _, column := range t.columns {
		columns += fmt.Sprintf(", %q", column)
	}
	after := ""
	for {
		n := 0
		err := c.reader.run.query(nil, rows(limited(fmt.Sprintf("SELECT %s FROM %s WHERE id > $1 ORDER BY id", columns, t.in), checkPage), []any{after}, func(found pgx.Rows) error {
			n++
			into := make([]any, 4+len(t.columns))
			var sum, js []byte
			var version int64
			into[0], into[1], into[2], into[3] = &after, &version, &sum, &js
			for i := range t.columns {
				into[4+i] = new(any)
			}
			if err := found.Scan(into...); err != nil {
				return err
			}
			rec, err := decodeRow[T](store.Damage{Bucket: t.in, Key: readText(after), ID: readText(after)}, after, sum, js)
			if damaged := c.reader.run.note(err); damaged != nil {
				c.fault("%v", damaged.Damage)
				return nil //nolint:nilerr // the damage is recorded as a fault
			}
			if id, v := t.id(&rec); text(id) != after || number(*v) != version {
				c.fault("%s %q: its record is %q at version %d, the column says %d", t.name, readText(after), id, *v, version)
			}
			for i, want := range t.values(&rec) {
				if got := *into[4+i].(*any); !sameValue(got, want) {
					c.fault("%s %q: its column %s is %v, but the record says %v", t.name, readText(after), t.columns[i], got, want)
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
		if n < checkPage {
			return nil
		}
	}
}

func sameValue(got, want any) bool {
	a, ok := got.(time.Time)
	b, ok2 := want.(time.Time)
	if ok && ok2 {
		return a.Equal(b)
	}
	return reflect.DeepEqual(got, want)
}

// checkRecords verifies that each record without a version is stored under its own key.
func checkRecords[T any](c *checker, t numberedTable[T], keyOf func(*T) (string, int64)) error {
	after, n := "", int64(-1)
	for {
		count := 0
		err := c.reader.run.query(nil, rows(limited(fmt.Sprintf("%s WHERE (%s, %s) > ($1, $2) ORDER BY 1, 2", t.selects(), t.id, t.n), checkPage),
			[]any{after, n}, func(found pgx.Rows) (err error) {
				count++
				var rec T
				after, n, rec, err = t.scan(found)
				if damaged := c.reader.run.note(err); damaged != nil {
					c.fault("%v", damaged.Damage)
				} else if id, i := keyOf(&rec); err == nil && (text(id) != after || i != n) {
					c.fault("%s %q %d holds the record of %q %d", t.in, readText(after), n, id, i)
				}
				return c.reader.run.unlessDamaged(err)
			}))
		if err != nil {
			return err
		}
		if count < checkPage {
			return nil
		}
	}
}

// files verifies that the bytes of each file match its record. The files may be large, so files reads only one file at
// a time.
func (c *checker) files() error {
	type one struct {
		execution string
		index     int64
	}
	var all []one
	err := checkRecords(c, fileTable, func(f *store.File) (string, int64) {
		all = append(all, one{f.Execution, int64(f.Index)})
		return f.Execution, int64(f.Index)
	})
	for _, x := range all {
		if err != nil {
			return err
		}
		if _, wrong := c.reader.FileData(x.execution, int(x.index)); errors.Is(wrong, store.ErrDamaged) {
			c.fault("files: %w", wrong)
		} else {
			err = wrong
		}
	}
	return err
}

// policy verifies the content of the policy in force.
func (c *checker) policy() error {
	err := policyContent(c.reader.run)
	if damaged := c.reader.run.note(err); damaged != nil {
		c.fault("%v", damaged.Damage)
		return nil //nolint:nilerr // the damage is recorded as a fault
	}
	return err
}

// people verifies that the table request_people agrees with the requests.
func (c *checker) people() error {
	after := ""
	for {
		page, err := requestTable.readable(c.reader.run, limited("WHERE id > $1 ORDER BY id", checkPage), after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		var ids []string
		want := map[string]bool{}
		for _, q := range page {
			ids = append(ids, text(q.ID))
			for _, p := range q.People() {
				want[fmt.Sprintf("%q of %q at %s", readText(text(p)), q.ID, moment(q.CreatedAt))] = true
			}
		}
		err = c.reader.run.query(nil, rows("SELECT person, created_at, request FROM request_people WHERE request = ANY($1)", []any{ids}, func(found pgx.Rows) error {
			var person, request string
			var at time.Time
			err := found.Scan(&person, &at, &request)
			row := fmt.Sprintf("%q of %q at %s", readText(person), readText(request), at.UTC())
			if !want[row] {
				c.fault("request_people: %s is not in the request", row)
			}
			delete(want, row)
			return err
		}))
		if err != nil {
			return err
		}
		for row := range want {
			c.fault("request_people: %s is missing", row)
		}
		after = ids[len(ids)-1]
	}
	return c.reader.run.query(nil, rows("SELECT person, request FROM request_people p WHERE NOT EXISTS (SELECT FROM requests WHERE id = p.request) LIMIT $1", []any{maxFaults}, func(found pgx.Rows) error {
		var person, request string
		err := found.Scan(&person, &request)
		c.fault("request_people: the row of %q names a request %q that does not exist", readText(person), readText(request))
		return err
	}))
}

// audit verifies every chain with its payloads, and verifies that the records, the journal and the heads agree.
// Verifying the heads' signatures needs the key, so audit does not verify them.
func (c *checker) audit() error {
	type place struct {
		chain string
		seq   uint64
	}
	rowsAt := map[place]approvers.AuditRow{}
	var prev approvers.AuditRow
	err := c.reader.EachAuditRow(func(x approvers.AuditRow) error {
		if _, err := x.Check(prev); err != nil {
			c.fault("audit_records: %w", err)
		}
		if x.Record != nil {
			prev = x
			if !x.Lost() || x.Leaf != approvers.NoLeaf {
				rowsAt[place{x.Chain, x.Seq}] = approvers.AuditRow{Leaf: x.Leaf, Sum: x.Sum}
			}
		}
		return c.ctx.Err()
	})
	if err != nil {
		return err
	}
	named := map[place]bool{}
	next := uint64(0)
	for {
		page, err := c.reader.Journal(next, checkPage)
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.Leaf != next {
				c.fault("audit_journal: leaf %d is at the place of leaf %d", e.Leaf, next)
			}
			next++
			at := place{e.Chain, e.Seq}
			x, there := rowsAt[at]
			first, begun := rowsAt[place{e.Chain, 1}]
			switch {
			case there && x.Leaf == e.Leaf:
				named[at] = true
				if x.Sum != e.Sum {
					c.fault("audit_journal: leaf %d has another hash than record %d of chain %s", e.Leaf, e.Seq, e.Chain)
				}
			// Pruning removes a whole chain. A new chain with the same name may start after the pruning.
			case begun && first.Leaf <= e.Leaf:
				c.fault("audit_journal: leaf %d names record %d of chain %s, which does not exist", e.Leaf, e.Seq, e.Chain)
			}
		}
		if len(page) < checkPage {
			break
		}
	}
	if len(named) != len(rowsAt) {
		c.fault("audit_journal: it names %d of %d records", len(named), len(rowsAt))
	}
	heads, err := c.reader.heads("ORDER BY number")
	before := store.Head{}
	for _, h := range heads {
		if h.Number != before.Number+1 || h.Size <= before.Size || h.Size > next {
			c.fault("audit_heads: head %d covers %d of %d records, and comes after head %d over %d", h.Number, h.Size, next, before.Number, before.Size)
		}
		before = h
	}
	return err
}

// auditColumns compares the columns of audit records that are for people with the records. The method "audit" finds
// damaged records.
func (c *checker) auditColumns() error {
	chain, seq := "", int64(0)
	for n := checkPage; n == checkPage; {
		n = 0
		err := c.reader.run.query(nil, rows(limited("SELECT chain, seq, at, kind, actor, record FROM audit_records WHERE (chain, seq) > ($1, $2) ORDER BY chain, seq", checkPage),
			[]any{chain, seq}, func(found pgx.Rows) error {
				n++
				var at time.Time
				var kind, actor string
				var record []byte
				if err := found.Scan(&chain, &seq, &at, &kind, &actor, &record); err != nil {
					return err
				}
				a, err := approvers.ParseAuditRecord(record)
				if err != nil {
					return nil //nolint:nilerr // the method "audit" has recorded the fault
				}
				if !at.Equal(moment(a.At)) || kind != text(a.Kind) || actor != text(a.Actor) {
					c.fault("audit_records: record %d of chain %s: its columns say %q by %q at %s, but the record says %q by %q at %s",
						seq, readText(chain), readText(kind), readText(actor), at.UTC(), a.Kind, a.Actor, moment(a.At))
				}
				return nil
			}))
		if err != nil {
			return err
		}
	}
	return nil
}
