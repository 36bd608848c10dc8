// Command countersign is a Slack bot whose AI agent's risky tool calls wait until the right people countersign them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"countersign/cmd/countersign/cli"
	"countersign/internal/redact"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	out := &cli.Output{W: os.Stdout}
	withoutSecrets()
	cmd := root()
	cmd.SetOut(out)
	err := cmd.ExecuteContext(ctx)
	if err == nil && out.Err != nil {
		err = cli.CouldNot("what this command says can't be written: %w", out.Err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "countersign:", redact.Error(err))
	}
	os.Exit(cli.Code(err))
}
