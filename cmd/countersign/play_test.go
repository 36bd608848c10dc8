package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// The built-in scenario has two calls that run without approval, one of them with a preview. A third call is approved,
// and a fourth call is rejected with an alternative. The transcript is the same over both transports.
func TestPlayExercise(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for _, way := range []config.Transport{config.SocketMode, config.HTTPMode} {
		t.Run(string(way), func(t *testing.T) { testPlayExercise(t, string(way)) })
	}
}

func testPlayExercise(t *testing.T, transport string) {
	var out bytes.Buffer
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", patience: patience, play: builtIn, noBrowser: true, transport: transport}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{
		"  search_orders ran without asking: Find orders: customer email jane@example.com",
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

// If the transcript differs from the expectations in a scenario, the command ends with exit code 1 and shows the
// difference.
func TestPlayDiffers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.txt")
	text := "Sam in #support: @Countersign where is order ORD-123?\n  issue_refund ran without asking\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", patience: patience, play: file, noBrowser: true}, &out)
	if cli.Code(err) != cli.ExitNo {
		t.Errorf("exit code %d (%v), want %d", cli.Code(err), err, cli.ExitNo)
	}
	if !strings.Contains(out.String(), "! search_orders ran without asking: Find orders: ORD-123\n  expected: issue_refund ran without asking\n") {
		t.Errorf("the difference is not shown:\n%s", out.String())
	}
}

// If Ctrl-C stops a scenario, the command reports a failure.
func TestPlayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := demo(ctx, demoOptions{addr: "127.0.0.1:0", patience: patience, play: builtIn, noBrowser: true}, &out); err == nil {
		t.Errorf("an interrupted play ended well:\n%s", out.String())
	}
}

// The test plays all scenarios in testdata/scenarios. Each file reads like Slack threads. When the calls in the history
// are planned again, the plans are the same.
func TestScenarios(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			testkit.EveryOther(t, "COUNTERSIGN_SCENARIOS", i)
			t.Parallel()
			var out bytes.Buffer
			dir := t.TempDir()
			if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: file, noBrowser: true, transport: usualTransport()}, &out); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			replaysAsPlanned(t, dir, file)
		})
	}
}

// TestScenariosPostgres plays scenarios over PostgreSQL, each in its own schema. It checks the rows and the history of
// each scenario. COUNTERSIGN_SCENARIOS sets the number of scenarios (8 with CI=true). The first eight scenarios are
// chosen so that they test different features.
func TestScenariosPostgres(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".txt"))
	}
	first := []string{"ask-people", "grants", "modify", "parallel", "pause", "stages", "time-expiry", "unknown"}
	for _, name := range first {
		if !slices.Contains(names, name) {
			t.Fatalf("there is no scenario %s", name)
		}
	}
	names = append(first, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(first, name) })...)
	n := min(len(names), testkit.Size(t, "COUNTERSIGN_SCENARIOS", len(first)))
	for _, name := range names[:n] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			address := server.URL("postgres") + "&search_path=" + strings.ReplaceAll(name, "-", "_")
			o := demoOptions{addr: "127.0.0.1:0", patience: patience, data: t.TempDir(), store: address, play: "testdata/scenarios/" + name + ".txt", noBrowser: true, transport: usualTransport()}
			if err := demo(t.Context(), o, &out); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			db, err := postgres.Open(t.Context(), address, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			records, _, err := audit.Filter{}.Records(t.Context(), db)
			err = errors.Join(err, db.Check(t.Context()), auditcmd.Verify(t.Context(), io.Discard, db, audit.VerifyOptions{}))
			if err != nil || len(records) == 0 {
				t.Errorf("%d records, and the check says: %v", len(records), err)
			}
		})
	}
}

// A scenario's time can't go back. The error names the current time.
func TestPlayTimeGoesForward(t *testing.T) {
	file := filepath.Join(t.TempDir(), "back.txt")
	text := "It is Monday 2026-12-21 09:00 Europe/Berlin\nSam in #support: hi\nIt is Monday 2026-12-21 08:00 Europe/Berlin\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := demo(within(t), demoOptions{addr: "127.0.0.1:0", patience: patience, play: file, noBrowser: true}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), ":3: ") || !strings.Contains(err.Error(), "it is Monday 2026-12-21 09:00 already") {
		t.Errorf("error %v", err)
	}
}

// The function "played" returns the store after the demo has played a scenario.
func played(t *testing.T, file string) store.Store {
	t.Helper()
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: file, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	db, err := openstore.File(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
