package check_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/config/check"
)

// previewing lists the registered tools of these tests. Some tools can make previews.
var previewing = []check.Tool{
	{Name: "refund", Effect: approvers.Unprotected, Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"number"},"dry_run":{"type":"boolean"},"mode":{"enum":["real","simulate"]},"force":{"type":"string"}},"additionalProperties":false}`)},
	{Name: "pay", Effect: approvers.Idempotent, Schema: json.RawMessage(`{"type":"object","properties":{"dry_run":{"type":"boolean"}}}`)},
	{Name: "look", Effect: approvers.ReadOnly, Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"number"},"dry_run":{},"mode":{},"force":{}},"required":["order"]}`)},
	{Name: "narrow", Effect: approvers.ReadOnly, Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}},"additionalProperties":false}`)},
	{Name: "wants_more", Effect: approvers.ReadOnly, Schema: json.RawMessage(`{"type":"object","properties":{"customer":{"type":"string"}},"required":["customer"]}`)},
	{Name: "any", Effect: approvers.ReadOnly, Schema: json.RawMessage(`{"type":"object","additionalProperties":true}`)},
	{Name: "gated_look", Effect: approvers.ReadOnly},
	{Name: "ruled_look", Effect: approvers.ReadOnly},
}

const previewRest = `
  look: {risk: low}
  narrow: {risk: low}
  wants_more: {risk: low}
  any: {risk: low}
  gated_look: {risk: medium, confirm: true}
  ruled_look: {risk: low, rules: [{when: "args.order == 'x'", confirm: true}]}
approvers:
  lead: {members: [U0001], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], tools: ["*"]}
`

// previewFindings has previews of a tool, and the expected finding about each preview. An empty text means that there
// is no finding.
var previewFindings = []struct{ tool, preview, says, severity string }{
	{"refund", "{tool: look}", "", ""},
	{"refund", "{tool: any, within: 10s}", "", ""},
	{"pay", "{dry_run: dry_run}", "", ""},
	{"refund", "{tool: lok}", "there is no tool lok", "error"},
	{"refund", "{tool: pay}", "pay is not declared to only read (its effect is idempotent)", "error"},
	{"refund", "{tool: gated_look}", "gated_look does not run without asking: it is medium risk and confirmed", "error"},
	{"refund", "{tool: ruled_look}", "ruled_look does not run without asking", "error"},
	{"refund", "{tool: wants_more}", "wants_more needs the argument customer, which refund does not have: no preview would ever be made", "warning"},
	{"refund", "{tool: narrow}", "narrow does not take the argument amount of refund: calls that have it get no preview", "warning"},
	{"refund", "{dry_run: dry_run}", "refund is called for previews without approval, and only its own dry_run keeps it from acting, which Countersign can't verify", "warning"},
	{"refund", "{dry_run: {mode: simulate}}", "only its own mode keeps it from acting", "warning"},
	{"refund", "{dry_run: {mode: rehearse}}", `the schema of refund does not say that mode can be "rehearse"`, "error"},
	{"refund", "{dry_run: force}", "the schema of refund does not say that force can be true", "error"},
	{"refund", "{dry_run: dryrun}", "refund has no argument dryrun, so nothing would keep it from acting", "error"},
}

// TestCheckPreviews checks that check reports an error for a preview tool that can't preview the call.
// TestCheckPreviews also checks the warning about a dry run. check warns because only the policy's author claims that
// a dry run has no effect.
func TestCheckPreviews(t *testing.T) {
	for _, c := range previewFindings {
		f := parse(t, "version: 1\ntools:\n  "+c.tool+": {risk: high, preview: "+c.preview+"}"+previewRest)
		found := check.Run(f, previewing)
		said := false
		for _, p := range found {
			said = said || c.says != "" && strings.Contains(p.Message, c.says) && p.Hint != "" && strings.EqualFold(c.severity, p.Severity.String())
			if c.says == "" && strings.Contains(p.Message, "preview") {
				t.Errorf("%s: %s", c.preview, p.Message)
			}
		}
		if c.says != "" && !said {
			t.Errorf("%s:\nwant %s: %s\n got %s", c.preview, c.severity, c.says, found.Excerpts())
		}
		if none := check.Run(f, nil); len(none.Errors()) > 0 && !strings.Contains(c.says, "without asking") {
			t.Errorf("%s, of tools that are not known: %s", c.preview, none.Excerpts())
		}
	}
}

// TestPreviewForms checks that each form of preview in a policy is read correctly.
func TestPreviewForms(t *testing.T) {
	for _, c := range []struct {
		written string
		by      approvers.PreviewSource
		text    string
		none    bool
	}{
		{"true", approvers.PreviewSource{}, "", false},
		{"false", approvers.PreviewSource{}, "", true},
		{"Refund", approvers.PreviewSource{}, "Refund", false},
		{"{text: Refund}", approvers.PreviewSource{}, "Refund", false},
		{"{tool: shop.look}", approvers.PreviewSource{Tool: "shop.look"}, "", false},
		{"{text: Refund, tool: look, within: 3s}", approvers.PreviewSource{Tool: "look", Within: 3 * time.Second}, "Refund", false},
		{"{dry_run: dry_run}", approvers.PreviewSource{Argument: "dry_run", Value: json.RawMessage("true")}, "", false},
		{"{dry_run: {mode: simulate}}", approvers.PreviewSource{Argument: "mode", Value: json.RawMessage(`"simulate"`)}, "", false},
		{"{dry_run: {apply: false}, within: 30s}", approvers.PreviewSource{Argument: "apply", Value: json.RawMessage("false"), Within: 30 * time.Second}, "", false},
		{"{dry_run: {level: 0}}", approvers.PreviewSource{Argument: "level", Value: json.RawMessage("0")}, "", false},
	} {
		f := parse(t, "version: 1\ntools: {x: {risk: high, preview: "+c.written+"}}\n")
		got := f.Policy.Tools[0]
		by := got.Preview.By
		if by.Tool != c.by.Tool || by.Argument != c.by.Argument || string(by.Value) != string(c.by.Value) || by.Within != c.by.Within || got.Preview.Text != c.text || got.NoPreview != c.none || got.WithPreview == c.none ||
			(got.Preview.Render != nil) != (c.text != "") || by.Enabled() != (c.by.Tool+c.by.Argument != "") {
			t.Errorf("%s: %+v", c.written, got)
		}
	}
}
