package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policycmd"
	"countersign/cmd/countersign/task"
)

// storedCalls writes the calls in the history as JSON fixtures. The command check compares a policy with these
// fixtures.
func storedCalls(ctx context.Context, out io.Writer) error {
	return storedTask.Do(ctx, task.None{}, nil, out)
}

var storedTask = task.Task[task.None]{Name: "check stored", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, _ task.None) error {
	calls, err := policycmd.StoredFixtures(ctx, w.Store)
	if left := new(audit.Unread); err != nil && !errors.As(err, &left) {
		return cli.CouldNot("the history can't be read: %w", err)
	}
	return errors.Join(json.NewEncoder(w.Out).Encode(calls), auditcmd.HistoryError(err))
}}

// observedCalls writes a summary of the calls that the policy only observed. The command explain prints the summary.
func observedCalls(ctx context.Context, since time.Duration, out io.Writer) error {
	return observedTask.Do(ctx, since, nil, out)
}

var observedTask = task.Task[time.Duration]{
	Name: "explain observed", Reads: true, Long: true, WhileHeld: true,
	Run: func(ctx context.Context, w task.Env, since time.Duration) error {
		all, err := audit.ReadObserved(ctx, w.Store, cli.Ago(since))
		if left := new(audit.Unread); err != nil && !errors.As(err, &left) {
			return cli.CouldNot("the history can't be read: %w", err)
		}
		if len(all) == 0 {
			fmt.Fprintln(w.Out, "Observe mode has seen no call. To switch it on, write mode: observe in the policy, for a tool or for the whole bot.")
			return auditcmd.HistoryError(err)
		}
		printObserved(w.Out, all)
		return auditcmd.HistoryError(err)
	},
}

func printObserved(out io.Writer, all []audit.Observed) {
	total, asked := 0, 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CALLS\tTOOL\tWITHOUT OBSERVE MODE IT\tLAST (UTC)")
	for _, o := range all {
		total += o.N
		words := "would have run without asking"
		switch approvers.Verdict(o.Would) {
		case approvers.Ask:
			asked += o.N
			words = "would have waited for " + strings.ReplaceAll(o.Stages, ",", ", then ")
		case approvers.Refuse:
			words = "would have been refused: nobody could approve it"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", o.N, o.Tool, words, o.Last.UTC().Format(time.DateTime))
	}
	w.Flush()
	fmt.Fprintf(out, "\n%s observed; people would have been asked about %d of them. None of them ran.\n", cli.Count(total, "call"), asked)
}
