// Command countersign is a Slack bot whose AI agent's risky tool calls wait until the right people countersign them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := root().ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "countersign:", err)
	}
	os.Exit(exitCode(err))
}
