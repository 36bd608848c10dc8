package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/config/yamldoc"
	"countersign/store"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "The history: who allowed what, and when",
		Long: `Reads the history from the store (COUNTERSIGN_STORE), through the bot if that is running. docs/audit.md explains the records
and what verification can find.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(auditListCommand(), auditVerifyCommand(), auditExportCommand(), auditEvidenceCommand(),
		auditKeyCommand(), auditEraseCommand(), auditAcceptLossCommand(), paceCommand(), auditReportCommand())
	return cmd
}

// historyError adds exit codes to the errors that reading the history can return. If the request does not exist, or if
// damaged records were left out, the exit code is ExitNo.
func historyError(err error) error {
	var left *audit.Unread
	if errors.As(err, &left) || errors.Is(err, audit.ErrUnknownChain) {
		return cli.AnswerNo("%w", err)
	}
	return err
}

func auditListCommand() *cobra.Command {
	var flags filterFlags
	var o audit.ListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Who allowed what: one line for each request, or each record with --long",
		Long: `Prints one line of at most 120 characters for each request: when it was decided, what it does, who decided it in which role, how it ended, and its id.
The flags select the requests that have a matching record. --long prints the records themselves, with their facts and hashes.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Filter, err = flags.read(time.Now()); err != nil {
				return err
			}
			return auditListTask.Do(cmd.Context(), o, nil, cmd.OutOrStdout())
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.Long, "long", false, "each record with its facts")
	return cmd
}

var auditListTask = task.Task[audit.ListOptions]{Name: "audit list", Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, o audit.ListOptions) error {
	return historyError(audit.List(ctx, w.Out, w.Store, o))
}}

func auditExportCommand() *cobra.Command {
	formatNames := strings.Join(audit.ExportFormats(), ", ")
	var (
		flags filterFlags
		o     audit.ExportOptions
		file  string
	)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "The records for another system: JSON Lines, CSV, or CEF for a SIEM",
		Long: `Writes the records in order of time. What people wrote and were shown (arguments, reasons, cards, results) is left out
unless --payloads asks for it. Damaged records are left out: all others are written, and the command names the damaged rows and exits with 1.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !slices.Contains(audit.ExportFormats(), o.Format) {
				return cli.Misused("--format %s: the formats are %s", o.Format, formatNames)
			}
			if o.Filter, err = flags.read(time.Now()); err != nil {
				return err
			}
			var left error
			err = cli.ToFile(cmd, file, func(out io.Writer) error {
				written := &cli.Output{W: out}
				err := auditExportTask.Do(cmd.Context(), o, nil, written)
				if cli.Code(err) == cli.ExitNo && (written.Written > 0 || o.Filter.Chain == "") { // all readable records
					left, err = err, nil
				}
				return err
			})
			return errors.Join(err, left)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&o.Format, "format", "jsonl", "one of "+formatNames)
	cmd.Flags().BoolVar(&o.Payloads, "payloads", false, "include the texts that people wrote and were shown")
	cli.FileFlag(cmd, &file)
	return cmd
}

var auditExportTask = task.Task[audit.ExportOptions]{Name: "audit export", Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, o audit.ExportOptions) error {
	return historyError(audit.Export(ctx, w.Out, w.Store, o))
}}

type filterFlags struct {
	request, tool, actor, since, until string
	kinds                              []string
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.request, "request", "", "only this request's records (or this execution's, where nobody was asked)")
	flags.StringVar(&f.tool, "tool", "", "only records about this tool")
	flags.StringVar(&f.actor, "actor", "", "only actions of this person: a Slack user id, operator:LOGIN, or bot")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only records of these kinds, such as decided,executing; docs/audit.md lists them")
	flags.StringVar(&f.since, "since", "", "only from this time on: 2026-11-01, 2026-11-01T08:00:00Z, or 24h or 30d for the last hours or days")
	flags.StringVar(&f.until, "until", "", "only before this time")
}

// read parses the flags. Durations such as "24h" count back from now.
func (f filterFlags) read(now time.Time) (audit.Filter, error) {
	out := audit.Filter{Chain: f.request, Tool: f.tool, Actor: f.actor, Kinds: f.kinds}
	for _, k := range f.kinds {
		if !slices.Contains(approvers.AuditKinds, approvers.AuditKind(k)) {
			return out, cli.Misused("--kind %s: there is no such kind of record; the kinds are %s", k, joined(approvers.AuditKinds))
		}
	}
	var err error
	if out.Since, err = timeFlag("since", f.since, now); err != nil {
		return out, err
	}
	if out.Until, err = timeFlag("until", f.until, now); err != nil {
		return out, err
	}
	if !out.Until.IsZero() && !out.Since.Before(out.Until) {
		return out, cli.Misused("--since %s is not before --until %s, so nothing can be found", f.since, f.until)
	}
	return out, nil
}

func joined(kinds []approvers.AuditKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}

// timeFlag parses a time: a day, a point in time, or a duration before now.
func timeFlag(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if d, err := yamldoc.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, cli.Misused("--%s %s: write a day (2026-11-01), a moment (2026-11-01T08:00:00Z), or how long ago (24h, 30d)", name, text)
}

func auditEvidenceCommand() *cobra.Command {
	var file string
	var keys []string
	cmd := &cobra.Command{
		Use:   "evidence REQUEST…",
		Short: "A page for an auditor: a request's whole story, with each version of its card",
		Long: `Writes one HTML page that loads nothing and can be printed: who asked for what, what each approver was shown when they decided, what ran, and
how it ended. It also shows what was verified: among other things, that a signed head covers each record. "countersign audit list" lists the ids
of requests. If a check fails, the page says which one, and the command exits with 1.`,
		Example: `  countersign audit evidence req_7ABCDEFGHIJK --out page.html`,
		Args:    cli.Args(1, -1),
		RunE: func(cmd *cobra.Command, requests []string) error {
			trusted := trustedKeys{Keys: keys}
			if err := trusted.trust(); err != nil {
				return err
			}
			o := audit.EvidenceOptions{Requests: requests, Keys: trusted.Keys, Own: trusted.Own}
			var fault error
			err := cli.ToFile(cmd, file, func(out io.Writer) error {
				page := &cli.Output{W: out}
				err := auditEvidenceTask.Do(cmd.Context(), o, nil, page)
				if page.Written > 0 && cli.Code(err) == cli.ExitNo { // the page is complete, but the history is not
					fault, err = err, nil
				}
				return err
			})
			return errors.Join(err, fault)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the public key that you trust (default: the keys in the key file)")
	cli.FileFlag(cmd, &file)
	return cmd
}

var auditEvidenceTask = task.Task[audit.EvidenceOptions]{Name: "audit evidence", Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, o audit.EvidenceOptions) error {
	faults, err := audit.WriteEvidence(ctx, w.Out, w.Store, w.Who, o)
	if err != nil {
		return historyError(err)
	}
	if faults > 0 {
		return cli.AnswerNo("the page is written, but the history has changed: %s, marked on the page", cli.Count(faults, "fault"))
	}
	return nil
}}

func paceCommand() *cobra.Command {
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "pace",
		Short: "How fast people decide, by role and by person, to find who approves without reading",
		Long: `Sums up the decisions of the history, by role and by person: how many, how many of the approvals came less than 3 seconds after the card was
shown, how long people took, and how many calls they changed or rejected. Those with the largest share of quick approvals come first.`,
		Example: `  countersign audit pace --since 720h`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return auditPaceTask.Do(cmd.Context(), since, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&since, "since", 0, "only decisions of this time until now, such as 720h; all without it")
	return cmd
}

var auditPaceTask = task.Task[time.Duration]{Name: "audit pace", Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, since time.Duration) error {
	return printDecisionReport(ctx, w.Out, w.Store, cli.Ago(since))
}}

func printDecisionReport(ctx context.Context, out io.Writer, s store.Store, from time.Time) error {
	all, err := audit.ReadDecisions(ctx, s, from)
	if left := new(audit.Unread); err != nil && !errors.As(err, &left) {
		return cli.CouldNot("the history can't be read: %w", err)
	}
	if len(all.People) == 0 {
		fmt.Fprintln(out, "Nobody has decided anything in this time.")
		return historyError(err)
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
	return historyError(err)
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
