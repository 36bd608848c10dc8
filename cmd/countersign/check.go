package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"countersign/agent/catalog"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
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
				return cli.Misused("--against goes with --replay: say which calls the two policies are held against")
			}
			return runCheck(cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fixtures, "replay", "", "a file of fixtures, or \"stored\" for the calls of the store's history")
	f.StringVar(&against, "against", "", "with --replay: another policy file, to see what changes from it")
	return cmd
}

func runCheck(out io.Writer, args []string) error {
	env, envErr := config.ReadEnv(config.Check)
	var wrong yamldoc.Problems
	if envErr != nil && !errors.As(envErr, &wrong) {
		return cli.Misused("%w", envErr)
	}
	for _, p := range wrong {
		fmt.Fprintln(out, p.Error())
	}
	path := env.Policy
	if len(args) == 1 {
		path = args[0]
	}
	file, err := config.ReadPolicy(path)
	var broken yamldoc.Problems
	switch {
	case errors.As(err, &broken):
		fmt.Fprintln(out, broken.Excerpts())
		return cli.Misused("%s can't be used: %s", path, cli.Count(len(broken.Errors()), "error"))
	case err != nil:
		return cli.Misused("%w", err)
	}
	tools, err := catalog.Offline(file, path)
	var known []check.Tool // nil: unknown while a source has errors
	findings := catalog.Findings(file)
	switch {
	case errors.As(err, &broken):
		findings = append(findings, broken...)
	case err != nil:
		return misconfigured(err)
	default:
		file.Policy = catalog.WithTools(file.Policy, tools)
		known = catalog.Described(tools)
	}
	if findings = append(findings, check.Run(file, known)...); len(findings) > 0 {
		fmt.Fprintln(out, findings.Excerpts())
	}
	printReport(out, check.NewReport(file, known))
	for i, p := range missing(wrong) {
		if i == 0 {
			fmt.Fprintln(out, "\nTo run serve in this environment, set also")
		}
		fmt.Fprintln(out, "  "+p.Error())
	}
	switch {
	case len(wrong.Errors()) > 0:
		return cli.Misused("the environment can't be used: %s", cli.Count(len(wrong.Errors()), "error"))
	case len(findings.Errors()) > 0:
		return cli.AnswerNo("%s has findings: %s", path, cli.Count(len(findings.Errors()), "error"))
	}
	return nil
}

// missing lists the variables that serve requires in addition to those already reported.
func missing(wrong yamldoc.Problems) (out yamldoc.Problems) {
	_, err := config.ReadEnv(config.Serve)
	var all yamldoc.Problems
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
