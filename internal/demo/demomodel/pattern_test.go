package demomodel

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestPatterns compiles every pattern, because a pattern that can't be compiled panics only when it is used.
func TestPatterns(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	written, n := regexp.MustCompile("\\b(?:re|lazily)\\(`([^`]*)`[,)]"), 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(string(source), -1) {
			n++
			if _, err := regexp.Compile(m[1]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d patterns were found", n)
	}
}
