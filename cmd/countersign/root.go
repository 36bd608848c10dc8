package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/hookcmd"
	"countersign/cmd/countersign/policycmd"
	"countersign/cmd/countersign/storecmd"
)

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "countersign",
		Short: "A Slack bot whose AI agent's risky tool calls wait until the right people countersign them",
		Long: `Countersign is a Slack bot that runs an AI agent. Its risky tool calls wait as cards until the right people
countersign them. Try it on this machine with no account:

  countersign demo`,
		Version:           cli.ThisBuild().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cli.NoArgs,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(serveCommand(), demoCommand(), policycmd.Check(storedCalls), policycmd.Explain(observedCalls),
		auditcmd.Command(storecmd.AcceptLoss()), workspaceCommand(), shopCommand(), manifestCommand(), doctorCommand(),
		pendingCommand(), decideCommand(), reportCommand(), pauseCommand(), resumeCommand(),
		storecmd.Backup(), storecmd.Restore(), storecmd.Command(), policycmd.Tools(), clientCommand(), gatewayCommand(), hookcmd.Command("hook"),
		healthCommand(), versionCommand(), manCommand())
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultCompletionCmd()
	for _, c := range cmd.Commands() {
		switch c.Name() {
		case "help":
			c.Args = knownCommand
		case "completion":
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // Cobra checks only the arguments of a command that runs
		}
	}
	guided(cmd)
	return cmd
}

// knownCommand checks the arguments of the command help.
func knownCommand(cmd *cobra.Command, args []string) error {
	if _, rest, err := cmd.Root().Find(args); err != nil || len(rest) > 0 {
		return cli.Misused("there is no command %q", strings.Join(args, " "))
	}
	return nil
}

// guided makes every command explain the right usage after wrong usage, because Cobra's own messages only name the
// mistake.
func guided(cmd *cobra.Command) {
	wrong := func(c *cobra.Command, err error) error {
		return cli.Misused("%w; \"%s --help\" shows the usage", err, c.CommandPath())
	}
	cmd.SetFlagErrorFunc(wrong)
	cmd.SuggestionsMinimumDistance = 2
	check := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil {
			return nil
		}
		if len(args) > 0 {
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				return cli.Misused("%w; did you mean %s?", err, strings.Join(near, " or "))
			}
		}
		return wrong(c, err)
	}
	for _, c := range cmd.Commands() {
		guided(c)
	}
}

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Writes the manual pages of all commands",
		Example: "  countersign man /usr/local/share/man/man1",
		Hidden:  true, // only the build of a release needs this command
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // manual pages are for everybody
				return cli.CouldNot("%w", err)
			}
			b := cli.ThisBuild()
			made, err := time.Parse(time.RFC3339, b.Date)
			if err != nil {
				made = time.Unix(0, 0).UTC() // a fixed date, so that the same source always gives the same pages
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			head := &doc.GenManHeader{Section: "1", Source: "Countersign " + b.Version, Manual: "Countersign", Date: &made}
			if err := doc.GenManTree(root, head, args[0]); err != nil {
				return cli.CouldNot("%w", err)
			}
			return nil
		},
	}
}
