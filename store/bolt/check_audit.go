package bolt

import (
	"countersign/approvers"
)

// audit verifies every chain with its payloads, and verifies that the records and the journal agree. Verifying the
// heads' signatures needs the key, so audit does not verify them.
func (c *checker) audit() {
	var prev approvers.AuditRow
	records := uint64(0)
	_ = (reader{c.rows}).EachAuditRow(func(x approvers.AuditRow) error {
		if _, err := x.Check(prev); err != nil {
			c.fault("%s: %v", audit, err)
		}
		if x.Record != nil {
			prev = x
			if !x.Lost() || x.Leaf != approvers.NoLeaf {
				records++
			}
		}
		return c.ctx.Err()
	})
	next, named := uint64(0), uint64(0)
	for k, v := range c.rows.sound(auditJournal, nil, nil) {
		if !c.going() {
			return
		}
		e := entryOf(k, v)
		if e.Leaf != next {
			c.fault("%s: row %x is at the place of leaf %d", auditJournal, k, next)
		}
		next++
		if c.entry(e) {
			named++
		}
	}
	if named != records {
		c.fault("%s: it names %d of %d records", auditJournal, named, records)
	}
	c.heads(next)
}

// entry verifies one journal entry, and reports whether its record exists.
func (c *checker) entry(e approvers.JournalEntry) bool {
	t := reader{c.rows}
	if x, err := t.AuditRow(e.Chain, e.Seq); err == nil && x.Leaf == e.Leaf {
		if x.Sum != e.Sum && !x.Damaged { // damage is a separate fault
			c.fault("%s: leaf %d has another hash than record %d of chain %s", auditJournal, e.Leaf, e.Seq, e.Chain)
		}
		return true
	}
	// Pruning removes a whole chain. A new chain with the same name may start after the pruning.
	if first, err := t.AuditRow(e.Chain, 1); e.Seq == 0 || err == nil && first.Leaf <= e.Leaf {
		c.fault("%s: leaf %d names record %d of chain %s, which does not exist", auditJournal, e.Leaf, e.Seq, e.Chain)
	}
	return false
}

// heads verifies the order of the signed heads.
func (c *checker) heads(leaves uint64) {
	number, size := uint64(0), uint64(0)
	for k, v := range c.rows.sound(auditHeads, nil, nil) {
		h := headOf(k, v)
		if h.Number != number+1 || h.Size <= size || h.Size > leaves {
			c.fault("%s: head %d covers %d of %d records, and comes after head %d over %d", auditHeads, h.Number, h.Size, leaves, number, size)
		}
		number, size = h.Number, h.Size
	}
}
