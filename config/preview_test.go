package config_test

import (
	"testing"

	"countersign/approvers"
	"countersign/config"
)

// TestPreviewRefusesWhen checks that refuses_when can read the preview's content and the arguments. A rule can't read
// the preview.
func TestPreviewRefusesWhen(t *testing.T) {
	f, err := config.ParsePolicy("test.yaml", []byte("version: 1\ntools: {look: {risk: low}, a: {risk: low, preview: {tool: look, refuses_when: 'preview.left < args.amount'}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	no := f.Policy.Tools[1].Preview.No
	for _, c := range []struct {
		preview any
		want    bool
		fails   bool
	}{
		{map[string]any{"left": 5.0}, true, false}, {map[string]any{"left": 50.0}, false, false}, {map[string]any{}, false, true}, {"words", false, true}, {nil, false, true},
	} {
		got, err := no.Eval(approvers.Facts{Args: map[string]any{"amount": 10.0}, Preview: c.preview})
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%v: %v, %v", c.preview, got, err)
		}
	}
	if !f.Policy.Tools[1].ReadsNumbers() {
		t.Error("numbers that float64 would change are not refused")
	}
	if _, err := config.ParsePolicy("test.yaml", []byte("version: 1\ntools: {a: {risk: low, rules: [{when: 'preview.left == 1', confirm: true}]}}\n")); err == nil {
		t.Error("a rule can read a preview")
	}
}

// TestPreviewTrue checks that preview: true requires a preview. With preview: false, or without the key, no preview
// is required.
func TestPreviewTrue(t *testing.T) {
	f, err := config.ParsePolicy("test.yaml", []byte("version: 1\ntools: {a: {risk: low, preview: true}, b: {risk: low, preview: false}, c: {risk: low}, d: {risk: low, preview: x}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false, true} {
		tool := f.Policy.Tools[i]
		if tool.WithPreview != want || (tool.Preview.Render != nil) != (tool.Name == "d") {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
}
