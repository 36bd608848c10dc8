package auditcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/store"
)

func paceCommand() *cobra.Command {
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "pace",
		Short: "How fast people decide, by role and by person, to find who approves without reading",
		Long: `Sums up the decisions of the history, by role and by person: how many, how many of the approvals came less than 3 seconds after the card was
shown, how long people took, and how many calls they changed or rejected. Those with the largest share of quick approvals come first.`,
		Example: `  countersign audit pace --since 30d`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return paceTask.Do(cmd.Context(), since, nil, cmd.OutOrStdout())
		},
	}
	cli.SpanFlag(cmd.Flags(), &since, "since", "only the decisions of the last hours or days, such as 24h or 30d; default: all")
	return cmd
}

var paceTask = task.Task[time.Duration]{Name: "audit pace", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, since time.Duration) error {
	return printDecisionReport(ctx, w.Out, w.Store, cli.Ago(since))
}}

func printDecisionReport(ctx context.Context, out io.Writer, s store.Store, from time.Time) error {
	all, err := audit.ReadDecisions(ctx, s, from)
	if left := new(audit.Unread); err != nil && !errors.As(err, &left) {
		return cli.CouldNot("the history can't be read: %w", err)
	}
	if len(all.People) == 0 {
		fmt.Fprintln(out, "Nobody has decided anything in this time.")
		return HistoryError(err)
	}
	printDecisionStats(out, "ROLE", all.Roles)
	fmt.Fprintln(out)
	printDecisionStats(out, "PERSON", all.People)
	fmt.Fprint(out, `
QUICK is the share of the approvals that came less than 3 s after the card was shown: too soon to
have read it. Half of the decisions were made within MEDIAN, nine tenths within 90 %. If many
approvals are quick, and few calls are changed or rejected, cards are probably approved unread. Let
the policy ask less about what is always allowed, so that what it does ask about is read.
`)
	return HistoryError(err)
}

func printDecisionStats(out io.Writer, of string, all map[string]*audit.DecisionStats) {
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *audit.DecisionStats) int {
		return cmp.Or(cmp.Compare(b.QuickShare(), a.QuickShare()), cmp.Compare(b.Approvals, a.Approvals), cmp.Compare(a.Name, b.Name))
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tDECISIONS\tAPPROVALS\tQUICK\tMEDIAN\t90 %%\tCHANGED\tREJECTED\n", of)
	for _, p := range sorted {
		quick, median, most := "–", "–", "–"
		if p.Timed > 0 {
			quick = cli.Percent(p.Quick, p.Timed)
		}
		if half, ok := p.Within(50); ok {
			nine, _ := p.Within(90)
			median, most = cli.Duration(half), cli.Duration(nine)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n",
			p.Name, p.Decisions, p.Approvals, quick, median, most, cli.Percent(p.Changed, p.Decisions), cli.Percent(p.Rejected, p.Decisions))
	}
	w.Flush()
}
