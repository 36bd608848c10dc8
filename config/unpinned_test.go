package config_test

import (
	"testing"

	"countersign/approvers"
	"countersign/config"
)

func TestUnpinnedTools(t *testing.T) {
	for text, want := range map[string]approvers.Unpinned{
		"version: 1\n": approvers.UnpinnedBlocked,
		"version: 1\ndefaults: {unpinned_tools: block}\n":   approvers.UnpinnedBlocked,
		"version: 1\ndefaults: {unpinned_tools: unknown}\n": approvers.UnpinnedUnknown,
	} {
		f, err := config.ParsePolicy("p.yaml", []byte(text))
		if err != nil || f.Policy.Defaults.UnpinnedTools != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
