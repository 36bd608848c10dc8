package approvers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Erasure lists the records whose payloads were erased. It is stored as the facts of an AuditErased record, in the same
// chain.
type Erasure struct {
	Seqs []uint64 // of the records without their payloads
}

// Pruning names a chain that was removed. It is stored as the facts of an AuditPruned record, in InstallationChain.
type Pruning struct {
	Chain   string
	Records uint64 // how many it had
	Head    string // the hash of the last one
}

// ErrFacts means that a record's facts don't fit its kind.
var ErrFacts = errors.New("the facts of the record can't be read")

// The names of those facts.
const (
	factRecords = "records"
	factChain   = "chain"
	factHead    = "head"
)

// Facts returns the sequence numbers as ranges: "1-3,7".
func (e Erasure) Facts() map[string]string {
	seqs := slices.Sorted(slices.Values(e.Seqs))
	seqs = slices.Compact(seqs)
	var b strings.Builder
	for i := 0; i < len(seqs); {
		last := i
		for last+1 < len(seqs) && seqs[last+1] == seqs[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(seqs[i], 10))
		if last > i {
			b.WriteString("-" + strconv.FormatUint(seqs[last], 10))
		}
		i = last + 1
	}
	return map[string]string{factRecords: b.String()}
}

// ErasureOf parses an AuditErased record. Every sequence number in the result is lower than the record's own.
func ErasureOf(a AuditRecord) (e Erasure, err error) {
	text := a.Facts[factRecords]
	if text == "" {
		return e, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 64)
		last, err2 := strconv.ParseUint(to, 10, 64)
		if err != nil || err2 != nil || first == 0 || first > last || last >= a.Seq {
			return Erasure{}, fmt.Errorf("chain %s: record %d: %w", a.Chain, a.Seq, ErrFacts)
		}
		for seq := first; seq <= last; seq++ {
			e.Seqs = append(e.Seqs, seq)
		}
	}
	return e, nil
}

// Facts returns the chain's name, its length and its last hash.
func (p Pruning) Facts() map[string]string {
	return map[string]string{factChain: p.Chain, factRecords: strconv.FormatUint(p.Records, 10), factHead: p.Head}
}

// PruningOf parses an AuditPruned record.
func PruningOf(a AuditRecord) (Pruning, error) {
	p := Pruning{Chain: a.Facts[factChain], Head: a.Facts[factHead]}
	n, err := strconv.ParseUint(a.Facts[factRecords], 10, 64)
	if err != nil || n == 0 || p.Chain == "" || p.Head == "" {
		return Pruning{}, fmt.Errorf("chain %s: record %d: %w", a.Chain, a.Seq, ErrFacts)
	}
	p.Records = n
	return p, nil
}
