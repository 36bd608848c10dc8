package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"countersign/cmd/countersign/cli"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Writes the manual pages of all commands",
		Example: "  countersign man /usr/local/share/man/man1",
		Hidden:  true, // packages need it, people don't
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // manual pages are for everybody
				return cli.CouldNot("%w", err)
			}
			b := cli.ThisBuild()
			made, err := time.Parse(time.RFC3339, b.Date)
			if err != nil {
				made = time.Unix(0, 0).UTC() // the same pages from the same source
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
