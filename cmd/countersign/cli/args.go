package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"countersign/config/yamldoc"
	"countersign/internal/visible"
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
// is the maximum. If most is negative, there is no maximum. No argument may be empty. The error repeats the arguments in the command's usage
// line, and the first line of its example.
func Args(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return Misused("%s was given an empty argument; is a variable not set?", c.CommandPath())
		}
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
	case visible.Blank(*reason):
		return Misused("say why: --reason \"…\"")
	case n > maxReason:
		return Misused("the reason is %d characters long; write at most %d", n, maxReason)
	}
	return nil
}

// FileFlag adds the flag for the output file of a command.
func FileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "out", "o", "-", "the file to write; - prints it")
	PathFlags(cmd.Flags(), "out")
}

// SpanFlag adds a flag with a length of time, such as 24h or 30d. The default is 0.
func SpanFlag(flags *pflag.FlagSet, span *time.Duration, name, usage string) {
	flags.Var((*spanValue)(span), name, usage)
}

// spanValue is the value of a flag with a length of time.
type spanValue time.Duration

func (v *spanValue) Set(text string) error {
	d, err := yamldoc.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("write a length of time, such as 24h or 30d")
	}
	*v = spanValue(d)
	return nil
}

func (v *spanValue) String() string {
	if *v == 0 {
		return "" // the usage omits an empty default
	}
	return time.Duration(*v).String()
}

func (v *spanValue) Type() string { return "duration" }

// PathFlags marks flags that name a file, a directory or a store. Such a flag rejects an empty value. Otherwise, if a
// script uses an unset variable as the value, the command would run as if the flag were missing.
func PathFlags(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		if f.Value = (pathValue{f.Value}); f.DefValue == "[]" {
			f.DefValue = "" // pflag omits an empty list from the usage only for its own types, and not for pathValue
		}
	}
}

// pathValue is the value of a flag that names a file.
type pathValue struct{ pflag.Value }

func (v pathValue) Set(text string) error {
	if text == "" {
		return errors.New("the value is empty; is a variable not set?")
	}
	return v.Value.Set(text)
}
