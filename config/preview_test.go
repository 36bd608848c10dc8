package config_test

import (
	"testing"

	"countersign/config"
)

// TestPreviewTrue checks that preview: true asks the tool for a preview, and that false and a missing key don't.
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
