package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"countersign/config/check"
)

// printReport lists the calls that wait, with the people who can approve them, and the tools that run automatically.
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
	return name + " when " + g.When
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

// stageTerms lists the special terms of single stages.
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
