package render

import (
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
)

// setbacks returns the warnings about a request that do not concern its arguments. The parameter earlier is the address
// of the question about an earlier run.
func setbacks(r approvers.Request, pause settings.Pause, earlier string) []*RichText {
	out := []*RichText{earlierRunWarning(r, earlier)}
	if r.State != approvers.Pending {
		return out
	}
	out = append(out, pausedHere(pause))
	if no := previewSaysNo(r); no != "" {
		out = append(out, Say("⛔ ").Strong(no))
	}
	for _, warning := range unknownTool(r) {
		out = append(out, Say("⚠️ ").Strong(warning))
	}
	if fault := previewFault(r); fault != "" {
		out = append(out, Say("⚠️ ").Strong("The preview could not be made: ").Say(Clip(OneLine(fault), MaxNote)))
	}
	return out
}

// earlierRunWarning returns a warning for the card of a retry: the call may have taken effect already. The warning
// includes the reports about the earlier run.
func earlierRunWarning(r approvers.Request, link string) *RichText {
	a := r.Retry
	if a == nil {
		return new(RichText)
	}
	line := Say("⚠️ ")
	switch a.Found {
	case approvers.ExecutionFailed:
		line = Say("🔁 An earlier run of this call ended unknown, ").At(a.LostAt, DayTime).Say(". ").Person(a.FoundBy, "").Say(" reported since: ").Strong("it did not happen").Say(".")
	case approvers.ExecutionSucceeded:
		line.Strong("This has happened already").Say(", as ").Person(a.FoundBy, "").Say(" reported: an earlier run of this call had ended unknown, ").At(a.LostAt, DayTime).Say(".")
	default:
		line.Strong("This may have happened already.").
			Say(" An earlier run of this call ended unknown, ").At(a.LostAt, DayTime).Say(": if it did act, approving this makes it happen twice.")
	}
	line.Say(" Asked again by ").Person(a.By, a.Name).Say(", ").At(a.At, DayTime).Say(".")
	if link != "" {
		line.Say(" ").link(link, "See the earlier run")
	}
	return line
}

// twiceWarning warns an approver that the call may have happened already and would happen again.
func twiceWarning(r approvers.Request) string {
	if r.Retry == nil || r.Retry.Found == approvers.ExecutionFailed {
		return ""
	}
	return "It may have happened already: if it did, it happens a second time."
}

// unknownTool returns warnings about a tool that the policy does not know. The asking agent may have chosen the tool's
// name. The headline shows only the letters and digits of the name. So a warning shows the full name. Without this
// warning, people could confuse the tool with another tool.
func unknownTool(r approvers.Request) []string {
	if r.Plan.Known {
		return nil
	}
	return append([]string{"The policy does not know this tool: " + OneLine(r.Tool) + "."}, findings(r.Tool)...)
}

// previewFault returns the reason why the policy's or the tool's preview could not be made. The reason is empty if
// nothing failed.
func previewFault(r approvers.Request) string {
	switch f := r.ToolPreview; {
	case r.PreviewFault != "":
		return r.PreviewFault
	case f != nil && f.State == approvers.ToolPreviewFailed:
		return f.Fault
	}
	return ""
}

// doubts returns warnings about misleading text in a request's arguments. Warnings about open arguments quote the text.
// Warnings about masked arguments do not quote the text.
func doubts(r approvers.Request) []string {
	out := findings(wordsIn(openArgs(r)))
	hidden := countHidden(wordsIn(r.Args)) - countHidden(wordsIn(openArgs(r)))
	if len(r.Secrets) > 0 && hidden > 0 {
		out = append(out, "A masked value holds characters that can't be seen. Reveal… shows them.")
	}
	return out
}

// maskedNote returns the note about masked values on a card. The note says how many values are hidden, and which. A
// waiting card adds that they must be revealed first (card.pending).
func maskedNote(r approvers.Request) *RichText {
	found := SecretsIn(r.Args, r.Secrets)
	if len(found) == 0 {
		return new(RichText)
	}
	var names []string
	for _, v := range found {
		if !slices.Contains(names, v.Path) {
			names = append(names, v.Path)
		}
	}
	are := " are hidden: "
	if len(found) == 1 {
		are = " is hidden: "
	}
	return Say("🔒 ").Strong(Plural(len(found), "value") + are + ArgumentList(names) + ".")
}
