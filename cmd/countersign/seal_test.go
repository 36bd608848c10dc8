package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

// Everything that the bot recorded is sealed when it has stopped, and the heads are in the file beside the store.
func TestBotSeals(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	beside := config.AuditBeside(filepath.Join(dir, "countersign.db"))
	db, err := openStore(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(r store.Reader) error {
		last, err := r.LastHead()
		if err != nil {
			return err
		}
		left, err := r.Journal(last.Size, 10)
		if last.Size == 0 || len(left) > 0 {
			t.Errorf("head %d covers %d records, and %d are not sealed", last.Number, last.Size, len(left))
		}
		if n := headNumbers(t, readText(t, beside.Heads)); uint64(len(n)) != last.Number {
			t.Errorf("the file has %d heads of %d", len(n), last.Number)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	out.Reset()
	if err := printSealKeys(&out, beside.Key); err != nil || !strings.HasPrefix(out.String(), "countersign-") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// headNumbers are the numbers of the heads that a text holds.
func headNumbers(t *testing.T, text string) (numbers []uint64) {
	t.Helper()
	heads, faults := approvers.KeptHeads(text)
	if len(faults) > 0 {
		t.Errorf("%v in\n%s", faults, text)
	}
	for _, h := range heads {
		head, err := approvers.ReadHead(h.Note)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, head.Number)
	}
	return numbers
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
