package main

import (
	"errors"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "The history: who allowed what, and when",
		Long: `Reads the history from the store (COUNTERSIGN_STORE), also while the bot runs: then the bot is asked. docs/audit.md explains the records
and what verification can find.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(auditListCommand(), auditVerifyCommand(), auditExportCommand(), auditEvidenceCommand(), auditKeyCommand(), auditEraseCommand(), auditAcceptLossCommand(), paceCommand())
	return cmd
}

// historyError adds exit codes to the errors of the history's readers: a missing request and omitted damaged records
// are answers, not failures.
func historyError(err error) error {
	var left *audit.Unread
	if errors.As(err, &left) || errors.Is(err, audit.ErrUnknownChain) {
		return cli.AnswerNo("%w", err)
	}
	return err
}
