package config_test

import (
	"testing"

	"countersign/config"
)

// TestPreviewTrue: preview: true asks for one without giving a text; false and nothing ask for none.
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
