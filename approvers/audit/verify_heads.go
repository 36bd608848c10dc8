package audit

import (
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// head verifies a signed head: its signature, its link to the previous head, and its root of the journal.
func (j *journalCheck) head(h store.Head) {
	j.heads++
	read, faults := j.keys.Next(h.Number, h.Size, h.Note)
	for _, f := range faults {
		j.fault("%v", f)
	}
	root, err := j.tree.Root()
	switch {
	case j.broken:
	case h.Size > j.leaves:
		j.broken = true
		j.fault("head %d: it covers %d records, but the journal ends after %d: the journal's end was cut off", h.Number, h.Size, j.leaves)
	case err != nil || j.tree.Size != h.Size || root != read.Root:
		j.broken = true
		j.fault("head %d: the journal is not the one that was signed; the change is among its records %d to %d", h.Number, j.good, max(h.Size, 1)-1)
	default:
		j.good = h.Size
	}
	j.compare(h)
}

// compare compares a head with its kept copies.
func (j *journalCheck) compare(h store.Head) {
	for _, k := range j.keptAt(h.Number) {
		if k.Of(h.Note) {
			continue
		}
		if j.trusts(k) {
			j.fault("head %d: %s has another head with this number, of %s, with the signature of a known key: the history was replaced", h.Number, k.place, moment(k.At))
		} else {
			j.fault("head %d: %s has another head with this number, of %s, with the signature of an unknown key: the history was replaced, or the copy belongs to another installation", h.Number, k.place, moment(k.At))
		}
	}
}

// keptAt returns the kept copies of a head.
func (j *journalCheck) keptAt(number uint64) []keptHead {
	first, found := slices.BinarySearchFunc(j.options.Kept.heads, number, func(k keptHead, n uint64) int {
		switch {
		case k.Number < n:
			return -1
		case k.Number > n:
			return 1
		}
		return 0
	})
	last := first
	for found && last < len(j.options.Kept.heads) && j.options.Kept.heads[last].Number == number {
		last++
	}
	return j.options.Kept.heads[first:last]
}

// trusts reports whether a kept head has the signature of a trusted key. A key is trusted if the operator named the
// key, or if the key signed a head in the store.
func (j *journalCheck) trusts(k keptHead) bool {
	return slices.ContainsFunc(append(j.keys.Keys(), j.options.Keys...), func(key string) bool { return approvers.SignedBy(k.Note, key) })
}

// keptBeyond reports the kept heads that are newer than the store's last head.
func (j *journalCheck) keptBeyond() {
	last := uint64(0)
	if j.heads > 0 {
		last = j.keys.Last().Number
	}
	var first, final keptHead
	n := 0
	for _, k := range j.options.Kept.heads {
		if k.Number <= last {
			continue
		}
		if n++; n == 1 {
			first = k
		}
		final = k
	}
	if n > 0 {
		j.fault("%s kept elsewhere and missing in the store, which ends with head %d: number %d of %s (%s) to number %d over %s. "+
			"The store's end was cut off, the store was put back to what it was before, or it is another store",
			count(n, "head")+are(n), last, first.Number, moment(first.At), first.place, final.Number, count(int(final.Size), "record"))
	}
}
