package agent

import (
	"os"
	"strings"
	"testing"
)

// TestDocsShowTheExample checks that every Go program in docs/tools.md is a part of the tested example.
func TestDocsShowTheExample(t *testing.T) {
	docs, err := os.ReadFile("../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(docs), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("docs/tools.md has no Go program: the test reads the wrong file")
	}
	for _, block := range blocks {
		block, _, _ := strings.Cut(block, "```")
		for part := range strings.SplitSeq(strings.TrimSpace(block), "\n\n") {
			if !strings.Contains(string(example), part) {
				t.Errorf("agent/example_test.go does not have:\n%s", part)
			}
		}
	}
	for _, tag := range known {
		if !strings.Contains(string(docs), "`"+tag+`:"`) {
			t.Errorf("docs/tools.md does not explain the tag %s", tag)
		}
	}
	for _, format := range formats {
		if !strings.Contains(string(docs), format) {
			t.Errorf("docs/tools.md does not name the format %s", format)
		}
	}
}
