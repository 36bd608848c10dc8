package config

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// String is the report as text: what waits and for whom, then what runs by itself.
func (r Report) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(r.Gates) > 0 {
		fmt.Fprintln(w, "WAITS\tRISK\tWHEN\tFOR")
		for _, g := range r.Gates {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", called(g.Tool, g.Agent, g.Known), g.Risk, orText(g.When, "always"), g.who())
		}
	}
	if len(r.Automatic) > 0 {
		if len(r.Gates) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, "RUNS BY ITSELF\tRISK\tHOW OFTEN")
		for _, a := range r.Automatic {
			fmt.Fprintf(w, "%s\t%s\t%s\n", called(a.Tool, a.Agent, a.Known), a.Risk, a.often())
		}
	}
	if err := w.Flush(); err != nil {
		return err.Error() // a strings.Builder takes everything
	}
	return trimLines(b.String())
}

func called(tool, agent string, known bool) string {
	switch {
	case tool == "":
		tool = "(any other tool)"
	case !known:
		tool += " (not in the policy)"
	}
	if agent != "" {
		tool += ", asked by " + agent
	}
	return tool
}

// who says who has to approve, in which order, and who is told when they don't act.
func (g Gate) who() string {
	if g.Refused != "" {
		return "REFUSED: " + g.Refused
	}
	parts := make([]string, len(g.Stages))
	for i, s := range g.Stages {
		parts[i] = s.Title
		if s.Quorum > 1 {
			parts[i] = fmt.Sprintf("%d × %s", s.Quorum, s.Title)
		}
		if len(s.Leads) > 0 {
			parts[i] += " (if silent, also " + strings.Join(s.Leads, ", ") + ")"
		}
	}
	return strings.Join(parts, ", then ")
}

func (a Automatic) often() string {
	text := "without limit"
	if a.Limit.Count > 0 {
		text = fmt.Sprintf("up to %s in a conversation", a.Limit)
	}
	if a.Rules {
		text += ", unless a rule matches"
	}
	return text
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
