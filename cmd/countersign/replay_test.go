package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policycmd"
	"countersign/internal/testkit"
)

// Every call in a history becomes one fixture, with its plan and the people whose messages led to it. One of the calls
// was planned to run automatically, but exceeded the automatic limit. This call went to people.
func TestStoredFixtures(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	db := played(t, filepath.Join(pageFiles(t), "week.txt"))
	calls, err := policycmd.StoredFixtures(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range calls {
		if x.Agent != "support" || x.Channel != "C0001" || x.DM || x.Line != 0 {
			t.Errorf("%+v", x)
		}
		got = append(got, fmt.Sprintf("%s by %v, with %v: %s, %s, %v", x.Tool, x.Requesters, x.Authors, x.Expect.Verdict, x.Expect.Risk, x.Expect.Who))
	}
	want := []string{
		"issue_refund by [U0100], with [U0100]: ask, high, [team-lead]",
		"issue_refund by [U0100], with [U0100]: ask, high, [team-lead]",
		"search_orders by [U0002], with [U0002]: auto, low, []",
		"issue_refund by [U0100], with [U0002 U0100]: ask, high, [finance-director]",
		"update_shipping_address by [U0100], with [U0002 U0100]: auto, medium, []",
		"update_shipping_address by [U0100], with [U0002 U0100]: auto, medium, []",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// replaysAsPlanned replays the history of a scenario under the policy with which it was played. If the policy did not
// change during the scenario, every call must get its original plan.
func replaysAsPlanned(t *testing.T, dir, played string) {
	t.Helper()
	script, err := readScript(played)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(played); err == nil && strings.Contains(string(text), "\nThe policy becomes ") {
		return
	}
	policy := script.Policy
	if policy == "" {
		policy = "demo.yaml"
	}
	db, err := openstore.File(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	calls, err := policycmd.StoredFixtures(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) == 0 {
		return
	}
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "countersign.yaml")
	write(t, path, append(text, shopEntry...))
	pinShop(t, path)
	check := policycmd.Check(func(_ context.Context, out io.Writer) error { return json.NewEncoder(out).Encode(calls) })
	var out bytes.Buffer
	check.SetOut(&out)
	check.SetArgs([]string{path, "--replay", "stored"})
	if err := check.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%d calls, %v\n%s", len(calls), err, out.String())
	}
}

// The command summarizes the calls in the mode observe. In this mode, read-only calls run, so the summary does not
// include them.
func TestExplainObserved(t *testing.T) {
	t.Parallel()
	db := played(t, "testdata/scenarios/observe.txt")
	all, err := audit.ReadObserved(t.Context(), db, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Tool != "issue_refund" || all[0].N != 1 || all[0].Would != string(approvers.Ask) || all[0].Stages != "team-lead,2 x finance-director" {
		t.Errorf("seen: %+v", all)
	}
	var out bytes.Buffer
	printObserved(&out, all)
	if !strings.HasSuffix(out.String(), "\n1 call observed; people would have been asked about 1 of them. None of them ran.\n") {
		t.Errorf("it prints\n%s", out.String())
	}
	if later, err := audit.ReadObserved(t.Context(), db, time.Now().Add(time.Hour)); err != nil || len(later) != 0 {
		t.Errorf("an hour from now on: %+v (%v)", later, err)
	}
}

// A replay of the history leaves out calls with damaged rows. The command fails, and its error names the damaged rows.
func TestReplayGoesPastDamagedRows(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.db")
	pages := pageFiles(t)
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: filepath.Join(pages, "week.txt"), noBrowser: true}, io.Discard); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
	replayed := func() (said string, err error) {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"check", filepath.Join(pages, "countersign.yaml"), "--replay", "stored"})
		err = cmd.ExecuteContext(t.Context())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return lines[len(lines)-1], err
	}
	if said, err := replayed(); err != nil || said != "6 calls: 6 as planned then, 0 not" {
		t.Fatalf("%q, %v", said, err)
	}
	spoil(t, path, "audit", func(c *bbolt.Cursor) (k, v []byte) { return c.Seek([]byte("req_")) })
	spoil(t, path, "calls", (*bbolt.Cursor).Last)
	said, err := replayed()
	if cli.Code(err) != cli.ExitNo || !containsAll(err.Error(), []string{"left out: 2 rows", ": record 1 is damaged", "calls, row "}) {
		t.Errorf("it ends with %v", err)
	}
	if said != "4 calls: 4 as planned then, 0 not" {
		t.Errorf("it prints %q", said)
	}
}

// spoil changes one byte of a row, but not the row's checksum.
func spoil(t *testing.T, path, bucket string, find func(*bbolt.Cursor) (k, v []byte)) {
	t.Helper()
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, v := find(b.Cursor())
		v = bytes.Clone(v)
		v[len(v)/2] ^= 1
		return b.Put(bytes.Clone(k), v)
	})
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
}
