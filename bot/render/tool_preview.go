package render

import (
	"fmt"
	"strings"

	"countersign/approvers"
)

// A tool preview is text from others. It is shown below the policy's own sentence, quoted and with the tool's name.

// toolPreview shows a tool's preview of the call, that it is pending, or why there is none.
func (v View) toolPreview(p *BlockBuilder, r approvers.Request) {
	f := r.ToolPreview
	switch {
	case f == nil || f.State == "":
	case f.State == approvers.ToolPreviewReady && f.Text != "" && !saidAbove(r):
		text, missing := toolPreviewShown(*f)
		p.Para(Say("🔎 ").also(says(*f)))
		p.quoted(text)
		if missing > 0 {
			p.Para(Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).Say(" It is whole beside the arguments."))
		}
	default:
		p.Para(v.toolPreviewLine(r))
	}
}

// says names the author of the preview.
func says(f approvers.ToolPreview) *RichText {
	switch {
	case f.Dry:
		return Say("What ").Code(Name(f.By)).Say(" says of a dry run, in its own words:")
	case f.Own:
		return Say("What ").Code(Name(f.By)).Say(" itself says of it:")
	}
	return Say("What ").Code(Name(f.By)).Say(" says of it, in its own words:")
}

// saidAbove reports whether the first line of the card already contains the whole preview.
func saidAbove(r approvers.Request) bool {
	return r.ToolPreview.Cut == 0 && (r.Preview == r.ToolPreview.Text || r.Preview == r.ToolPreview.By+" says: "+r.ToolPreview.Text)
}

// toolPreviewLine returns the state of a tool preview on one line. It is empty if the card shows it elsewhere.
func (v View) toolPreviewLine(r approvers.Request) *RichText {
	f := r.ToolPreview
	switch {
	case f == nil:
	case f.State == approvers.ToolPreviewFailed:
		return Say("⚠️ ").Strong("The preview could not be made: ").Say(Clip(OneLine(f.Fault), MaxNote))
	case f.State == approvers.ToolPreviewPending && r.State != approvers.Pending:
		return new(RichText).soft("It was decided before the preview was there.")
	case f.State == approvers.ToolPreviewPending && v.Pause.On:
		return Say("⏳ ").Strong("No preview is made while everything is paused.").Say(" The arguments are all there is until then.")
	case f.State == approvers.ToolPreviewPending:
		line := Say("⏳ ").Strong("A preview is being made: ").Code(Name(f.By)).Say(" is asked what this would do, and its answer comes here.")
		if r.Plan.Risk >= approvers.Critical {
			line.Say(" It can be approved then, or when there is none.")
		}
		return line
	case saidAbove(r) && !f.Own:
		return new(RichText).soft("The first line is what ").Code(Name(f.By)).soft(" says.")
	}
	return new(RichText)
}

// toolPreviewText lays out a preview: a JSON object like arguments, anything else unchanged.
func toolPreviewText(f approvers.ToolPreview) string {
	text := ArgumentText([]byte(f.Text))
	if f.Cut > 0 {
		text += fmt.Sprintf("\n… (cut: %d more characters that are kept nowhere)", f.Cut)
	}
	return text
}

// toolPreviewShown returns the part of a preview that fits on a card, and the number of missing characters.
func toolPreviewShown(f approvers.ToolPreview) (string, int) {
	text := toolPreviewText(f)
	if Width(text) <= maxToolPreviewShown && strings.Count(text, "\n") < maxToolPreviewLines {
		return text, 0
	}
	return head(text, maxToolPreviewShown*2/3, maxToolPreviewLines-1)
}

// toolPreviewCut reports whether a card shows only the beginning of a preview.
func toolPreviewCut(r approvers.Request) bool {
	if r.ToolPreview == nil || r.ToolPreview.State != approvers.ToolPreviewReady || saidAbove(r) {
		return false
	}
	_, missing := toolPreviewShown(*r.ToolPreview)
	return missing > 0
}

// toolPreviewNote is the note about a preview in a bundle.
func (v View) toolPreviewNote(r approvers.Request) *RichText {
	if f := r.ToolPreview; f != nil && f.State == approvers.ToolPreviewReady && f.Text != "" && !saidAbove(r) {
		return Say("🔎 ").also(says(*f)).Say(" “" + Clip(OneLine(f.Text), maxBundleNote) + "”")
	}
	return v.toolPreviewLine(r)
}
