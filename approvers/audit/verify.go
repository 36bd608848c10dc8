package audit

import (
	"context"
	"fmt"
	"io"

	"countersign/approvers"
	"countersign/internal/visible"
	"countersign/store"
)

// Report is the result of a verification.
type Report struct {
	options VerifyOptions

	faults []string
	more   int // the number of faults that are not listed

	overwritten int                     // how many records of InstallationChain were replaced by later records
	lost        []approvers.HistoryLoss // the records and payloads that were lost when the store was salvaged, according to the history

	chains, records, payloads, erased int
	prunings                          map[string][]approvers.Pruning // by chain, in the order in which they were recorded
	leaves                            uint64
	heads                             int
	keys                              approvers.HeadChain
}

// Faults returns the number of faults.
func (v *Report) Faults() int { return len(v.faults) + v.more }

// verification is one pass over the whole history, in one snapshot of the store.
type verification struct {
	Report
	ctx context.Context
	r   store.Reader

	damaged map[recordAt]bool   // damaged records at a known place
	follows map[recordAt]string // the hash of a damaged record, according to the record that follows it

	named             []approvers.HistoryLoss // the losses that the history records
	unread, unwritten []recordAt              // unread: lost records; unwritten: records whose payload is missing, although no record says that it was erased
}

// recordAt names a record.
type recordAt struct {
	chain string
	seq   uint64
}

// mostFaults limits the faults that a report lists.
const mostFaults = 100

func (v *Report) fault(format string, args ...any) {
	if len(v.faults) == mostFaults {
		v.more++
		return
	}
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// VerifyOptions has the trusted keys, and the kept heads to compare with the store's heads.
type VerifyOptions struct {
	Keys   []string  // trusted public keys
	Own    bool      // the keys come from the key file, not from the operator
	Kept   KeptHeads // heads that are kept outside of the store
	Beside bool      // the kept heads come from the bot's own file, not from the operator

	// Guard calls the function work, and converts a failed read of memory into an error. The function work reads the
	// memory of rows outside of the store's own methods. A backend needs a Guard if its rows are in a memory-mapped
	// file (bolt.Guard). If Guard is nil, work is called directly.
	Guard func(work func() error) error
}

// Verify verifies the whole history. Verify returns an error if the history can't be read. The faults are in the
// report.
func Verify(ctx context.Context, s store.Store, o VerifyOptions) (*Report, error) {
	if o.Guard == nil {
		o.Guard = func(work func() error) error { return work() }
	}
	v := &verification{
		Report: Report{options: o, prunings: map[string][]approvers.Pruning{}, keys: approvers.HeadChain{Named: o.Keys}},
		ctx:    ctx, damaged: map[recordAt]bool{}, follows: map[recordAt]string{},
	}
	err := s.View(ctx, func(r store.Reader) error {
		v.r = r
		for _, f := range o.Kept.faults {
			v.fault("%v", f)
		}
		if err := v.allRows(); err != nil {
			return err
		}
		if err := v.journal(); err != nil {
			return err
		}
		return v.stored()
	})
	if err != nil {
		return nil, fmt.Errorf("the history can't be read: %w", err)
	}
	damaged, _ := store.DamageOf(s)
	for _, x := range damaged {
		if x.Bucket == "audit" && v.damaged[recordAt{x.ID, x.Seq}] {
			continue
		}
		v.fault("the store is damaged: %s", visible.Line(x.String()))
	}
	return &v.Report, nil
}

// Write prints the faults, and a summary of the verified data.
func (v *Report) Write(out io.Writer) {
	for _, f := range v.faults {
		fmt.Fprintln(out, f)
	}
	if v.more > 0 {
		fmt.Fprintf(out, "and %d more\n", v.more)
	}
	if v.overwritten > 0 {
		fmt.Fprintf(out, "\nLater records of the installation replaced %s. An early version did that when retention removed records: where the policy has\n"+
			"retention.records, see \"Retention with an early version\" in docs/operate.md before you look for somebody who changed the store.\n", count(v.overwritten, "record"))
	}
	if len(v.faults) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "looked at %s in %s, %s", count(v.records, "record"), count(v.chains, "chain"), count(v.payloads, "payload"))
	if v.erased > 0 {
		fmt.Fprintf(out, " (%d more were erased, as the history records)", v.erased)
	}
	fmt.Fprintln(out)
	v.writeLost(out)
	pruned := 0
	for _, p := range v.prunings {
		pruned += len(p)
	}
	fmt.Fprintf(out, "looked at %s of the journal", count(int(v.leaves), "record"))
	if pruned > 0 {
		fmt.Fprintf(out, "; %s pruned, as the history records", count(pruned, "chain")+were(pruned))
	}
	fmt.Fprintln(out)
	v.writeHeads(out)
	switch {
	case len(v.faults) > 0:
	case len(v.lost) > 0:
		fmt.Fprintln(out, "the rest of the history is whole")
	default:
		fmt.Fprintln(out, "the history is whole")
	}
}

// writeLost prints the losses at the salvage of the store.
func (v *Report) writeLost(out io.Writer) {
	for _, g := range v.lost {
		facts := g.Facts()
		for _, what := range []struct {
			name string
			n    int
		}{{"record", len(g.Records)}, {"payload", len(g.Payloads)}} {
			if what.n > 0 {
				fmt.Fprintf(out, "chain %s: %s missing (%s), lost when the store was salvaged, as the history records\n", visible.Line(g.Chain), count(what.n, what.name)+are(what.n), facts[what.name+"s"])
			}
		}
	}
}

// writeHeads prints the verified heads, and the copies with which they were compared.
func (v *Report) writeHeads(out io.Writer) {
	last := v.keys.Last()
	if v.heads == 0 {
		fmt.Fprintln(out, "there is no signed head: without one, a history that was replaced as a whole is not detected")
	} else {
		fmt.Fprintf(out, "looked at %s; the last is number %d over %s, of %s\n",
			count(v.heads, "signed head"), last.Number, count(int(last.Size), "record"), moment(last.At))
		fmt.Fprintf(out, "the key is %s, %s\n", v.keys.Key(), v.whose())
	}
	if left := int(v.leaves - min(last.Size, v.leaves)); left > 0 {
		fmt.Fprintf(out, "%s not sealed yet\n", count(left, "record")+are(left))
	}
	switch n := len(v.options.Kept.heads); {
	case n > 0 && !v.options.Beside:
		fmt.Fprintf(out, "looked for %s kept elsewhere\n", count(n, "head")+" that"+are(n))
	case n > 0:
		fmt.Fprintf(out, "looked for %s in the file beside the store\n", count(n, "head")+" that"+are(n))
		fallthrough
	case v.heads > 0:
		fmt.Fprintln(out, "no heads that are kept elsewhere were given (--heads): without them, a store that was cut off or replaced as a whole, together with the files beside it, is not detected")
	}
}

// whose returns a text that explains why a key is trusted.
func (v *Report) whose() string {
	switch {
	case len(v.options.Keys) == 0:
		return "taken from the store itself: name the key that you trust with --key"
	case v.options.Own:
		return "which is in the key's file"
	}
	return "which you named"
}

func are(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func were(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}
