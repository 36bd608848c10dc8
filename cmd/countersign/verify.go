package main

import (
	"context"
	"fmt"
	"io"

	"countersign/approvers"
	"countersign/store"
)

// verification is one look at the whole history, over one snapshot of the store.
type verification struct {
	ctx     context.Context
	r       store.Reader
	options verifyOptions
	kept    keptHeads

	faults []string
	more   int // faults beyond those that are printed

	chains, records, payloads, erased int
	prunings                          map[string][]approvers.Pruning // by chain, in the order in which they were recorded
	leaves                            uint64
	heads                             int
	keys                              approvers.HeadChain
}

// mostFaults is how many faults are printed.
const mostFaults = 100

func (v *verification) fault(format string, args ...any) {
	if len(v.faults) == mostFaults {
		v.more++
		return
	}
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// verifyAudit verifies the whole history, and says what was verified.
func verifyAudit(ctx context.Context, out io.Writer, s store.Store, o verifyOptions, kept keptHeads) error {
	v := &verification{ctx: ctx, options: o, kept: kept, prunings: map[string][]approvers.Pruning{}, keys: approvers.HeadChain{Named: o.Keys}}
	err := s.View(ctx, func(r store.Reader) error {
		v.r = r
		for _, f := range kept.faults {
			v.fault("%v", f)
		}
		if err := v.allRows(); err != nil {
			return err
		}
		return v.journal()
	})
	if err != nil {
		return couldNot("the history can't be read: %w", err)
	}
	v.report(out)
	if n := len(v.faults) + v.more; n > 0 {
		return answerNo("the history is not what it was: %s", count(n, "fault"))
	}
	return nil
}

// report prints what was verified.
func (v *verification) report(out io.Writer) {
	for _, f := range v.faults {
		fmt.Fprintln(out, f)
	}
	if v.more > 0 {
		fmt.Fprintf(out, "and %d more\n", v.more)
	}
	if len(v.faults) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "looked at %s in %s, %s", count(v.records, "record"), count(v.chains, "chain"), count(v.payloads, "payload"))
	if v.erased > 0 {
		fmt.Fprintf(out, " (%d more were erased, by records that say so)", v.erased)
	}
	fmt.Fprintln(out)
	pruned := 0
	for _, p := range v.prunings {
		pruned += len(p)
	}
	fmt.Fprintf(out, "looked at %s of the journal", count(int(v.leaves), "record"))
	if pruned > 0 {
		fmt.Fprintf(out, "; %s pruned, by records that say so", count(pruned, "chain")+were(pruned))
	}
	fmt.Fprintln(out)
	v.reportHeads(out)
	if len(v.faults) == 0 {
		fmt.Fprintln(out, "the history is whole")
	}
}

// reportHeads prints what the heads were held against.
func (v *verification) reportHeads(out io.Writer) {
	last := v.keys.Last()
	if v.heads == 0 {
		fmt.Fprintln(out, "there is no signed head: nothing shows that the history was not made anew as a whole")
	} else {
		fmt.Fprintf(out, "looked at %s; the last is number %d over %s, of %s\n",
			count(v.heads, "signed head"), last.Number, count(int(last.Size), "record"), moment(last.At))
		fmt.Fprintf(out, "the key is %s, %s\n", v.keys.Key(), v.whose())
	}
	if left := int(v.leaves - min(last.Size, v.leaves)); left > 0 {
		fmt.Fprintf(out, "%s not sealed yet\n", count(left, "record")+are(left))
	}
	switch n := len(v.kept.heads); {
	case n > 0 && !v.options.Beside:
		fmt.Fprintf(out, "looked for %s kept elsewhere\n", count(n, "head")+" that"+are(n))
	case n > 0:
		fmt.Fprintf(out, "looked for %s in the file beside the store\n", count(n, "head")+" that"+are(n))
		fallthrough
	case v.heads > 0:
		fmt.Fprintln(out, "no heads that are kept elsewhere were given (--heads): a store that was cut off or replaced as a whole, with what lies beside it, looks like this too")
	}
}

// whose says why the key is trusted.
func (v *verification) whose() string {
	switch {
	case len(v.options.Keys) == 0:
		return "taken from the store itself: name the one that you trust with --key"
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
