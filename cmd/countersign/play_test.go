package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The lesson's exercise: run at once, previewed and run, approved, rejected with an alternative offered.
func TestPlayExercise(t *testing.T) {
	var out bytes.Buffer
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", play: builtIn, noBrowser: true}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{
		"  search_orders ran without asking",
		"  update_shipping_address ran without asking: Ship ORD-123 to 12 Elm Street, Springfield",
		"  issue_refund waits for team-lead: Refund of $49.99 for order ORD-123",
		"  issue_refund was approved by Teo (team-lead) and done",
		"  cancel_account was rejected by Ingrid (finance-director): cancelling can't be undone",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the transcript lacks %q:\n%s", line, out.String())
		}
	}
}

// A scenario whose file expects something else ends with exit code 1 and shows the difference.
func TestPlayDiffers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.txt")
	text := "Sam in #support: @Countersign where is order ORD-123?\n  issue_refund ran without asking\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", play: file, noBrowser: true}, &out)
	if exitCode(err) != exitNo {
		t.Errorf("exit code %d (%v), want %d", exitCode(err), err, exitNo)
	}
	if !strings.Contains(out.String(), "! search_orders ran without asking\n  expected: issue_refund ran without asking\n") {
		t.Errorf("the difference is not shown:\n%s", out.String())
	}
}

func TestScenarioErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "# only words\n", "nobody does anything"},
		{"no place", "Sam: hello\n", "has to say where"},
		{"expectation first", "  hello\n", "before anybody did anything"},
		{"no reason", "Sam in #support: hi\nTeo rejects issue_refund\n", "needs a reason"},
		{"no change", "Sam in #support: hi\nTeo modifies issue_refund: less\n", "say what is changed"},
		{"no sense", "Sam in #support: hi\nTeo dances\n", "is none of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseScenario("s.txt", c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != exitUsage {
				t.Errorf("error %v (code %d), want one with %q and code %d", err, exitCode(err), c.want, exitUsage)
			}
		})
	}
}

// Ctrl-C in the middle of a play is no success.
func TestPlayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := demo(ctx, demoOptions{addr: "127.0.0.1:0", play: builtIn, noBrowser: true}, &out); err == nil {
		t.Errorf("an interrupted play ended well:\n%s", out.String())
	}
}

// Journeys that read like Slack threads, one per file.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", play: file, noBrowser: true}, &out); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
