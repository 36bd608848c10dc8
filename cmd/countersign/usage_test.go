package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
)

// Wrong usage of the commands that Cobra adds also ends with the exit code for wrong usage.
func TestWrongUsageOfHelp(t *testing.T) {
	for args, want := range map[string]int{
		"help frobnicate": cli.ExitUsage, "help audit frobnicate": cli.ExitUsage, "completion foo": cli.ExitUsage,
		"help": cli.ExitDone, "help audit list": cli.ExitDone, "completion": cli.ExitDone, "completion bash": cli.ExitDone,
	} {
		if _, err := runCommand(t, strings.Fields(args)...); cli.Code(err) != want {
			t.Errorf("%s: %v (exit %d), want exit %d", args, err, cli.Code(err), want)
		}
	}
}

// If a command that takes arguments refuses the given arguments, the error has an example of a valid call.
func TestWrongArguments(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		_, usage, _ := strings.Cut(c.Use, " ")
		usage, _, _ = strings.Cut(usage, " --")
		for _, args := range [][]string{nil, {"one", "two", "three", "four"}} {
			err := c.Args(c, args)
			if err == nil {
				continue
			}
			if strings.Contains(err.Error(), "arg(s)") {
				t.Errorf("%s: %v", c.CommandPath(), err)
			}
			if !c.HasSubCommands() && !strings.HasPrefix(usage, "--") && strings.ContainsAny(usage, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.Contains(err.Error(), "goes with --play") &&
				!strings.Contains(err.Error(), "for example: "+c.CommandPath()+" ") {
				t.Errorf("%s has no example: %v", c.CommandPath(), err)
			}
		}
	}
	walk(root())
}
