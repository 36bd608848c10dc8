package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/internal/visible"
)

// finding is the outcome of a run as reported by an operator.
type finding struct {
	Execution string          `json:"execution"`
	What      workflow.Report `json:"what"`
	Reason    string          `json:"reason"`
}

func reportCommand() *cobra.Command {
	var f finding
	cmd := &cobra.Command{
		Use:   "report RUN happened|did-not|leave --reason …",
		Short: "Reports the outcome of a run whose outcome is unknown",
		Long: `Answers, in place of the people who are asked, whether a run happened. With happened, give its result as the reason. With leave, the agent is told that the outcome is
unknown. "countersign pending" lists such runs. The report is recorded as operator:LOGIN. It does not start the run again.`,
		Example: `  countersign report exec_7ABCDEFGHIJK happened --reason "refund RF-9, seen at the bank"`,
		Args:    cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Execution = args[0]
			var ok bool
			if f.What, ok = map[string]workflow.Report{"happened": workflow.Happened, "did-not": workflow.DidNot, "leave": workflow.Leave}[args[1]]; !ok {
				return cli.Misused("%q is not a report: write happened, did-not or leave", args[1])
			}
			if err := cli.CheckReason(&f.Reason); err != nil {
				return err
			}
			return reportTask.Do(cmd.Context(), f, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.Reason, "reason", "", "how you know, or the result if it happened; people and the agent are told")
	return cmd
}

var reportTask = task.Task[finding]{Name: "report", Run: func(ctx context.Context, w task.Env, f finding) error {
	wf, err := w.Workflow()
	if err != nil {
		return err
	}
	if err := wf.Runs.Report(ctx, workflow.Click{Who: approvers.Operates(w.Who), Execution: f.Execution, Reason: f.Reason}, f.What); err != nil {
		return notReported(err, f.Execution)
	}
	fmt.Fprintf(w.Out, "Reported as %s. Those who were asked are told, and so is the agent.\n", w.Who)
	return nil
}}

// notReported returns an error that tells the operator why the bot recorded no report.
func notReported(err error, id string) error {
	id = visible.Line(id)
	var denied *approvers.Denied
	if !errors.As(err, &denied) {
		return cli.CouldNot("nothing can be reported now: %w", err)
	}
	switch denied.Code {
	case approvers.DeniedNotFound:
		return cli.AnswerNo("there is no run %s; `countersign pending` lists the runs whose outcome is unknown", id)
	case approvers.DeniedUnfinished:
		return cli.AnswerNo("nothing was reported: %s is running, or the bot has yet to run it. `countersign pending` lists it if its outcome is unknown", id)
	case approvers.DeniedResolved:
		if denied.By != "" {
			return cli.AnswerNo("nothing was reported: %s reported the outcome before, at %s; `countersign pending %s` shows it", visible.Line(string(denied.By)), cli.Moment(denied.At), id)
		}
		return cli.AnswerNo("nothing was reported: the run ended at %s; `countersign pending %s` shows its outcome", cli.Moment(denied.At), id)
	case approvers.DeniedNothing:
		return cli.AnswerNo("nothing was reported: the agent already has a result, or was told that the outcome is unknown")
	}
	return cli.AnswerNo("nothing was reported (%s)", denied.Code)
}
