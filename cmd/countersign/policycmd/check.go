package policycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"countersign/agent/catalog"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

// StoredCalls writes the calls in the history as JSON fixtures.
type StoredCalls func(ctx context.Context, out io.Writer) error

// Check returns the command "countersign check".
func Check(history StoredCalls) *cobra.Command {
	var fixtures, against string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Checks the environment and the policy, and prints who approves which calls",
		Long: `Reads the environment and the policy file (FILE, or COUNTERSIGN_POLICY) and prints everything that is wrong, with file,
line and column and what to write instead; then the tools that need confirmation, and who can approve each.

With --replay the policy is tried instead: each call in the file of fixtures (or, with --replay stored, in the store's history) is planned, and
each result that is not as expected is printed with the reasons. With --against, each call that another policy file plans differently is printed.

Exit codes: 0 nothing is wrong, or nothing differs · 1 the policy has findings, or something differs · 2 the environment or a file can't
be used.`,
		Example: `  countersign check countersign.yaml
  countersign check --replay fixtures.yaml
  countersign check new.yaml --replay stored --against countersign.yaml`,
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case fixtures != "":
				path := ""
				if len(args) == 1 {
					path = args[0]
				}
				return replay(cmd.Context(), cmd.OutOrStdout(), path, fixtures, against, history)
			case against != "":
				return cli.Misused("--against needs --replay: say which calls the two policies are compared on")
			}
			return runCheck(cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fixtures, "replay", "", "a file of fixtures, or \"stored\" for the calls of the store's history")
	f.StringVar(&against, "against", "", "with --replay: another policy file, to see what changes from it")
	cli.PathFlags(f, "replay", "against")
	return cmd
}

func runCheck(out io.Writer, args []string) error {
	env, envErr := config.ReadEnv(config.Check)
	var wrong yamldoc.Problems
	if envErr != nil && !errors.As(envErr, &wrong) {
		return cli.Misused("%w", envErr)
	}
	for _, p := range slices.Concat(wrong, env.Warnings) {
		fmt.Fprintln(out, p.Error())
	}
	path := env.Policy
	if len(args) == 1 {
		path = args[0]
	}
	file, err := check.Read(path)
	var broken yamldoc.Problems
	switch {
	case errors.As(err, &broken):
		fmt.Fprintln(out, broken.Excerpts())
		return cli.Misused("%s can't be used: %s", path, cli.Count(len(broken.Errors()), "error"))
	case err != nil:
		return cli.Misused("%w", err)
	}
	tools, err := catalog.Offline(file, path)
	var known []check.Tool // nil: the tools are not known, because a source has errors
	findings := catalog.Findings(file)
	switch {
	case errors.As(err, &broken):
		findings = append(findings, broken...)
	case err != nil:
		return policyfile.Misconfigured(err)
	default:
		file.Policy = catalog.WithTools(file.Policy, tools)
		known = catalog.Described(tools)
		findings = append(findings, catalog.SchemaFindings(file, tools)...)
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

// The function "missing" lists the problems of the variables that the command serve requires, except the problems in
// the parameter wrong.
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

// printReport lists the calls that wait for approval, with the people who can approve them. printReport also lists the
// calls that run without asking, the working hours, the other agents, and the limits.
func printReport(out io.Writer, r check.Report) {
	if len(r.Gates) > 0 {
		fmt.Fprintln(out, "Calls that wait for a countersignature")
		fmt.Fprintf(out, "  Usually, %s.\n", r.Usually)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, g := range r.Gates {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", gateName(g), g.Risk, gateStages(g))
			for _, note := range append(stageTerms(g), g.Notes...) {
				fmt.Fprintf(w, "  \t\t  %s\n", note)
			}
		}
		w.Flush()
	}
	if len(r.Automatic) > 0 {
		fmt.Fprintln(out, "\nCalls that run without asking")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, a := range r.Automatic {
			fmt.Fprintf(w, "  %s\t%s", forAgent(toolName(a.Tool, a.Known), a.Agent), a.Risk)
			if notes := automaticNotes(a); notes != "" {
				fmt.Fprintf(w, "\t%s", notes)
			}
			fmt.Fprintln(w)
		}
		w.Flush()
	}
	if len(r.Working) > 0 {
		fmt.Fprintln(out, "\nWorking hours")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, h := range r.Working {
			fmt.Fprintf(w, "  %s\t%s\n", h.Title, h.Hours)
		}
		w.Flush()
	}
	if len(r.Clients) > 0 {
		fmt.Fprintln(out, "\nOther agents that may ask")
		for _, c := range r.Clients {
			fmt.Fprintf(out, "  %s (%s), by the rules of agent %s: %s\n", c.Name, c.Title, c.Agent, strings.Join(c.Tools, ", "))
			for _, note := range c.Notes {
				fmt.Fprintf(out, "    %s\n", note)
			}
		}
	}
	for i, bound := range r.Bounds {
		if i == 0 {
			fmt.Fprintln(out, "\nBounds")
		}
		fmt.Fprintln(out, "  "+bound)
	}
	if r.Observe {
		fmt.Fprintln(out, "\nThe whole bot only observes: nothing with effects is run, and nobody is asked.")
	}
}

func gateName(g check.Gate) string {
	name := forAgent(toolName(g.Tool, g.Known), g.Agent)
	if g.When == "" {
		return name
	}
	if strings.HasPrefix(g.When, "after ") {
		return name + " " + g.When
	}
	return name + " when " + onOneLine(g.When)
}

func toolName(tool string, known bool) string {
	switch {
	case tool == "":
		return "(any tool that the policy does not name)"
	case !known:
		return tool + " (not in the policy)"
	}
	return tool
}

func forAgent(name, agent string) string {
	if agent == "" {
		return name
	}
	return name + " for agent " + agent
}

// gateStages lists the approvers in order, and the leads who are notified if nobody decides.
func gateStages(g check.Gate) string {
	if g.Refused != "" {
		return "refused: " + g.Refused
	}
	parts := make([]string, len(g.Stages))
	for i, s := range g.Stages {
		parts[i] = fmt.Sprintf("%s (%s)", s.Title, strings.Join(s.Members, ", "))
		if s.Quorum > 1 {
			parts[i] = fmt.Sprintf("%d × %s", s.Quorum, parts[i])
		}
		if len(s.Leads) > 0 {
			parts[i] += ", escalates to " + strings.Join(s.Leads, ", then ")
		}
	}
	return strings.Join(parts, "; then ")
}

// stageTerms lists the special conditions of single stages.
func stageTerms(g check.Gate) []string {
	var out []string
	for i, s := range g.Stages {
		switch text := strings.Join(s.Terms, "; "); {
		case text == "":
		case len(g.Stages) == 1:
			out = append(out, text)
		default:
			out = append(out, fmt.Sprintf("stage %d: %s", i+1, text))
		}
	}
	return out
}

func automaticNotes(a check.Automatic) string {
	var notes []string
	if a.Limit.Count > 0 {
		notes = append(notes, fmt.Sprintf("at most %s in a conversation, then it waits", a.Limit))
	}
	if a.Preview {
		notes = append(notes, "with a preview")
	}
	if a.Observe {
		notes = append(notes, "only observed where it has effects")
	}
	if a.Rules {
		notes = append(notes, "unless a rule matches")
	}
	return strings.Join(notes, ", ")
}
