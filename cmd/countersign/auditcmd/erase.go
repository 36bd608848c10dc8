package auditcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"countersign/approvers/workflow/retention"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/store"
)

type eraseOptions struct {
	Chain  string `json:"chain"`
	Reason string `json:"reason"`
}

func eraseCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "erase REQUEST --reason WHY",
		Short: "Erases what people wrote and were shown about a request; the history stays verifiable",
		Long: `Erases the arguments, reasons, results and cards of a request that is over (or of an execution or a call, where nobody was asked), also where
they were shown beside other requests. Who decided what, when and over which digest stays, and so do all hashes. It can't be undone, and is
recorded with your name and the reason. The reason is kept, so don't repeat in it what has to be erased.

The following is not erased: the conversation's messages and answers (they are erased with the conversation), the messages in Slack, and backups.
docs/audit.md has the details.`,
		Example: `  countersign audit erase req_7ABCDEFGHIJK --reason "asked for by the customer"`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckReason(&reason); err != nil {
				return err
			}
			return eraseTask.Do(cmd.Context(), eraseOptions{args[0], reason}, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}

var eraseTask = task.Task[eraseOptions]{Name: "audit erase", Run: func(ctx context.Context, w task.Env, o eraseOptions) error {
	wf, err := w.Bare()
	if err != nil {
		return err
	}
	done, err := retention.Erase(ctx, wf, o.Chain, w.Who, o.Reason)
	var open retention.NotOverError
	var grant retention.GrantOpenError
	switch {
	case errors.Is(err, store.ErrNotFound):
		return cli.AnswerNo("the history has no request %s; \"countersign audit list\" has the ids", o.Chain)
	case errors.As(err, &open):
		return cli.AnswerNo("%s can't be erased now: %w. Try again when its card and its conversation's turn are done", o.Chain, open)
	case errors.As(err, &grant):
		return cli.AnswerNo("%s can't be erased now: %w", o.Chain, grant)
	case err != nil:
		return cli.CouldNot("nothing was erased: %w", err)
	}
	fmt.Fprintf(w.Out, "erased %s of %s, and %s\n", cli.Count(done.Payloads, "text"), cli.Count(done.Chains, "chain"), cli.Count(done.Renderings, "posted version"))
	if done.Files > 0 {
		fmt.Fprintf(w.Out, "erased %s of its runs; their copies in Slack stay there\n", cli.Count(done.Files, "file"))
	}
	return nil
}}
