package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoArgs rejects every argument.
func NoArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.HasSubCommands():
		return Misused("unknown command %q for %q", args[0], c.CommandPath())
	}
	return Misused("%s takes flags only, and was given %q", c.CommandPath(), args[0])
}

// Args requires from least to most arguments. A negative most means that there is no maximum. The error repeats the
// command's usage line and its example.
func Args(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		needs := "needs "
		if least == 0 {
			needs = "takes "
		}
		_, usage, _ := strings.Cut(c.Use, " ")
		usage, _, _ = strings.Cut(usage, " --")
		given := "nothing"
		if len(args) > 0 {
			given = strings.Join(args, " ")
		}
		example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
		return Misused("%s, and was given %s; for example: %s", fmt.Sprint(c.CommandPath(), " ", needs, strings.TrimPrefix(usage, "[flags] ")), given, example)
	}
}
