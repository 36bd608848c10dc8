package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/approvers"
	"countersign/config"
)

// TestPrompts checks that suggested prompts are read unchanged. A prompt that Slack would not show is reported with its
// position.
func TestPrompts(t *testing.T) {
	f := parse(t, `
version: 1
agents:
  one: {tools: ["*"], prompts: [{title: Find, message: "Where is it?"}, {title: Refund, message: Refund it}]}
`)
	want := []approvers.Prompt{{Title: "Find", Message: "Where is it?"}, {Title: "Refund", Message: "Refund it"}}
	if diff := cmp.Diff(want, f.Policy.Agents[0].Prompts); diff != "" {
		t.Error(diff)
	}
	one := "{title: a, message: b}"
	for text, says := range map[string]string{
		"[" + strings.Repeat(one+", ", 4) + one + "]": "has 5 prompts; Slack shows 4",
		"[{title: a}]": "message is missing",
		"[{title: " + strings.Repeat("界", 76) + ", message: b}]":   "is longer than 75 characters",
		"[{title: a, message: " + strings.Repeat("x", 1001) + "}]": "is longer than 1000 characters",
		"{title: a, message: b}":                                   "write a list",
		"[{title: a, message: b, icon: c}]":                        "is not a key that belongs here",
	} {
		_, err := config.ParsePolicy("p.yaml", []byte("version: 1\nagents:\n  one: {tools: [\"*\"], prompts: "+text+"}\n"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v; want %q", text, err, says)
		}
	}
}
