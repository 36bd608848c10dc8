package yamldoc_test

import (
	"slices"
	"strings"
	"testing"

	"countersign/config/yamldoc"
)

// TestProblemsHavePlaces checks that every problem has its position, and that no problem hides another one.
func TestProblemsHavePlaces(t *testing.T) {
	doc, root, ok := yamldoc.Parse("f.yaml", "docs/policy.md", []byte("name: 5\nwiat: 3m\nwait: 3\nlist: [1, two]\n"))
	if !ok {
		t.Fatal(doc.Problems())
	}
	f := root.Fields("name", "wait", "list")
	f.Free("name", "a name")
	f["wait"].DurationOr("")
	items, _ := f["list"].List("[1, 2]")
	for _, item := range items {
		item.Whole(1, 9)
	}
	want := []string{
		"f.yaml:1:7: name: 5 is not text in YAML; ", "f.yaml:2:1: wiat: is not a key that belongs here; did you mean wait?",
		"f.yaml:3:7: wait: 3 has no unit; ", `f.yaml:4:11: list[1]: "two" is not possible; `,
	}
	got := doc.Problems()
	if !slices.EqualFunc(got, want, func(p yamldoc.Problem, s string) bool { return strings.HasPrefix(p.Error(), s) }) {
		t.Errorf("got:\n%v", got)
	}
}

// TestTextMarks checks that the position of each character of a text is found, even if the text has escapes and line
// breaks.
func TestTextMarks(t *testing.T) {
	for text, want := range map[string]string{
		"when: abc":                "1:9",
		`when: "a\"c"`:             "1:11",
		"when: 'a''c'":             "1:11",
		"when: |\n  a\n  c":        "3:3",
		"when: a\n  b c":           "2:5",
		`when: "\x61bc and more"`:  "1:7", // TextMarks does not read this escape, so the position is that of the whole text
		"when:\n  - abc":           "",
		"other: abc":               "",
		"when: {a: b}":             "",
		"when: !!str abc\nb: abc":  "",
		"when: &x abc\nother: *x":  "1:12",
		"when:    abc   # comment": "1:12",
	} {
		_, root, ok := yamldoc.Parse("f.yaml", "docs/policy.md", []byte(text))
		if !ok {
			t.Errorf("%q is not read", text)
			continue
		}
		v, found := root.Fields("when", "other", "b")["when"]
		if !found || !v.IsText() {
			if want != "" {
				t.Errorf("%q has no text", text)
			}
			continue
		}
		written, _ := v.Text("a text")
		p := v.ProblemAt(v.TextMarks(written).Offset(strings.IndexByte(written, 'c')), yamldoc.Error, "x", "")
		if got := strings.TrimPrefix(p.Error(), "f.yaml:"); !strings.HasPrefix(got, want+":") {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
