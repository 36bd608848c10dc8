package audit

import (
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"countersign/approvers"
)

// rowBatch is the number of rows that are verified together. The rows are not copied from the store's memory, so a
// batch costs little.
const rowBatch = 1024

// rows is a batch of rows. A goroutine verifies the batch without the other batches.
type rows struct {
	before approvers.AuditRow // the record before the batch
	rows   []approvers.AuditRow
	done   chan struct{}

	faults []error
	notes  []rowNote
	chains int // chains that begin in the batch
	counts struct{ records, payloads int }
}

// rowNote is a row that must be verified together with the rest of its chain.
type rowNote struct {
	row     approvers.AuditRow
	kind    approvers.AuditKind
	missing bool
	lost    bool // the row stands in place of a record that was lost
	damaged bool // the row is damaged
	follows bool // the previous record is damaged
}

// allRows verifies every chain. One goroutine reads, goroutines on all processors verify, and one goroutine merges the
// results in order.
func (v *verification) allRows() error {
	work, order := make(chan *rows), make(chan *rows, 4*runtime.GOMAXPROCS(0))
	var g errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for b := range work {
				if err := v.options.Guard(func() error { b.verify(); return nil }); err != nil {
					b.faults = append(b.faults, err)
				}
				close(b.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		var open chainNotes
		for b := range order {
			<-b.done
			v.take(b, &open)
		}
		v.endChain(&open)
		return nil
	})
	b := &rows{done: make(chan struct{})}
	send := func() {
		work <- b
		order <- b
	}
	var before approvers.AuditRow
	err := v.r.EachAuditRow(func(x approvers.AuditRow) error {
		if len(b.rows) == rowBatch {
			send()
			b = &rows{before: before, done: make(chan struct{})}
		}
		b.rows = append(b.rows, x)
		if x.Record != nil && !astray(x, before) {
			before = x
		}
		return v.ctx.Err()
	})
	send()
	close(work)
	close(order)
	_ = g.Wait() // the goroutines return no errors
	v.judgeLost()
	return err
}

// judgeLost compares the missing records and payloads with the losses that are recorded in the history.
func (v *verification) judgeLost() {
	records, payloads := map[recordAt]bool{}, map[recordAt]bool{}
	for _, g := range v.named {
		for _, seq := range g.Records {
			records[recordAt{g.Chain, seq}] = true
		}
		for _, seq := range g.Payloads {
			payloads[recordAt{g.Chain, seq}] = true
		}
	}
	of := func(chain string) *approvers.HistoryLoss {
		i := slices.IndexFunc(v.lost, func(g approvers.HistoryLoss) bool { return g.Chain == chain })
		if i < 0 {
			i, v.lost = len(v.lost), append(v.lost, approvers.HistoryLoss{Chain: chain})
		}
		return &v.lost[i]
	}
	for _, at := range v.unread {
		if records[at] {
			g := of(at.chain)
			g.Records = append(g.Records, at.seq)
		} else {
			v.fault("chain %s: record %d is missing, and no record says that it was lost", at.chain, at.seq)
		}
	}
	for _, at := range v.unwritten {
		if payloads[at] {
			g := of(at.chain)
			g.Payloads = append(g.Payloads, at.seq)
		} else {
			v.fault("chain %s: the payload of record %d is missing, and no record says that it was erased", at.chain, at.seq)
		}
	}
}

// verify checks each row, and its link to the previous row.
func (b *rows) verify() {
	before := b.before
	for _, x := range b.rows {
		c, err := x.Check(before)
		if err != nil {
			b.faults = append(b.faults, err)
		}
		if x.Record != nil {
			if !x.Lost() || x.Leaf != approvers.NoLeaf {
				b.counts.records++
			}
			if x.Chain != before.Chain {
				b.chains++
			}
		}
		if x.Payload != nil {
			b.counts.payloads++
		}
		n := rowNote{row: x, kind: c.Kind, missing: c.Missing, lost: c.Lost, damaged: x.Damaged, follows: err == nil && before.Damaged && x.Chain == before.Chain}
		if n.missing || n.lost || n.damaged || n.follows || tellsWhatIsGone[c.Kind] {
			b.notes = append(b.notes, n)
		}
		if x.Record != nil && !astray(x, before) {
			before = x
		}
	}
}

// astray reports whether a damaged row has a damaged key. Such a row is at a wrong place in the order. So the next
// row is compared with the previous row, and the damaged row is skipped.
func astray(x, before approvers.AuditRow) bool {
	if before.Chain != x.Chain {
		return x.Damaged && x.Seq != 1
	}
	return x.Damaged && x.Seq != before.Seq+1
}

// chainNotes collects the notes of one chain.
type chainNotes struct {
	chain   string
	missing []uint64
	erased  []uint64
}

// take adds the results of a batch.
func (v *verification) take(b *rows, open *chainNotes) {
	v.chains += b.chains
	v.records += b.counts.records
	v.payloads += b.counts.payloads
	for _, err := range b.faults {
		v.fault("%v", err)
	}
	for _, n := range b.notes {
		switch at := (recordAt{n.row.Chain, n.row.Seq}); {
		case n.damaged:
			v.damaged[at] = true
		case n.follows:
			at.seq--
			if a, err := approvers.ParseAuditRecord(n.row.Record); err == nil {
				v.follows[at] = a.Prev
			}
		}
		if n.row.Chain != open.chain {
			v.endChain(open)
			*open = chainNotes{chain: n.row.Chain}
		}
		if n.missing {
			open.missing = append(open.missing, n.row.Seq)
		}
		v.gone(n, open)
	}
}

// tellsWhatIsGone lists the kinds of records that say which data was removed from the history, or lost.
var tellsWhatIsGone = map[approvers.AuditKind]bool{approvers.AuditErased: true, approvers.AuditPruned: true, approvers.AuditDamaged: true}

// gone notes the missing data that a record reports: erased payloads, a pruned chain, or lost records.
func (v *verification) gone(n rowNote, open *chainNotes) {
	if n.lost {
		v.unread = append(v.unread, recordAt{n.row.Chain, n.row.Seq})
	}
	if !tellsWhatIsGone[n.kind] {
		return
	}
	a, err := approvers.ParseAuditRecord(n.row.Record)
	if err == nil && n.kind == approvers.AuditErased {
		var e approvers.Erasure
		e, err = approvers.ErasureOf(a)
		open.erased = append(open.erased, e.Seqs...)
	}
	if err == nil && n.kind == approvers.AuditPruned && a.Chain == approvers.InstallationChain {
		var p approvers.Pruning
		p, err = approvers.PruningOf(a)
		v.prunings[p.Chain] = append(v.prunings[p.Chain], p)
	}
	if err == nil && n.kind == approvers.AuditDamaged && a.Chain == approvers.InstallationChain {
		var g approvers.HistoryLoss
		g, err = approvers.HistoryLossOf(a)
		v.named = append(v.named, g)
	}
	if err != nil {
		v.fault("%v", err)
	}
}

// endChain compares the missing payloads of a chain with its records of erasures.
func (v *verification) endChain(open *chainNotes) {
	for _, seq := range open.missing {
		if slices.Contains(open.erased, seq) {
			v.erased++
		} else {
			v.unwritten = append(v.unwritten, recordAt{open.chain, seq})
		}
	}
}
