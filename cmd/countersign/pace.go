package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"countersign/store"
)

func paceCommand() *cobra.Command {
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "pace",
		Short: "How fast people decide, by role and by person: who waves cards through",
		Long: `Sums up the decisions of the history, by role and by person: how many, how many of the approvals came less than 3 seconds after the card was
shown, how long people took, and how many calls they changed or rejected. Those with the largest share of quick approvals come first.`,
		Example: `  countersign audit pace --since 720h`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return auditPaceTask.do(cmd.Context(), since, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&since, "since", 0, "only decisions of this time until now, such as 720h; all without it")
	return cmd
}

var auditPaceTask = task[time.Duration]{"audit pace", true, func(ctx context.Context, w workplace, since time.Duration) error {
	return printPace(ctx, w.out, w.store, ago(since))
}}

// ago is the time so long before now; the zero time for zero: from the start.
func ago(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(-d)
}

func printPace(ctx context.Context, out io.Writer, s store.Store, from time.Time) error {
	all, err := readPaces(ctx, s, from)
	if err != nil {
		return couldNot("the history can't be read: %w", err)
	}
	if len(all.people) == 0 {
		fmt.Fprintln(out, "Nobody has decided anything in this time.")
		return nil
	}
	printPaces(out, "ROLE", all.roles)
	fmt.Fprintln(out)
	printPaces(out, "PERSON", all.people)
	fmt.Fprint(out, `
QUICK is the share of the approvals that came less than 3 s after the card was shown: too soon to
have read it. Half of the decisions were made within MEDIAN, nine tenths within 90 %. Much that is
quick and little that is changed or rejected says that cards are waved through. Let the policy ask
less about what is always allowed, so that what it does ask about is read.
`)
	return nil
}

func printPaces(out io.Writer, of string, all map[string]*pace) {
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *pace) int {
		return cmp.Or(cmp.Compare(b.share(), a.share()), cmp.Compare(b.approvals, a.approvals), cmp.Compare(a.name, b.name))
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tDECISIONS\tAPPROVALS\tQUICK\tMEDIAN\t90 %%\tCHANGED\tREJECTED\n", of)
	for _, p := range sorted {
		quick, median, most := "–", "–", "–"
		if p.timed > 0 {
			quick = percent(p.quick, p.timed)
		}
		if len(p.times) > 0 {
			median, most = lasted(p.within(50)), lasted(p.within(90))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n",
			p.name, p.decisions, p.approvals, quick, median, most, percent(p.changed, p.decisions), percent(p.rejected, p.decisions))
	}
	w.Flush()
}

func percent(part, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of)) }

// lasted is a time as precise as one wants to read it: 2.4s, 48s, 1m2s, 2h5m.
func lasted(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
