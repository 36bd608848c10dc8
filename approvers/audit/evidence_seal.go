package audit

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/approvers/audit/evidence"
	"countersign/store"
)

// sealOf returns the seal of a chain. If rows that are needed for the seal are damaged, the seal has no head. The
// seal then has a fault for each damaged row.
func sealOf(r store.Reader, chain []approvers.AuditRecord, o EvidenceOptions) (evidence.Seal, error) {
	out, err := readSeal(r, chain, o)
	rows, damaged := damagedRows(err)
	if !damaged {
		return out, err
	}
	out = evidence.Seal{Named: !o.Own}
	for _, x := range rows {
		out.Faults = append(out.Faults, "A row that is needed to check the seal is damaged: "+lost(x)+".")
	}
	return out, nil
}

// readSeal finds the first signed head that covers the records of a chain, and checks the proof for each record. If a
// record has a valid proof, the record existed when that head was signed.
func readSeal(r store.Reader, chain []approvers.AuditRecord, o EvidenceOptions) (evidence.Seal, error) {
	out := evidence.Seal{Named: !o.Own}
	last, err := r.LastHead()
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var sealed []approvers.AuditRecord
	var leaves, outside []uint64
	for _, a := range chain {
		leaf, named, err := leafOf(r, a)
		switch {
		case err != nil:
			return out, err
		case !named:
			outside = append(outside, a.Seq)
		case leaf < last.Size:
			sealed, leaves = append(sealed, a), append(leaves, leaf)
		}
	}
	if len(outside) > 0 {
		out.Faults = append(out.Faults, fmt.Sprintf("%s not in the journal, which lists every record that was ever made.", recordNames(outside)+are(len(outside))))
	}
	stored := last
	if len(leaves) > 0 {
		if stored, err = headOver(r, last, slices.Max(leaves)); err != nil {
			return out, err
		}
	}
	head, err := approvers.ReadHead(stored.Note)
	if err != nil || head.Number != stored.Number || head.Size != stored.Size {
		out.Faults = append(out.Faults, fmt.Sprintf("Head %d is stored with a signed note that does not match it.", stored.Number))
	}
	out.Head, out.Size, out.At, out.Root, out.Note = stored.Number, stored.Size, head.At, head.Root.String(), stored.Note
	if i := slices.IndexFunc(o.Keys, func(key string) bool { return approvers.SignedBy(stored.Note, key) }); i >= 0 {
		out.Key = o.Keys[i]
	} else if len(o.Keys) > 0 {
		out.Faults = append(out.Faults, fmt.Sprintf("Head %d is not signed by a key that is trusted.", stored.Number))
	}
	failed, err := unproven(r, head, sealed, leaves)
	if out.Sealed = len(sealed) - len(failed); len(failed) > 0 {
		out.Faults = append(out.Faults, fmt.Sprintf("There is no proof that signed head %d covers %s: what this page shows, or the journal around it, is not what was signed. "+
			"Look with: countersign audit verify.", stored.Number, recordNames(failed)))
	}
	return out, err
}

// leafOf returns the number of a record in the journal. If the journal has another record at this number, named is
// false.
func leafOf(r store.Reader, a approvers.AuditRecord) (leaf uint64, named bool, err error) {
	row, err := r.AuditRow(a.Chain, a.Seq)
	if err != nil {
		return 0, false, err
	}
	entries, err := r.Journal(row.Leaf, 1)
	named = len(entries) == 1 && entries[0].Leaf == row.Leaf && entries[0].Chain == a.Chain && entries[0].Seq == a.Seq
	return row.Leaf, named, err
}

// headOver returns the first head that covers a leaf.
func headOver(r store.Reader, last store.Head, leaf uint64) (head store.Head, err error) {
	read := func(number uint64) (h store.Head) {
		heads, failed := r.Heads(number-1, 1)
		err = errors.Join(err, failed)
		if len(heads) == 0 {
			return last
		}
		return heads[0]
	}
	before := sort.Search(int(last.Number)-1, func(i int) bool { return read(uint64(i)+1).Size > leaf })
	return read(uint64(before) + 1), err
}

// unproven returns the numbers of the records without a proof that the head covers them.
func unproven(r store.Reader, head approvers.Head, sealed []approvers.AuditRecord, leaves []uint64) (failed []uint64, err error) {
	proofs, noProof := approvers.Prove(head.Size, func(from, n uint64) (out []approvers.TreeHash, failed error) {
		entries, failed := r.Journal(from, int(n))
		err = errors.Join(err, failed)
		for _, e := range entries {
			out = append(out, approvers.LeafHash(e.Sum))
		}
		return out, failed
	}, leaves...)
	for i, a := range sealed {
		if noProof != nil || proofs[i].Check(head, approvers.SumOf(a.Bytes())) != nil {
			failed = append(failed, a.Seq)
		}
	}
	return failed, err
}

// recordNames lists records by number: "record 3", "records 3, 4 and 5".
func recordNames(seqs []uint64) string {
	var names []string
	for _, n := range seqs {
		names = append(names, strconv.FormatUint(n, 10))
	}
	if len(names) == 1 {
		return "record " + names[0]
	}
	return "records " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
