package render

import (
	"fmt"
	"strings"

	"countersign/approvers"
)

// riskWords describes a risk in words, with a coloured sign. Only the policy's risk level determines whether the words
// say that a call can't be undone. Claims of the tool's source do not count. No declaration says that a call can be
// undone, so the words do not say this either.
func riskWords(r approvers.Risk, e approvers.Effect) (sign, words string) {
	undo := ""
	switch {
	case e == approvers.ReadOnly:
		undo = " · reads only"
	case !canBeUndone(r, e):
		undo = " · can't be undone"
	}
	sign = map[approvers.Risk]string{approvers.Low: "🟢", approvers.Medium: "🟡", approvers.High: "🟠", approvers.Critical: "🔴"}[r]
	return sign, strings.ToUpper(r.String()[:1]) + r.String()[1:] + " risk" + undo
}

// riskLine describes in a few words the risk of a request, according to the policy.
func riskLine(r approvers.Request) *RichText {
	sign, words := riskWords(r.Plan.Risk, r.Effect)
	return Say(sign + " ").Strong(words)
}

// canBeUndone reports whether a call can be undone according to its risk level in the policy. canBeUndone returns true
// for a call that only reads, because such a call leaves nothing to undo.
func canBeUndone(r approvers.Risk, e approvers.Effect) bool {
	return r < approvers.High || e == approvers.ReadOnly
}

// whatHappens returns one sentence about a call's effect: the policy's preview or, without a preview, the words of the
// tool's name.
func whatHappens(preview, tool string) string {
	if preview = strings.TrimSpace(Visible(preview)); preview != "" {
		return Clip(strings.ReplaceAll(preview, "\n", " ⏎ "), maxHeadline)
	}
	return Name(approvers.ToolWords(tool))
}

// inFull describes a call's effect. Without a preview, inFull includes the arguments.
func inFull(preview string, tool string, args []byte, secrets []string) string {
	what := whatHappens(preview, tool)
	if strings.TrimSpace(preview) == "" {
		if brief := oneLineArguments(string(args), secrets); brief != "" {
			what += " " + brief
		}
	}
	return what
}

// inWords joins the policy's reasons into one sentence.
func inWords(why []string) string {
	line := ""
	total := 0
	for i, w := range why {
		w = OneLine(w)
		if total += Width(w); total > maxWhy {
			return line + fmt.Sprintf("; and %d more reasons", len(why)-i)
		}
		if i > 0 {
			line += "; "
		}
		line += w
	}
	return line
}

// oneLineArguments returns a call's arguments on one line, in parentheses and cut to 160 characters. If there are no
// arguments, or more than 2 KiB, oneLineArguments returns "".
func oneLineArguments(args string, secrets []string) string {
	if len(args) > 2<<10 {
		return ""
	}
	text := onOneLine([]byte(args), secrets)
	if text == noArguments {
		return ""
	}
	return "(" + shorten(text, 160) + ")"
}
