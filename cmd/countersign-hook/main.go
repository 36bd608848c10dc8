// Command countersign-hook is "countersign hook" without the rest of countersign. The command is for machines with
// coding agents, and without the bot. The program has about a sixth of countersign's size, and needs about a fifth of
// its start time.
package main

import (
	"context"
	"fmt"
	"os"

	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/hookcmd"
)

func main() {
	cmd := hookcmd.Command()
	cmd.Use = "countersign-hook"
	cmd.Version = cli.ThisBuild().String()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "countersign-hook:", err)
	}
	os.Exit(cli.Code(err))
}
