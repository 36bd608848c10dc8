package wording

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
)

// RiskWords describes a risk in words, with a coloured sign. Only the policy's risk level determines whether the words
// say that a call can't be undone. Claims of the tool's source do not count. No declaration says that a call can be
// undone, so the words do not say this either.
func RiskWords(r approvers.Risk, e approvers.Effect) (sign, words string) {
	undo := ""
	switch {
	case e == approvers.ReadOnly:
		undo = " · reads only"
	case !CanBeUndone(r, e):
		undo = " · can't be undone"
	}
	sign = map[approvers.Risk]string{approvers.Low: "🟢", approvers.Medium: "🟡", approvers.High: "🟠", approvers.Critical: "🔴"}[r]
	return sign, strings.ToUpper(r.String()[:1]) + r.String()[1:] + " risk" + undo
}

// RiskLine describes in a few words the risk of a request, according to the policy.
func RiskLine(r approvers.Request) *block.RichText {
	sign, words := RiskWords(r.Plan.Risk, r.Effect)
	return block.Say(sign + " ").Strong(words)
}

// CanBeUndone reports whether a call can be undone according to its risk level in the policy. CanBeUndone returns true
// for a call that only reads, because such a call leaves nothing to undo.
func CanBeUndone(r approvers.Risk, e approvers.Effect) bool {
	return r < approvers.High || e == approvers.ReadOnly
}

// WhatHappens returns one sentence about a call's effect: the policy's preview or, without a preview, the words of the
// tool's name.
func WhatHappens(preview, tool string) string {
	if preview = strings.TrimSpace(block.Visible(preview)); preview != "" {
		return block.Clip(strings.ReplaceAll(preview, "\n", " ⏎ "), block.MaxHeadline)
	}
	return block.Name(approvers.ToolWords(tool))
}

// InFull describes a call's effect. Without a preview, InFull includes the arguments.
func InFull(preview string, tool string, args []byte, secrets []string) string {
	what := WhatHappens(preview, tool)
	if strings.TrimSpace(preview) == "" {
		if brief := oneLineArguments(string(args), secrets); brief != "" {
			what += " " + brief
		}
	}
	return what
}

// InWords joins the policy's reasons into one sentence.
func InWords(why []string) string {
	line := ""
	total := 0
	for i, w := range why {
		w = block.OneLine(w)
		if total += block.Width(w); total > maxWhy {
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
	text := argument.OnOneLine([]byte(args), secrets)
	if text == argument.NoArguments {
		return ""
	}
	return "(" + block.Shorten(text, 160) + ")"
}

// WhyTyped returns the reason why a value must be typed.
func WhyTyped(r approvers.Request) string {
	why := []string{"Why:"}
	if r.Plan.Risk >= approvers.Critical {
		why = append(why, "this is critical.")
	}
	if r.StepUp != "" {
		why = append(why, block.Clip(block.OneLine(r.StepUp), maxStepUp)+".")
	}
	return strings.Join(why, " ")
}
