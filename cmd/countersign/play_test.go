package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/config"
	"countersign/store"
)

// The lesson's exercise: run at once, previewed and run, approved, rejected with an alternative offered. It is the same in both ways of connecting.
func TestPlayExercise(t *testing.T) {
	for _, way := range []config.Transport{config.SocketMode, config.HTTPMode} {
		t.Run(string(way), func(t *testing.T) { testPlayExercise(t, string(way)) })
	}
}

func testPlayExercise(t *testing.T, transport string) {
	var out bytes.Buffer
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", play: builtIn, noBrowser: true, transport: transport}, &out)
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
		{"no reason", "Sam in #support: hi\nTeo rejects issue_refund\n", "say it in full: \"Teo rejects issue_refund: too much\""},
		{"no change", "Sam in #support: hi\nTeo modifies issue_refund: less\n", "name the field"},
		{"no sense", "Sam in #support: hi\nTeo dances\n", "is none of"},
		{"no policy", "Sam in #support: hi\nPolicy: other.yaml\n", "the policy comes first"},
		{"another day", "It is Monday 2026-12-25 09:00 Europe/Berlin\nSam in #support: hi\n", "that day is a Friday"},
		{"no such zone", "It is Friday 2026-12-25 09:00 Berlin\nSam in #support: hi\n", "is not a time such as"},
		{"no such time", "Sam in #support: hi\nIt is late\n", "is not a time such as"},
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

// Journeys that read like Slack threads, one per file. The history of each is planned again as it was.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			dir := t.TempDir()
			if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", data: dir, play: file, noBrowser: true, transport: transport()}, &out); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			replaysAsPlanned(t, dir, file)
		})
	}
}

// Lines that suit several forms are read as the one that is meant.
func TestPressLines(t *testing.T) {
	for text, want := range map[string]press{
		"Teo approves all":                                     {who: "Teo", label: "Approve all"},
		"Teo approves issue_refund: 700":                       {who: "Teo", label: "Approve", tool: "issue_refund", text: "700"},
		"Teo approves issue_refund (ORD-131)":                  {who: "Teo", label: "Approve", tool: "issue_refund", like: "ORD-131"},
		"Teo tries to modify issue_refund: a=1, b=x: y":        {who: "Teo", label: "Modify", tool: "issue_refund", text: "a=1, b=x: y", tries: true},
		"Sam tries to go on":                                   {who: "Sam", label: "Withdraw and go on with this", tries: true},
		"Teo hands issue_refund on to Kenji":                   {who: "Teo", label: "Hand on", tool: "issue_refund", person: "Kenji"},
		"Sam chooses The blue one":                             {who: "Sam", label: "The blue one"},
		"Sam answers: yes: both":                               {who: "Sam", label: "Answer", text: "yes: both"},
		"Teo takes back shop.issue-refund: the wrong order":    {who: "Teo", label: "Take back", tool: "shop.issue-refund", text: "the wrong order"},
		"Sam reports that issue_refund did not happen":         {who: "Sam", label: "It did not", tool: "issue_refund"},
		"Teo allows more issue_refund: uses=5, within=an hour": {who: "Teo", label: "Allow more", tool: "issue_refund", text: "uses=5, within=an hour"},
	} {
		got, err := readPress(text)
		if got.verb = (verb{}); err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", text, got, err, want)
		}
	}
}

// A scenario's time may not go back, and it says what time it is.
func TestPlayTimeGoesForward(t *testing.T) {
	file := filepath.Join(t.TempDir(), "back.txt")
	text := "It is Monday 2026-12-21 09:00 Europe/Berlin\nSam in #support: hi\nIt is Monday 2026-12-21 08:00 Europe/Berlin\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", play: file, noBrowser: true}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), ":3: ") || !strings.Contains(err.Error(), "it is Monday 2026-12-21 09:00 already") {
		t.Errorf("error %v", err)
	}
}

func readPress(text string) (press, error) {
	for _, f := range pressForms {
		if f.match.MatchString(text) {
			return f.read(text)
		}
	}
	return press{}, errors.New("no verb")
}

// played is the store that a scenario leaves behind when the demo plays it.
func played(t *testing.T, scenario string) store.Store {
	t.Helper()
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", data: dir, play: scenario, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	db, err := openStore(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
