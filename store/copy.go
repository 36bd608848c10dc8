package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"countersign/approvers"
)

// Part names one kind of rows in a copy of a store.
type Part string

// These are the parts of a store, in the order in which they are copied. Claims, and the connections of processes, are
// not copied.
const (
	PartConversations  Part = "conversations"
	PartMessages       Part = "messages"
	PartTurns          Part = "turns"
	PartCalls          Part = "calls"
	PartRequests       Part = "requests"
	PartExecutions     Part = "executions"
	PartElicitations   Part = "elicitations"
	PartFiles          Part = "files"
	PartTimers         Part = "timers"
	PartInbox          Part = "inbox"
	PartOutboxMessages Part = "outbox messages"
	PartRenderings     Part = "renderings"
	PartSettings       Part = "settings"
	PartPolicy         Part = "policies"
	PartCounters       Part = "counters"
	PartGrants         Part = "grants"
	PartAbsences       Part = "absences"
	PartHeads          Part = "signed heads"
	PartAudit          Part = "audit records"
	PartJournal        Part = "journal"
)

// Row is one row of a store in a form that every backend can read and write.
type Row struct {
	Part    Part
	Record  []byte                 // the record as JSON (package record), with its version; nil for the parts of the last four fields
	Data    []byte                 // the bytes of a file, or the content of a policy
	Counter Counter                // for PartCounters
	Head    Head                   // for PartHeads
	Audit   approvers.AuditRow     // for PartAudit, with its payload
	Entry   approvers.JournalEntry // for PartJournal
}

// Contents is a store that can be copied.
type Contents interface {
	// EachRow calls fn with every row of one snapshot, in the order of the parts. If Reader lists the records of a part in
	// the order of creation, the rows of this part have this order, too. The rows of every other part are in the order of
	// their keys. So the order is the same in every backend. A row's bytes are valid until fn returns. A damaged row is an
	// error.
	EachRow(ctx context.Context, fn func(Row) error) error
}

// Filling is a new store while it is being filled. Other processes can open the store only when the store is complete.
type Filling interface {
	Contents
	// Put writes the next row. The caller puts the rows in the order of EachRow. An interrupted copy may already have
	// written some rows. Put compares the new rows with these rows, and does not write them a second time. If a row
	// differs, Put returns ErrChanged.
	Put(ctx context.Context, row Row) error
	// Written returns how many rows an interrupted copy has already written.
	Written() int
}

// Mark is the progress of a copy: the number of written rows, and a hash over these rows. The zero value means that no
// rows are written. A backend writes the mark of a copy together with the rows, in the same transaction.
type Mark struct {
	Rows int
	Sum  string
}

// String returns the text that a backend stores for a mark.
func (m Mark) String() string { return fmt.Sprintf("%d %s", m.Rows, m.Sum) }

// ParseMark reads a mark that String has written.
func ParseMark(s string) (m Mark, err error) {
	if _, err := fmt.Sscanf(s, "%d %s", &m.Rows, &m.Sum); err != nil {
		return Mark{}, fmt.Errorf("store: %q does not say how far the copy has come: %w", s, err)
	}
	return m, nil
}

// Position counts the rows of a copy. For a copy that continues an interrupted copy, Position also finds the first row
// that must be written.
type Position struct {
	from Mark
	rows int
	sum  hash.Hash
}

// StartAt returns the position of a copy that continues at a mark. The caller passes all rows to Next, beginning with
// the first row.
func StartAt(from Mark) *Position { return &Position{from: from, sum: sha256.New()} }

// Next counts a row, and reports whether the row must be written. If the rows up to the mark differ from the rows that
// the interrupted copy wrote, Next returns ErrChanged.
func (p *Position) Next(row Row) (write bool, err error) {
	p.rows++
	p.sum.Write(row.bytes())
	if p.rows == p.from.Rows && p.Mark() != p.from {
		return false, ErrChanged
	}
	return p.rows > p.from.Rows, nil
}

// Mark returns the progress after the rows that were passed to Next.
func (p *Position) Mark() Mark { return Mark{p.rows, hex.EncodeToString(p.sum.Sum(nil))} }

// End returns ErrChanged if the caller passed fewer rows than the interrupted copy wrote.
func (p *Position) End() error {
	if p.rows < p.from.Rows {
		return ErrChanged
	}
	return nil
}

// Written returns the number of rows up to the mark.
func (p *Position) Written() int { return p.from.Rows }

// Copied is the number of rows of a part.
type Copied struct {
	Part Part
	Rows int
}

// CopyRows copies every row. After the last row, CopyRows reads all rows of the copy, and compares them with the
// original rows. For each row, CopyRows calls progress with the number of rows of the row's part so far. CopyRows
// calls done when all rows are copied, before the comparison.
func CopyRows(ctx context.Context, from Contents, to Filling, progress func(Copied), done func()) error {
	var want, got tally
	err := from.EachRow(ctx, func(row Row) error {
		if row.Audit.Damaged || row.Part == PartAudit && row.Audit.Record == nil {
			return fmt.Errorf("%w: record %d of audit chain %q can't be copied", ErrDamaged, row.Audit.Seq, row.Audit.Chain)
		}
		progress(want.add(row))
		return to.Put(ctx, row)
	})
	if err != nil {
		return err
	}
	done()
	err = to.EachRow(ctx, func(row Row) error {
		got.add(row)
		return nil
	})
	if err != nil {
		return fmt.Errorf("the copy can't be read again: %w", err)
	}
	return want.differs(got)
}

// Equal returns nil if two stores have the same rows.
func Equal(ctx context.Context, a, b Contents) error {
	var want, got tally
	err := a.EachRow(ctx, func(row Row) error { want.add(row); return nil })
	if err == nil {
		err = b.EachRow(ctx, func(row Row) error { got.add(row); return nil })
	}
	return errors.Join(err, want.differs(got))
}

// tally counts the rows of each part and computes a hash over them.
type tally struct {
	parts []Copied
	sums  []hash.Hash
}

// add adds a row to the tally, and returns the number of rows of the row's part.
func (t *tally) add(row Row) Copied {
	last := len(t.parts) - 1
	if last < 0 || t.parts[last].Part != row.Part {
		t.parts, t.sums, last = append(t.parts, Copied{Part: row.Part}), append(t.sums, sha256.New()), last+1
	}
	t.parts[last].Rows++
	t.sums[last].Write(row.bytes())
	return t.parts[last]
}

// differs returns an error that names the first part in which two stores differ.
func (t *tally) differs(from tally) error {
	for i, part := range t.parts {
		switch {
		case i >= len(from.parts) || from.parts[i].Part != part.Part:
			return fmt.Errorf("store: the copy lacks all %s", part.Part)
		case from.parts[i].Rows != part.Rows:
			return fmt.Errorf("store: the copy has %d %s instead of %d", from.parts[i].Rows, part.Part, part.Rows)
		case !bytes.Equal(from.sums[i].Sum(nil), t.sums[i].Sum(nil)):
			return fmt.Errorf("store: the %s of the copy differ from the original", part.Part)
		}
	}
	if len(from.parts) > len(t.parts) {
		return fmt.Errorf("store: the copy has more %s", from.parts[len(t.parts)].Part)
	}
	return nil
}

// bytes encodes the content of a row. Undamaged rows with different contents have different bytes.
func (row Row) bytes() (b []byte) {
	text := func(s string) {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	numbers := func(list ...uint64) {
		for _, n := range list {
			b = binary.BigEndian.AppendUint64(b, n)
		}
	}
	text(string(row.Part))
	text(string(row.Record))
	text(string(row.Data))
	switch row.Part {
	case PartCounters:
		text(row.Counter.Key)
		text(row.Counter.ID)
		numbers(uint64(row.Counter.At.UnixMicro()), uint64(row.Counter.N))
	case PartHeads:
		numbers(row.Head.Number, row.Head.Size)
		text(row.Head.Note)
	case PartAudit:
		x := row.Audit
		text(x.Chain)
		numbers(x.Seq, x.Leaf)
		b = append(b, x.Sum[:]...)
		text(string(x.Record))
		text(string(x.Payload))
		if x.Payload != nil {
			b = append(b, 1)
		}
	case PartJournal:
		text(row.Entry.Chain)
		numbers(row.Entry.Leaf, row.Entry.Seq)
		b = append(b, row.Entry.Sum[:]...)
	}
	return b
}

// Clone returns a copy of a row. The copy stays valid after EachRow's fn returns.
func (row Row) Clone() Row {
	row.Record, row.Data = bytes.Clone(row.Record), bytes.Clone(row.Data)
	row.Audit.Record, row.Audit.Payload = bytes.Clone(row.Audit.Record), bytes.Clone(row.Audit.Payload)
	return row
}

// Size returns the approximate size of a row in bytes.
func (row Row) Size() int {
	return 100 + len(row.Record) + len(row.Data) + len(row.Head.Note) + len(row.Audit.Record) + len(row.Audit.Payload)
}

// Shared is a backend on which several processes can work.
type Shared interface {
	// Working lists the names of the processes that work on the store now, except this one. A process that was killed
	// is listed until its lease ends.
	Working(ctx context.Context) ([]string, error)
}

// Relocatable is a backend that detects whether its data was moved by other means than CopyRows. An example is a
// database that was copied, or restored from a dump.
type Relocatable interface {
	// Relocated reports whether the data was moved since the last Settle, or since the creation of the store if Settle
	// was never called.
	Relocated(ctx context.Context) (bool, error)
	// Settle records the current place of the data as the right place. After Settle, Relocated returns false.
	Settle(ctx context.Context) error
}
