package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestEveryTaskIsListed counts the tasks that the commands declare, and compares the count with the tasks that a
// running bot accepts. A bot refuses a task that is missing in the function tasks, as if the command had another
// version.
func TestEveryTaskIsListed(t *testing.T) {
	declared := 0
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			declared += len(regexp.MustCompile(`= (task\.)?Task\[[\w.]+\]\{\s*Name: `).FindAll(text, -1))
		}
	}
	var names []string
	for _, listed := range tasks() {
		names = append(names, listed.Named())
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != declared || len(names) != declared {
		t.Errorf("%d tasks are declared; tasks has %d: %q", declared, len(names), names)
	}
}
