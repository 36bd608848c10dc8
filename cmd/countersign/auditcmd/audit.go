package auditcmd

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/config/yamldoc"
)

// Command returns the command audit. The caller passes the subcommand accept-loss: that command is in package storecmd,
// which imports this package.
func Command(acceptLoss *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "The history: who allowed what, and when",
		Long: `Reads the history from the store (COUNTERSIGN_STORE), through the bot if that is running. docs/audit.md explains the records
and what verification can find.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(), verifyCommand(), exportCommand(), evidenceCommand(),
		keyCommand(), eraseCommand(), acceptLoss, paceCommand(), reportCommand())
	return cmd
}

// Tasks returns the tasks that a running bot accepts for the audit commands.
func Tasks() []task.Handler {
	return []task.Handler{listTask, verifyTask, eraseTask, exportTask, evidenceTask, paceTask, reportTask}
}

// HistoryError adds exit codes to the errors that reading the history can return. If the request does not exist, or if
// damaged records were left out, the exit code is ExitNo.
func HistoryError(err error) error {
	var left *audit.Unread
	if errors.As(err, &left) || errors.Is(err, audit.ErrUnknownChain) {
		return cli.AnswerNo("%w", err)
	}
	return err
}

func listCommand() *cobra.Command {
	var flags filterFlags
	var o audit.ListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Who allowed what: one line for each request, or each record with --long",
		Long: `Prints one line of at most 120 characters for each request: when it was decided, what it does, who decided it in which role, how it ended, and its id.
The flags select the requests that have a matching record. --long prints the records themselves, with their facts.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Filter, err = flags.read(time.Now()); err != nil {
				return err
			}
			return listTask.DoWarned(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.Long, "long", false, "each record with its facts")
	return cmd
}

var listTask = task.Task[audit.ListOptions]{Name: "audit list", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, o audit.ListOptions) error {
	return HistoryError(audit.List(ctx, w.Out, w.Store, o))
}}

func exportCommand() *cobra.Command {
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
			err = task.ToFile(cmd, file, func(out io.Writer) error {
				written := &cli.Output{W: out}
				err := exportTask.Do(cmd.Context(), o, nil, written)
				if cli.Code(err) == cli.ExitNo && (written.Written > 0 || o.Filter.Chain == "") { // the readable records were written
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

var exportTask = task.Task[audit.ExportOptions]{
	Name: "audit export", Reads: true, Long: true, WhileHeld: true,
	Run: func(ctx context.Context, w task.Env, o audit.ExportOptions) error {
		return HistoryError(audit.Export(ctx, w.Out, w.Store, o))
	},
}

type filterFlags struct {
	request, tool, actor, since, until string
	kinds                              []string
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.request, "request", "", "only this request's records (or this execution's, where nobody was asked)")
	flags.StringVar(&f.tool, "tool", "", "only records about this tool")
	flags.StringVar(&f.actor, "actor", "", "only actions of this person, and calls that the person asked for: a Slack user id, operator:LOGIN, caller:NAME, or bot")
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
	if a := approvers.PersonID(f.actor); f.actor != "" && f.actor != "bot" && a.Login() == "" && a.Caller() == "" && !config.IsUserID(a.User()) {
		return out, cli.Misused("--actor %s: write a Slack user id such as U0123ABCD, operator:LOGIN, caller:NAME for a client, or bot", f.actor)
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

func evidenceCommand() *cobra.Command {
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
			trusted := TrustedKeys{Keys: keys}
			if err := trusted.Trust(); err != nil {
				return err
			}
			o := audit.EvidenceOptions{Requests: requests, Keys: trusted.Keys, Own: trusted.Own}
			var fault error
			err := task.ToFile(cmd, file, func(out io.Writer) error {
				page := &cli.Output{W: out}
				err := evidenceTask.Do(cmd.Context(), o, nil, page)
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

var evidenceTask = task.Task[audit.EvidenceOptions]{
	Name: "audit evidence", Reads: true, Long: true, WhileHeld: true,
	Run: func(ctx context.Context, w task.Env, o audit.EvidenceOptions) error {
		faults, err := audit.WriteEvidence(ctx, w.Out, w.Store, w.Who, o)
		if err != nil {
			return HistoryError(err)
		}
		if faults > 0 {
			return cli.AnswerNo("the page is written, but the history has changed: %s, marked on the page", cli.Count(faults, "fault"))
		}
		return nil
	},
}
