package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"countersign/config"
)

func checkCommand() *cobra.Command {
	var fixtures, against string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "What is wrong with the environment and the policy, and who approves what",
		Long: `Reads the environment and the policy file (FILE, or COUNTERSIGN_POLICY) and prints everything that is wrong, with file,
line and column and what to write instead; then the tools that need confirmation, and who can approve each.

With --replay the policy is tried instead: each call of the file of fixtures (or, with --replay stored, of the store's history) is planned, and
what is not as expected is printed with the reasons. With --against another policy file, what the two say differently is printed.

Exit codes: 0 nothing is wrong, or nothing differs · 1 the policy has findings, or something differs · 2 the environment or a file can't
be used.`,
		Example: `  countersign check
  countersign check --replay fixtures.yaml
  countersign check new.yaml --replay stored --against countersign.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case fixtures != "":
				path := ""
				if len(args) == 1 {
					path = args[0]
				}
				return replay(cmd.Context(), cmd.OutOrStdout(), path, fixtures, against)
			case against != "":
				return misused("--against goes with --replay: say which calls the two policies are held against")
			}
			return check(cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fixtures, "replay", "", "a file of fixtures, or \"stored\" for the calls of the store's history")
	f.StringVar(&against, "against", "", "with --replay: another policy file, to see what changes from it")
	return cmd
}

func check(out io.Writer, args []string) error {
	env, envErr := config.ReadEnv(config.Check)
	var wrong config.Problems
	if envErr != nil && !errors.As(envErr, &wrong) {
		return misused("%w", envErr)
	}
	for _, p := range wrong {
		fmt.Fprintln(out, p.Error())
	}
	path := env.Policy
	if len(args) == 1 {
		path = args[0]
	}
	file, err := config.ReadPolicy(path)
	var broken config.Problems
	switch {
	case errors.As(err, &broken):
		fmt.Fprintln(out, broken.Excerpts())
		return misused("%s can't be used: %s", path, count(len(broken.Errors()), "error"))
	case err != nil:
		return misused("%w", err)
	}
	tools, err := offline(file, path)
	var known []config.Tool // nil: what there is can't be said while a source can't be used
	findings := sourceFindings(file)
	switch {
	case errors.As(err, &broken):
		findings = append(findings, broken...)
	case err != nil:
		return err
	default:
		withTools(file, tools)
		known = described(tools)
	}
	if findings = append(findings, file.Check(known)...); len(findings) > 0 {
		fmt.Fprintln(out, findings.Excerpts())
	}
	printReport(out, file.Report(known))
	for i, p := range missing(wrong) {
		if i == 0 {
			fmt.Fprintln(out, "\nTo run serve in this environment, set also")
		}
		fmt.Fprintln(out, "  "+p.Error())
	}
	switch {
	case len(wrong.Errors()) > 0:
		return misused("the environment can't be used: %s", count(len(wrong.Errors()), "error"))
	case len(findings.Errors()) > 0:
		return answerNo("%s has findings: %s", path, count(len(findings.Errors()), "error"))
	}
	return nil
}

// missing lists what serve would find in the environment beside what is wrong anyway.
func missing(wrong config.Problems) (out config.Problems) {
	_, err := config.ReadEnv(config.Serve)
	var all config.Problems
	if !errors.As(err, &all) {
		return nil
	}
	for _, p := range all {
		if !slices.Contains(wrong, p) {
			out = append(out, p)
		}
	}
	return out
}

// count is a number with its noun: "1 error", "2 errors".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strings.Join([]string{fmt.Sprint(n), noun}, " ")
}
