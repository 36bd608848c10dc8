package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// seen counts the calls of a tool that the observe mode kept from running, by what would have become of them.
type seen struct {
	tool, would, stages string
	n                   int
	last                time.Time
}

// observedTask sums up what the observe mode saw in a time until now.
var observedTask = task[time.Duration]{"explain observed", true, func(ctx context.Context, w workplace, since time.Duration) error {
	all, err := observedCalls(ctx, w.store, ago(since))
	if err != nil {
		return couldNot("the history can't be read: %w", err)
	}
	if len(all) == 0 {
		fmt.Fprintln(w.out, "The observe mode has seen no call. It is switched on by mode: observe in the policy, for a tool or for the whole bot.")
		return nil
	}
	printObserved(w.out, all)
	return nil
}}

func observedCalls(ctx context.Context, s store.Store, from time.Time) ([]seen, error) {
	var all []seen
	err := eachChain(ctx, s, func(records []approvers.AuditRecord) error {
		at := slices.IndexFunc(records, func(r approvers.AuditRecord) bool {
			return r.Kind == approvers.AuditProposed && r.Facts["verdict"] == string(approvers.Observed) && !r.At.Before(from)
		})
		if at < 0 {
			return nil
		}
		r := records[at]
		i := slices.IndexFunc(all, func(o seen) bool {
			return o.tool == r.Facts["tool"] && o.would == r.Facts["would"] && o.stages == r.Facts["stages"]
		})
		if i < 0 {
			all = append(all, seen{tool: r.Facts["tool"], would: r.Facts["would"], stages: r.Facts["stages"]})
			i = len(all) - 1
		}
		all[i].n++
		if r.At.After(all[i].last) {
			all[i].last = r.At
		}
		return nil
	})
	slices.SortFunc(all, func(a, b seen) int {
		if a.n != b.n {
			return b.n - a.n
		}
		return strings.Compare(a.tool+a.would+a.stages, b.tool+b.would+b.stages)
	})
	return all, err
}

func printObserved(out io.Writer, all []seen) {
	total, asked := 0, 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CALLS\tTOOL\tWITHOUT THE OBSERVE MODE IT\tLAST (UTC)")
	for _, o := range all {
		total += o.n
		words := "would have run without asking"
		switch approvers.Verdict(o.would) {
		case approvers.Ask:
			asked += o.n
			words = "would have waited for " + strings.ReplaceAll(o.stages, ",", ", then ")
		case approvers.Refuse:
			words = "would have been refused: nobody could approve it"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", o.n, o.tool, words, o.last.UTC().Format(time.DateTime))
	}
	w.Flush()
	fmt.Fprintf(out, "\n%s observed; people would have been asked about %d of them. Nothing of it was run.\n", count(total, "call"), asked)
}
