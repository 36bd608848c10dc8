package main

import (
	"github.com/spf13/cobra"
)

// root is the command tree.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "countersign",
		Short: "A Slack bot whose AI agent's risky tool calls wait until the right people countersign them",
		Long: `Countersign is a Slack bot that runs an AI agent. Its risky tool calls wait as cards until the right people
countersign them. Try it on this machine with no account:

  countersign demo`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.NoArgs,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(serveCommand(), demoCommand(), checkCommand(), auditCommand(), workspaceCommand())
	return cmd
}
