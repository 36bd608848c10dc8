package wording

import (
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
)

// Setbacks returns the warnings about a request that do not concern its arguments. The parameter earlier links to
// the question about an earlier run.
func Setbacks(r approvers.Request, pause settings.Pause, earlier string) []*block.RichText {
	out := []*block.RichText{earlierRunWarning(r, earlier)}
	if r.State != approvers.Pending {
		return out
	}
	out = append(out, PausedHere(pause))
	if no := PreviewSaysNo(r); no != "" {
		out = append(out, block.Say("⛔ ").Strong(no))
	}
	for _, warning := range unknownTool(r) {
		out = append(out, block.Say("⚠️ ").Strong(warning))
	}
	if fault := previewFault(r); fault != "" {
		out = append(out, block.Say("⚠️ ").Strong("The preview could not be made: ").Say(block.Clip(block.OneLine(fault), block.MaxNote)))
	}
	return out
}

// earlierRunWarning returns a warning for the card of a retry: the call may have taken effect already. The warning
// includes the reports about the earlier run.
func earlierRunWarning(r approvers.Request, link string) *block.RichText {
	a := r.Retry
	if a == nil {
		return new(block.RichText)
	}
	line := block.Say("⚠️ ")
	switch a.Found {
	case approvers.ExecutionFailed:
		line = block.Say("🔁 An earlier run of this call has an unknown outcome, ").At(a.LostAt, block.DayTime).Say(". ").
			Person(a.FoundBy, "").Say(" reported since: ").Strong("it did not happen").Say(".")
	case approvers.ExecutionSucceeded:
		line.Strong("This has happened already").Say(", as ").Person(a.FoundBy, "").Say(" reported: an earlier run of this call had an unknown outcome, ").At(a.LostAt, block.DayTime).Say(".")
	default:
		line.Strong("This may have happened already.").
			Say(" An earlier run of this call has an unknown outcome, ").At(a.LostAt, block.DayTime).Say(": if it did act, approving this makes it happen twice.")
	}
	line.Say(" Asked again by ").Person(a.By, a.Name).Say(", ").At(a.At, block.DayTime).Say(".")
	if link != "" {
		line.Say(" ").Link(link, "See the earlier run")
	}
	return line
}

// TwiceWarning warns an approver that the call may have happened already and would happen again.
func TwiceWarning(r approvers.Request) string {
	if r.Retry == nil || r.Retry.Found == approvers.ExecutionFailed {
		return ""
	}
	return "It may have happened already: if it did, it happens a second time."
}

// Warnings lists the misleading parts of a call, and the parts that make the call hard to judge.
func Warnings(r approvers.Request) []string {
	out := argument.Doubts(r)
	if fault := previewFault(r); fault != "" {
		out = append(out, "The preview could not be made: "+block.OneLine(fault)+".")
	}
	return append(out, unknownTool(r)...)
}

// unknownTool returns warnings about a tool that the policy does not know. The asking agent may have chosen the tool's
// name. The headline shows only the letters and digits of the name. So a warning shows the full name. Without this
// warning, people could confuse the tool with another tool.
func unknownTool(r approvers.Request) []string {
	if r.Plan.Known {
		return nil
	}
	return append([]string{"The policy does not know this tool: " + block.OneLine(r.Tool) + "."}, block.Findings(r.Tool)...)
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

// MaskedNote returns the note about masked values on a card. The note says how many values are hidden, and which. On a
// waiting card, package card adds that the values must be revealed first.
func MaskedNote(r approvers.Request) *block.RichText {
	found := argument.SecretsIn(r.Args, r.Secrets)
	if len(found) == 0 {
		return new(block.RichText)
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
	return block.Say("🔒 ").Strong(block.Plural(len(found), "value") + are + argument.List(names) + ".")
}
