package wording

import (
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
)

// A tool preview is untrusted text of the tool. The preview is shown below the policy's own sentence, quoted and with
// the tool's name.

// saidAbove reports whether the card's first line already contains the whole preview.
func saidAbove(r approvers.Request) bool {
	return r.ToolPreview.Cut == 0 && (r.Preview == r.ToolPreview.Text || r.Preview == r.ToolPreview.By+" says: "+r.ToolPreview.Text)
}

// ToolPreviewLine returns one line about a tool preview. The line has the preview's text, or says that the preview is
// being made. The text has at most MaxNote characters. If the parameter most is less than MaxNote, the text has at most
// this number of characters, and the line does not name the tool. The line is empty if another part of the card shows
// the preview.
func ToolPreviewLine(r approvers.Request, most int, paused bool) *block.RichText {
	f := r.ToolPreview
	switch {
	case f == nil || f.State == approvers.ToolPreviewFailed || r.State != approvers.Pending && f.State == approvers.ToolPreviewPending:
	case f.State == approvers.ToolPreviewPending && paused:
		return block.Say("⏳ ").Strong("No preview is made while everything is paused.")
	case f.State == approvers.ToolPreviewPending:
		line := block.Say("⏳ ").Code(block.Name(f.By)).Say(" is asked what this would do.")
		if r.Plan.Risk >= approvers.Critical {
			line.Say(" It can be approved when the answer is there.")
		}
		return line
	case f.Text != "" && !saidAbove(r):
		text, more := previewSentence(*f)
		if text == "" || text == block.OneLine(r.Preview) || f.No != "" && strings.Contains(text, block.OneLine(f.No)) { // the headline or the banner already has this text
			return new(block.RichText)
		}
		if most < block.MaxNote {
			return block.Say("🔎 ").Soft("“" + block.Shorten(text, most) + "”")
		}
		line := block.Say("🔎 ").Code(block.Name(f.By)).Say(": ").Soft("“" + text + "”")
		if more {
			line.Say(" More in Details…")
		}
		return line
	}
	return new(block.RichText)
}

// PreviewSaysNo returns a warning with the reason, if the preview says that the call would fail. Otherwise
// PreviewSaysNo returns "".
func PreviewSaysNo(r approvers.Request) string {
	if r.ToolPreview == nil || r.ToolPreview.No == "" {
		return ""
	}
	return block.Name(r.ToolPreview.By) + " says that this would fail: " + block.Clip(block.OneLine(r.ToolPreview.No), block.MaxNote)
}

// previewSentence returns a preview on one line, and reports whether the preview has more text.
func previewSentence(f approvers.ToolPreview) (text string, more bool) {
	if text = approvers.Headline(f.Text); text != "" && !strings.HasPrefix(f.Text, "{") {
		_, rest, _ := strings.Cut(f.Text, text)
		more = strings.TrimSpace(rest) != ""
	} else if text != "" {
		more = len(argument.Spans([]byte(f.Text))) > 1
	} else {
		text, more = othersIn(f.Text)
	}
	text = block.OneLine(text)
	return block.Clip(text, block.MaxNote), more || f.Cut > 0 || block.Width(text) > block.MaxNote
}

// othersIn lays out a preview on one line. othersIn leaves out the current values, because they are shown beside the
// arguments. The result "current" reports whether the preview has current values.
func othersIn(said string) (text string, current bool) {
	change := map[string][]byte{}
	for _, m := range argument.Spans([]byte(said)) {
		if slices.Contains(currentMembers, m.Name) {
			change[m.Name] = nil
		}
	}
	if len(change) == 0 {
		return argument.OnOneLine([]byte(said), nil), false
	}
	rest := argument.Splice([]byte(said), change, nil)
	if len(argument.Spans(rest)) == 0 {
		return "", true
	}
	return argument.OnOneLine(rest, nil), true
}

// A preview that is a JSON object may have a member with the current values that the call would replace, by argument.
// currentMembers lists the possible names of this member.
var currentMembers = []string{"current", "before", "previous", "old"}

// CurrentValues lays out the values that a call would replace. The values are from the preview of the companion, a
// second tool that makes the preview. CurrentValues leaves out the values of masked arguments.
func CurrentValues(r approvers.Request) map[string]string {
	out := map[string]string{}
	f := r.ToolPreview
	if f == nil || f.State != approvers.ToolPreviewReady || f.Dry || f.Own || f.Cut > 0 {
		return out
	}
	_, said := argument.Members([]byte(f.Text))
	_, args := argument.Members(r.Args)
	for _, name := range currentMembers {
		_, was := argument.Members(said[name])
		for arg, value := range args {
			old, short := argument.ShortValue(arg, was[arg], nil)
			now, short2 := argument.ShortValue(arg, value, nil)
			if was[arg] != nil && short && short2 && old != now && !approvers.HoldsSecret(r.Secrets, arg) {
				out[arg] = old
			}
		}
	}
	return out
}
