package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/config"
	"countersign/config/yamldoc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares the messages about a file with the golden file beside it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	path = strings.TrimSuffix(path, ".yaml") + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the messages differ from %s (-want +got; run with -update if they should):\n%s", path, diff)
	}
}

// TestBadFiles checks that each file in testdata/bad is refused, with every error at its position.
func TestBadFiles(t *testing.T) {
	for _, path := range files(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = config.ParsePolicy("countersign.yaml", data)
			var problems yamldoc.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("the file was taken: %v", err)
			}
			for _, p := range problems {
				if p.Message == "" {
					t.Errorf("a problem without a message: %+v", p)
				}
				if p.Hint == "" {
					t.Errorf("it does not say what to write: %v", p)
				}
			}
			golden(t, path, problems.Excerpts()+"\n")
		})
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no files like %s: %v", pattern, err)
	}
	return found
}
