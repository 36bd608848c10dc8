package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
)

func toolsShowCommand(o *toolsOptions) *cobra.Command {
	var alone bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "One tool: what its source says of it, who would approve it, and what changed since it was pinned",
		Long: `Prints all that is known of a tool. What can't be seen in its definition, or only looks like something else, is written as its code point: ⟨U+200B⟩.

Exit codes: 0 it is as pinned · 1 it is new, drifted or gone · 2 there is no such tool · 3 its server can't be reached.`,
		Example: `  countersign tools show files.read_file`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := look(cmd.Context(), o.policy, alone)
			if err != nil {
				return err
			}
			t, err := s.find(args[0])
			if err != nil {
				return err
			}
			return s.show(cmd.OutOrStdout(), t)
		},
	}
	cmd.Flags().BoolVar(&alone, "offline", false, "ask no server: what is pinned is what there is")
	return cmd
}

// show prints a tool. The error says what has to be done about it.
func (s *toolReport) show(out io.Writer, t agent.Status) error {
	p, _ := s.policy.Tool(t.Tool.Name, "")
	fmt.Fprintf(out, "%s\n", t.Tool.Name)
	row := func(name, value string) { fmt.Fprintf(out, "  %-9s %s\n", name, value) }
	row("risk", p.Risk.String())
	row("gate", s.gate(t))
	row("source", orWords(t.Tool.Source, "built in"))
	row("effect", string(t.Tool.Effect))
	for _, c := range claims(t) {
		row("claims", c)
	}
	row("pin", s.pinOf(t))
	fmt.Fprintln(out)
	_, steps := s.policy.Explain(approvers.Call{Tool: t.Tool.Name, Effect: t.Tool.Effect, Facts: approvers.Facts{Now: time.Now()}})
	fmt.Fprintf(out, "A call without arguments: %s\n\n", strings.Join(steps, " "))
	printDefinition(out, t)
	if t.Pinned != nil {
		fmt.Fprintln(out, "\nWhat changed since it was pinned (- as pinned, + as it is now)")
		printDiff(out, t)
	}
	switch {
	case s.refusal(t) != "":
		return cli.AnswerNo("its source describes it in a way that can't be used: %s", s.refusal(t))
	case t.State.Open():
		return cli.AnswerNo("it is not as pinned, and so blocked; \"countersign tools pin %s\" lets it be called", t.Tool.Name)
	case t.State == pins.Gone:
		return cli.AnswerNo("its source does not offer it any more; \"countersign tools pin --all --prune\" forgets it")
	case s.down[t.Tool.Source] != "":
		return cli.CouldNot("%s can't be reached, so this is the tool as it is pinned: %s", t.Tool.Source, s.down[t.Tool.Source])
	}
	return nil
}

// pinOf describes a tool's state relative to its pin, and names the person who pinned it.
func (s *toolReport) pinOf(t agent.Status) string {
	words := pinWord(t.State)
	if why := s.refusal(t); why != "" {
		words = "refused: " + why
	}
	if hash := hashOf(t); hash != "" {
		words += ", " + hash
	}
	if p, ok := s.lock.Tool(t.Tool.Name); ok {
		words += fmt.Sprintf("; pinned by %s at %s, first seen at %s", visible.Line(p.By), p.PinnedAt.Format(time.RFC3339), p.FirstSeen.Format(time.RFC3339))
	}
	return words
}

// claims lists the source's claims about a tool, as quotations.
func claims(t agent.Status) []string {
	var out []string
	if title := t.Tool.Claims.Title; title != "" {
		out = append(out, fmt.Sprintf("its title is %q", visible.Text(title)))
	}
	for _, words := range t.Tool.Claims.Words() {
		out = append(out, "it says that it "+words)
	}
	return out
}

// printDefinition prints the complete definition of a tool, with invisible characters written out.
func printDefinition(out io.Writer, t agent.Status) {
	if t.Definition == nil {
		fmt.Fprintf(out, "%s\n\nArguments\n%s\n", visible.Text(t.Tool.Description), indented(t.Tool.Schema))
		return
	}
	fmt.Fprintf(out, "What its source says of it\n%s\n", indented(t.Definition))
}

// indented formats JSON for reading.
func indented(raw []byte) string {
	text, err := jsontext.AppendFormat(nil, raw, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true), jsontext.Multiline(true), jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  "))
	if err != nil {
		text = raw
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		rest := strings.TrimLeft(line, " ") // indentation is not a run of spaces that could hide something
		lines[i] = line[:len(line)-len(rest)] + visible.Text(rest)
	}
	return "  " + strings.Join(lines, "\n")
}

func printDiff(out io.Writer, t agent.Status) {
	for _, line := range pins.Diff(t.Pinned, t.Definition) {
		fmt.Fprintln(out, "  "+line)
	}
}
