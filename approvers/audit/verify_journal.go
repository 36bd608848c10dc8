package audit

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"countersign/approvers"
	"countersign/store"
)

// journalPage is the number of journal entries in one read.
const journalPage = 4096

// journalRange is a page of the journal. journalRange has the record of each entry, and the heads whose last entry is
// in this page.
type journalRange struct {
	entries []approvers.JournalEntry
	found   []lookup
	heads   []store.Head
}

// lookup is the result of reading the record that a journal entry names.
type lookup struct {
	there bool
	row   approvers.AuditRow
}

// journal verifies that each journal entry has a record, that each record has a journal entry, and that the heads
// cover the journal. One goroutine reads, and another goroutine verifies.
func (v *verification) journal() error {
	pages := make(chan journalRange, 4)
	j := &journalCheck{verification: v, pruned: map[string]*prunedChain{}, lost: map[recordAt]approvers.Sum{}}
	var g errgroup.Group
	g.Go(func() error {
		for p := range pages {
			j.take(p)
		}
		j.end()
		return nil
	})
	err := v.readJournal(pages)
	close(pages)
	_ = g.Wait() // Wait never returns an error here
	if err != nil || j.matched == v.records {
		return err
	}
	return v.outside()
}

// readJournal reads the journal, its records and the heads, page by page.
func (v *verification) readJournal(pages chan<- journalRange) error {
	var heads []store.Head // heads that were already read, and whose last entry is in a later page
	lastHead := uint64(0)
	for from := uint64(0); ; {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		entries, err := v.r.Journal(from, journalPage)
		if err != nil {
			return err
		}
		p := journalRange{entries: entries, found: make([]lookup, len(entries))}
		for i, e := range entries {
			from = e.Leaf + 1
			x, err := v.r.AuditRow(e.Chain, e.Seq)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			p.found[i] = lookup{err == nil, x}
		}
		if from == 0 || len(entries) == 0 {
			p.heads, from = heads, 0 // the journal ends with this page: there are no more entries, or the last entry has the greatest possible number
			heads = nil
		}
		for {
			if len(heads) == 0 {
				if heads, err = v.r.Heads(lastHead, journalPage); err != nil {
					return err
				}
				if len(heads) == 0 {
					break
				}
				lastHead = heads[len(heads)-1].Number
			}
			n := 0
			for n < len(heads) && (from == 0 || heads[n].Size <= from) {
				n++
			}
			p.heads = append(p.heads, heads[:n]...)
			if heads = heads[n:]; len(heads) > 0 {
				break
			}
		}
		pages <- p
		if from == 0 {
			return nil
		}
	}
}

// journalCheck verifies the journal's entries one after the other, from the first to the last.
type journalCheck struct {
	*verification
	tree    approvers.Tree
	matched int  // number of different records that the journal names
	broken  bool // a head did not match the journal, so later mismatches are not reported
	good    uint64
	pruned  map[string]*prunedChain
	lost    map[recordAt]approvers.Sum // the journal's hashes of damaged records
}

func (j *journalCheck) take(p journalRange) {
	heads := p.heads
	for i, e := range p.entries {
		if e.Leaf != j.leaves {
			j.fault("the journal: after record %d comes %d", int64(j.leaves)-1, e.Leaf)
			j.leaves = e.Leaf
		}
		j.leaves++
		j.tree.Add(approvers.LeafHash(e.Sum))
		j.entry(e, p.found[i])
		for len(heads) > 0 && heads[0].Size <= j.tree.Size {
			j.head(heads[0])
			heads = heads[1:]
		}
	}
	for _, h := range heads {
		j.head(h)
	}
}

// entry compares an entry with its record.
func (j *journalCheck) entry(e approvers.JournalEntry, at lookup) {
	switch {
	case at.there && at.row.Damaged:
		if j.prunedOnce(e) {
			j.prunedEntry(e)
			return
		}
		here := recordAt{e.Chain, e.Seq}
		if _, again := j.lost[here]; !again {
			j.matched++
		}
		j.lost[here] = e.Sum
	case at.there && at.row.Leaf == e.Leaf:
		j.matched++
		if at.row.Sum != e.Sum {
			j.fault("chain %s: record %d is not the one that was recorded (number %d of the journal)", e.Chain, e.Seq, e.Leaf)
		}
	case len(j.prunings[e.Chain]) > 0:
		j.prunedEntry(e)
	case at.there:
		if e.Chain == approvers.InstallationChain && at.row.Leaf > e.Leaf {
			j.overwritten++
		}
		j.fault("chain %s: record %d is number %d of the journal, and says that it is number %d", e.Chain, e.Seq, e.Leaf, at.row.Leaf)
	default:
		j.fault("chain %s: record %d is missing (number %d of the journal), and no record says that the chain was pruned", e.Chain, e.Seq, e.Leaf)
	}
}

// prunedChain is the progress through the journal entries of a pruned chain. The chain may have been pruned several
// times under the same name.
type prunedChain struct {
	nth  int    // index of the current pruning
	seen uint64 // how many journal entries of this pruning were read so far
}

// prunedOnce reports whether the entry belongs to a pruned part of the chain, according to the record of the pruning.
// If so, a damaged record at the same place belongs to a later chain with the same name.
func (j *journalCheck) prunedOnce(e approvers.JournalEntry) bool {
	nth, seen := 0, uint64(0)
	if c := j.pruned[e.Chain]; c != nil {
		nth, seen = c.nth, c.seen
	}
	return nth < len(j.prunings[e.Chain]) && e.Seq == seen+1
}

// prunedEntry handles an entry whose record is missing. prunedEntry compares the entry with the record of the chain's
// pruning.
func (j *journalCheck) prunedEntry(e approvers.JournalEntry) {
	c := j.pruned[e.Chain]
	if c == nil {
		c = &prunedChain{}
		j.pruned[e.Chain] = c
	}
	told := j.prunings[e.Chain]
	if c.nth == len(told) || e.Seq != c.seen+1 {
		j.fault("chain %s: record %d is missing (number %d of the journal), and is not among those that were pruned", e.Chain, e.Seq, e.Leaf)
		return
	}
	if c.seen++; c.seen < told[c.nth].Records {
		return
	}
	if e.Sum.String() != told[c.nth].Head {
		j.fault("chain %s: it was pruned, but its last record in the journal is not the one that the record of the pruning names", e.Chain)
	}
	c.nth++
	c.seen = 0
}

// end reports pruned records that are missing in the journal, links that don't match the journal, and kept heads that
// are newer than the store.
func (j *journalCheck) end() {
	for chain, told := range j.prunings {
		c := j.pruned[chain]
		if c == nil {
			c = &prunedChain{}
		}
		if c.nth != len(told) || c.seen > 0 {
			j.fault("chain %s: the journal lacks the records that were pruned", chain)
		}
	}
	for at, prev := range j.follows {
		if sum, named := j.lost[at]; named && sum.String() != prev {
			j.fault("chain %s: record %d does not link to the hash that the journal has for record %d, which is damaged", at.chain, at.seq+1, at.seq)
		}
	}
	j.keptBeyond()
}

// outside reports the records that the journal does not name.
func (v *verification) outside() error {
	return v.r.EachAuditRow(func(x approvers.AuditRow) error {
		if x.Record == nil || x.Lost() {
			return v.ctx.Err()
		}
		e, err := v.r.Journal(x.Leaf, 1)
		if err == nil && (!x.Damaged || !v.damaged[recordAt{x.Chain, x.Seq}]) && (len(e) == 0 || e[0].Leaf != x.Leaf || e[0].Chain != x.Chain || e[0].Seq != x.Seq) {
			v.fault("chain %s: record %d is not in the journal", x.Chain, x.Seq)
		}
		return errors.Join(err, v.ctx.Err())
	})
}
