package auditcmd

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditreport"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
)

type reportOptions struct {
	audit.ActivityOptions
	Format string
}

func reportCommand() *cobra.Command {
	var since, until, page, table string
	o := reportOptions{Format: "text"}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "A report for people who answer for the approvals: who was asked, what was rejected, who lets calls wait",
		Long: `Sums up the history: who was asked how often and how fast, what was rejected and why, which tools nobody rejected, which rules never
matched, where calls wait, and what ran without anybody. It prints the report, or writes it as an HTML page that can be printed, or as CSV.`,
		Example: `  countersign audit report --since 30d --html report.html`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			now := time.Now()
			if o.Since, err = timeFlag("since", since, now); err != nil {
				return err
			}
			if o.Until, err = timeFlag("until", until, now); err != nil {
				return err
			}
			if o.Until.IsZero() {
				o.Until = now
			}
			if !o.Since.Before(o.Until) {
				return cli.Misused("--since %s is not before --until %s, so nothing can be found", since, until)
			}
			file := "-"
			switch {
			case page != "" && table != "":
				return cli.Misused("--html and --csv: write one file at a time")
			case page != "":
				o.Format, file = "html", page
			case table != "":
				o.Format, file = "csv", table
			}
			var left error
			err = task.ToFile(cmd, file, func(out io.Writer) error {
				written := &cli.Output{W: out}
				err := reportTask.Do(cmd.Context(), o, nil, written)
				if written.Written > 0 && cli.Code(err) == cli.ExitNo { // the report has all readable records
					left, err = err, nil
				}
				return err
			})
			return errors.Join(err, left)
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "30d", "the beginning of the period: 2026-11-01, 2026-11-01T08:00:00Z, or 30d for the last 30 days")
	f.StringVar(&until, "until", "", "the end of the period; default: now")
	f.StringVar(&page, "html", "", "write an HTML page to this file; - prints it")
	f.StringVar(&table, "csv", "", "write CSV to this file; - prints it")
	cli.PathFlags(f, "html", "csv")
	f.BoolVar(&o.Reasons, "reasons", true, "include the reasons that people wrote; --reasons=false leaves them out")
	return cmd
}

var reportTask = task.Task[reportOptions]{Name: "audit report", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, o reportOptions) error {
	policy := new(approvers.Policy)
	if wf, err := w.Bare(); err == nil { // without a policy, the report says so
		policy = wf.Policy()
	}
	figures, err := audit.ReadActivity(ctx, w.Store, policy, o.ActivityOptions)
	left := new(audit.Unread)
	if err != nil && !errors.As(err, &left) {
		return cli.CouldNot("the history can't be read: %w", err)
	}
	report := auditreport.Report{Figures: figures, Reasons: o.Reasons, MadeAt: time.Now(), MadeBy: w.Who.Login(), Damaged: len(left.Rows)}
	return errors.Join(auditreport.Write(w.Out, o.Format, report), HistoryError(err))
}}
