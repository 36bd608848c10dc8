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

// Args returns a function that checks the number of a command's arguments. The parameter least is the minimum, and most
// is the maximum. If most is negative, there is no maximum. The error repeats the arguments in the command's usage
// line, and the first line of its example.
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

// maxReason is the maximum length of a reason in characters.
const maxReason = 3000

// CheckReason removes the white space around a reason, and rejects a reason that is then empty or too long.
func CheckReason(reason *string) error {
	*reason = strings.TrimSpace(*reason)
	switch n := len([]rune(*reason)); {
	case n == 0:
		return Misused("say why: --reason \"…\"")
	case n > maxReason:
		return Misused("the reason is %d characters long; write at most %d", n, maxReason)
	}
	return nil
}

// FileFlag adds the flag for the output file of a command.
func FileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "out", "o", "-", "the file to write; - prints it")
}
