// Command countersign-hook is "countersign hook" without the rest of countersign. The command is for machines that run
// coding agents but not the bot. The program has about a sixth of countersign's size, and starts in about a fifth of
// the time.
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
