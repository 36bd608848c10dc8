package approvers

import "fmt"

// AuditRow is an audit record as a backend stores it.
type AuditRow struct {
	Chain   string // the chain that it is stored under; its bytes name the same chain unless somebody moved it
	Seq     uint64
	Leaf    uint64 // its position in the journal
	Sum     Sum    // its hash, as it was written
	Record  []byte // AuditRecord.Bytes; nil: only a payload is stored, which never happens in normal operation
	Payload []byte // AuditPayload.Bytes; nil: it never had one, or it was erased
	Damaged bool   // the backend found it damaged: every field but Chain and Seq may be wrong
}

// JournalEntry is one leaf of the tree over all chains. It is kept when its chain is pruned.
type JournalEntry struct {
	Leaf  uint64 // from 0, without gaps
	Chain string
	Seq   uint64
	Sum   Sum // the record's hash, the only input of the leaf's hash
}

// Checked describes a valid row, for verification of the whole store.
type Checked struct {
	Kind    AuditKind
	Missing bool // it had a payload, which is not stored now
}

// Check verifies a row against its hash, its position, the row before it (the zero value: none) and its payload. The
// error describes the manipulation. The hash of a damaged row is in the journal; the caller checks that the next row
// links to it.
func (x AuditRow) Check(prev AuditRow) (c Checked, err error) {
	if x.Record == nil {
		return c, fmt.Errorf("chain %s: record %d is missing, but its payload is there", x.Chain, x.Seq)
	}
	if x.Damaged {
		return c, fmt.Errorf("chain %s: record %d is damaged: it is not as it was written", x.Chain, x.Seq)
	}
	if prev.Chain != x.Chain {
		prev = AuditRow{}
	}
	if x.Seq != prev.Seq+1 {
		return c, fmt.Errorf("chain %s: record %d is missing or out of order (found %d)", x.Chain, prev.Seq+1, x.Seq)
	}
	p := parts{rest: string(x.Record)}
	domain, chain, seq := p.next(), p.next(), p.number()
	p.next() // at
	c.Kind = AuditKind(p.next())
	p.next() // actor
	p.next() // facts
	payloadHash, before := p.next(), p.next()
	switch {
	case SumOf(x.Record) != x.Sum || p.damaged || p.rest != "" || domain != recordDomain:
		return c, fmt.Errorf("chain %s: record %d was changed", x.Chain, x.Seq)
	case chain != x.Chain || seq != x.Seq:
		return c, fmt.Errorf("chain %s: the place of record %d holds record %d of chain %s", x.Chain, x.Seq, seq, chain)
	case prev.Seq == 0 && before != "" || prev.Seq > 0 && !prev.Damaged && before != prev.Sum.String():
		return c, fmt.Errorf("chain %s: record %d does not follow record %d", x.Chain, x.Seq, prev.Seq)
	case x.Payload != nil && SumOf(x.Payload).String() != payloadHash:
		return c, fmt.Errorf("chain %s: the payload of record %d was changed", x.Chain, x.Seq)
	}
	c.Missing = x.Payload == nil && payloadHash != ""
	return c, nil
}
