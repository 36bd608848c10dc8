package policyfile

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/agent/pins"
	"countersign/cmd/countersign/cli"
)

// The source loads a changed file when its content has stopped changing. The log reports an invalid file once.
func TestPolicyFileWatched(t *testing.T) {
	one, other := []byte(replicaPolicy("U0002, U0003")), []byte(replicaPolicy("U0002, U0004")) // with two approvers, there is no warning
	tools := refunds(t)
	path := filepath.Join(t.TempDir(), "countersign.yaml")
	write(t, path, one)
	var said bytes.Buffer
	s, err := Open(path, tools, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := s.Tools.Policy().Hash
	step := func(name string, data []byte, changed, shown bool, lines int) {
		t.Helper()
		if data == nil {
			os.Remove(path)
		} else {
			write(t, path, data)
		}
		said.Reset()
		if got, err := s.readFiles(t.Context(), false); err != nil || got != changed {
			t.Errorf("%s: changed %t, want %t (error %v)", name, got, changed, err)
		}
		if n := strings.Count(said.String(), "\n"); n != lines {
			t.Errorf("%s: %d lines in the log, want %d:\n%s", name, n, lines, said.String())
		}
		if got := s.State(t.Context()) != nil; got != shown {
			t.Errorf("%s: a refusal is shown: %t, want %t", name, got, shown)
		}
	}
	step("nothing happened", one, false, false, 0)
	step("half of it is written", other[:len(other)/2], false, false, 0)
	step("all of it is written", other, false, false, 0)
	step("it has stopped changing", other, true, false, 1)
	second := s.Tools.Policy().Hash
	if first == second {
		t.Error("the same policy is in force")
	}
	broken := []byte("version: 1\ntool: {}\n")
	step("broken", broken, false, false, 0)
	step("still broken", broken, false, true, 2)
	step("as broken as before", broken, false, true, 0)
	step("gone", nil, false, true, 0)
	step("still gone", nil, false, true, 2)
	step("as gone as before", nil, false, true, 0)
	step("there again", other, false, false, 1)
	if s.Tools.Policy().Hash != second {
		t.Error("another policy is in force than the last good one")
	}
	write(t, path, one)
	if changed, err := s.readFiles(t.Context(), true); err != nil || !changed || s.Tools.Policy().Hash != first {
		t.Error("asked to, it did not take the file up immediately")
	}
	write(t, pins.Beside(path), []byte("{"))
	if _, err := Open(path, tools, s.log); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), pins.FileName) {
		t.Errorf("with a broken lock file: %v (code %d)", err, cli.Code(err))
	}
}
