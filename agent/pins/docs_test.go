package pins_test

import (
	"os"
	"regexp"
	"testing"

	"countersign/agent/pins"
)

// The lock file in docs/tools.md is valid, byte for byte.
func TestDocumentedLock(t *testing.T) {
	text, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```json\n(\\{\n  \"countersign\".*?\n)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/tools.md shows no lock file")
	}
	l, err := pins.Parse("docs/tools.md", block[1])
	if err != nil || len(l.Pins) == 0 || string(l.Format()) != string(block[1]) {
		t.Errorf("%v: written by itself it is\n%s", err, l.Format())
	}
}
