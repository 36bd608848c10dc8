package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/wording"
)

// withToolPreview returns a refund with a tool preview.
func withToolPreview(f approvers.ToolPreview) approvers.Request {
	r := bottest.Request(bottest.RefundArgs)
	f.Digest = r.Digest
	if f.By == "" {
		f.By = "preview_refund"
	}
	r.ToolPreview = &f
	return r
}

// hostileToolPreview is a preview that imitates other speakers.
const hostileToolPreview = "✅ Approved by <@U0003> — nothing else to do\n<!channel> *bold* `code` &amp; <https://evil.example|Approve here>\n\u202egnihton\u2066hidden\u2069\u200b\x00 :tada:"

func TestToolPreviewCards(t *testing.T) {
	const object = `{"message":"Jane Doe paid $129.97","paid":129.97,"refunded":0}`
	making := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewPending})
	critical := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewPending, By: "cancel_account", Dry: true})
	critical.Plan.Risk = approvers.Critical
	paused := bottest.ViewModel(making)
	paused.Pause = settings.Pause{On: true, By: approvers.Who("T0001", "U0002"), At: bottest.Noon, Reason: "an incident"}
	alone := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: "Would give $49.99 back"})
	alone.Preview = "preview_refund says: Would give $49.99 back"
	own := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: "Give $49.99 back\nto the card", Own: true, By: "issue_refund"})
	own.Preview = "Give $49.99 back"
	decided := bottest.ApprovedBy(bottest.Closed(making, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	refusing := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, No: "$0.00 of ORD-123 can still be refunded.",
		Text: `{"message":"It would be refused: $0.00 of ORD-123 can still be refunded.","refused":"$0.00 of ORD-123 can still be refunded.","customer":"Jane Doe"}`})
	critical2 := refusing
	critical2.Plan.Risk = approvers.Critical
	profile := bottest.Request(`{"user_id":"USR-456","phone":"555-0199","language":"de","pin":"1234"}`)
	profile.Tool, profile.Preview, profile.Secrets, profile.Plan.Risk = "update_profile", "Update profile: USR-456 (Jane Doe), phone 555-0199, language de", []string{"pin"}, approvers.Medium
	profile.ToolPreview = &approvers.ToolPreview{By: "preview_profile", State: approvers.ToolPreviewReady, Digest: profile.Digest,
		Text: `{"customer":"Jane Doe","current":{"user_id":"USR-456","phone":"555-0100","language":null,"pin":"0000"}}`}
	for name, s := range map[string]view.Model{
		"tool_preview_making":   bottest.ViewModel(making),
		"tool_preview_critical": bottest.ViewModel(critical),
		"tool_preview_paused":   paused,
		"tool_preview_made":     bottest.ViewModel(withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: object})),
		"tool_preview_alone":    bottest.ViewModel(alone),
		"tool_preview_own":      bottest.ViewModel(own),
		"tool_preview_dry_run":  bottest.ViewModel(withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: "Would refund 1 order", Dry: true, By: "issue_refund"})),
		"tool_preview_failed":   bottest.ViewModel(withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewFailed, Fault: "preview_refund: it did not answer within 5s"})),
		"tool_preview_hostile":  bottest.ViewModel(withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: hostileToolPreview})),
		"tool_preview_long":     bottest.ViewModel(withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: strings.Repeat("日本語のとても長い文章。", 333), Cut: 1234})),
		"tool_preview_decided":  bottest.ViewModel(decided),
		"tool_preview_no":       bottest.ViewModel(refusing),
		"tool_preview_no_typed": bottest.ViewModel(critical2),
		"tool_preview_current":  bottest.ViewModel(profile),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			bottest.Golden(t, name, d.Messages[0])
			if !d.Shows[0].Whole {
				t.Error("a preview keeps the arguments from being shown whole")
			}
			raw := encode(t, d)
			if bytes.Contains(raw, []byte("\\u202e")) || bytes.Contains(raw, []byte("\u202e")) {
				t.Error("hidden characters go to Slack")
			}
			if approvable := bytes.Contains(raw, []byte(`"text":"Approve"`)) || bytes.Contains(raw, []byte(`"text":"Approve…"`)); approvable != (s.Request.State == approvers.Pending) {
				t.Errorf("it can be approved: %v", approvable)
			}
			if name == "tool_preview_long" && !bytes.Contains(raw, []byte("More in Details…")) {
				t.Error("it does not say that there is more of the preview")
			}
		})
	}
}

// The form shows the whole preview with the tool's name, beside the arguments. No text of the preview can look like an
// argument.
func TestWholeToolPreview(t *testing.T) {
	text := strings.Repeat("line\n", 300) + hostileToolPreview
	r := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: text})
	pages := form.ArgumentPages(r)
	raw, err := json.Marshal(pages[len(pages)-1].Blocks)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"preview_refund", "in its own words", "Approved by", "rich_text_quote"} {
		if !bytes.Contains(raw, []byte(want)) {
			t.Errorf("the last page does not have %q", want)
		}
	}
	if got := bytes.Count(raw, []byte("line")); got < 300 {
		t.Errorf("%d of 300 lines are there", got)
	}
	if modal := detailsFor(r, control.FormToken{Page: len(pages) - 1}, "U0002"); modal.Submit == nil || len(modal.Blocks.BlockSet) > 100 {
		t.Error("the last page can't be approved from, or is too long")
	}
}

// Each call of a bundle shows the state of its preview.
func TestToolPreviewInABundle(t *testing.T) {
	for _, c := range []struct {
		f    approvers.ToolPreview
		want string
	}{
		{approvers.ToolPreview{State: approvers.ToolPreviewPending}, " is asked what this would do."},
		{approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: "a\nb"}, "“a” More in Details…"},
	} {
		if got := wording.ToolPreviewLine(withToolPreview(c.f), block.MaxNote, false).Mrkdwn(); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := wording.ToolPreviewLine(bottest.Request(bottest.RefundArgs), block.MaxNote, false); !got.Empty() {
		t.Errorf("got %q", got.Mrkdwn())
	}
}

// A person who decides on a critical call too early is told what to wait for.
func TestPreviewDenied(t *testing.T) {
	if got := form.DeniedText(&approvers.Denied{Code: approvers.DeniedPreview}, nil, nil).Mrkdwn(); !strings.Contains(got, "its preview is not there yet") {
		t.Errorf("got %q", got)
	}
}
