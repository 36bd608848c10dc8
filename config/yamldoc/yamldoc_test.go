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

// TestHide checks that excerpts mask a hidden value, also in problems that were found before. The position of a problem
// stays the same.
func TestHide(t *testing.T) {
	for text, want := range map[string]string{
		"{name: hush, wait: 3}":     "{name: ****, wait: 3}",
		"{name: 'hu''sh', wait: 3}": "{name: ********, wait: 3}",
		"{name: 4711, wait: 3}":     "{name: ****, wait: 3}",
		"name: hush # why\nwait: 3": "name: **** # why",
		"{name: hu\n  sh, wait: 3}": "{name: **",
		"{wait: 3, name: hush}":     "{wait: 3, name: ****}",
		"a: &x hush\nname: *x":      "a: &x ****",
	} {
		doc, root, ok := yamldoc.Parse("f.yaml", "docs/policy.md", []byte(text))
		if !ok {
			t.Fatalf("%q is not read", text)
		}
		v := root.Fields("name", "wait", "a")["name"]
		v.Wrong("before", "")
		v.Hide()
		v.Wrong("after", "")
		problems := doc.Problems()
		if len(problems) != 2 || problems[0].Source != want || problems[1].Source != want || problems[0].Column != problems[1].Column {
			t.Errorf("%q: %q", text, problems)
		}
	}
}

// TestTabs checks that a text without quotation marks keeps its tabs. A tab beside a text is a blank.
func TestTabs(t *testing.T) {
	for text, want := range map[string]string{
		"a: x\ty\n":                "x\ty",
		"a: x \t y # c\n":          "x \t y",
		"a:\tx\t# c\n":             "x",
		"a: x\ty\t\n":              "x\ty",
		"a: 1\t2\n":                "1\t2",
		"a: true\tfalse\n":         "true\tfalse",
		"a: x\ty\n  z\tz\n\n  w\n": "x\ty z\tz\nw",
		"{a: x\ty}\n":              "x\ty",
		"{a: [\tx], b: y}\n":       "x",
		"a: 'x\ty'\n":              "x\ty",
		"a: |\n  x\ty\n":           "x\ty\n",
		"a: >-\n  x\ty\n":          "x\ty",
		"a: &n x\ty\nb: *n\n":      "x\ty",
	} {
		doc, root, ok := yamldoc.Parse("f.yaml", "docs/policy.md", []byte(text))
		if !ok {
			t.Errorf("%q: %v", text, doc.Problems())
			continue
		}
		v := root.Fields("a", "b")["a"]
		if v.IsList() {
			items, _ := v.List("x")
			v = items[0]
		}
		if got, ok := v.Text("x"); !ok || got != want {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

// TestTabsDoNotHideErrors checks that a tab in a text, or below a syntax error, is not reported instead of the error.
func TestTabsDoNotHideErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: {b: c\nd:\n  e: |\n    make:\n    \tall: x\n":                              "f.yaml:2:1: the brace { is never closed",
		"d:\n  e: |\n    make:\n    \tall: x\n  f: >- # c\n    x\n    \ty\na: {b: c\n": "f.yaml:8:4: the brace { is never closed",
		"a:\n\tb: c\nd:\n\te: f\n":                                                     "f.yaml:2:1: the line is indented by a tab",
	} {
		doc, _, ok := yamldoc.Parse("f.yaml", "docs/policy.md", []byte(text))
		if problems := doc.Problems(); ok || len(problems) == 0 || !strings.HasPrefix(problems[0].Error(), want) {
			t.Errorf("%q: %v, want %s", text, doc.Problems(), want)
		}
	}
}

// TestMergedPositions checks that a mapping's own value keeps its position if a merged mapping has the same key.
func TestMergedPositions(t *testing.T) {
	doc, root, _ := yamldoc.Parse("f.yaml", "docs/policy.md", []byte("a: &a {risk: 1}\nb: &b {risk: 2, wait: 3}\npay:\n  risk: 4\n  <<: [*a, *b]\nget: {<<: [*a, *b]}\n"))
	f := root.Fields("a", "b", "pay", "get")
	for _, key := range []string{"pay", "get"} {
		f[key].Fields("risk", "wait")
		for _, name := range []string{"risk", "wait"} {
			f[key].Below(name).Wrong("here", "")
		}
	}
	var got []string
	for _, p := range doc.Problems() {
		got = append(got, strings.TrimPrefix(strings.TrimSuffix(p.Error(), ": here"), "f.yaml:"))
	}
	want := []string{"1:14: get.risk", "2:23: pay.wait", "2:23: get.wait", "4:9: pay.risk"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLeadingZeros checks that a number is refused if YAML reads it with another base than people do.
func TestLeadingZeros(t *testing.T) {
	for text, want := range map[string]int{"100": 100, "07": 7, "00": 0, "0": 0, "0x10": 16, "0100": -1, "010": -1} {
		doc, root, _ := yamldoc.Parse("f.yaml", "docs/policy.md", []byte("n: "+text))
		n, ok := root.Fields("n")["n"].Whole(0, 1000)
		refused := doc.Problems().Err() != nil && strings.Contains(doc.Problems().Error(), "in YAML, because of the zero; write ")
		if want >= 0 && (!ok || n != want) || want < 0 && (ok || !refused) {
			t.Errorf("%s: %d, %v", text, n, doc.Problems())
		}
	}
}

// TestOneLongLine checks that the time for a file with one line does not grow with the square of its length: the
// position of a character in a line is found without reading the rest of the line.
func TestOneLongLine(t *testing.T) {
	const n = 300
	_, root, _ := yamldoc.Parse("f.yaml", "docs/policy.md", []byte("["+strings.Repeat(`"args.a == 1", `, n)+"]"))
	items, _ := root.List("x")
	allocated := testing.AllocsPerRun(1, func() {
		for i, item := range items {
			text, _ := item.Text("x")
			if got := item.TextMarks(text); len(got) != len(text)+1 || i > 0 && got[0] == got[1] {
				t.Fatalf("%d: %v", i, got)
			}
		}
	})
	if perText := allocated / n; perText > 5 {
		t.Errorf("%.1f allocations for each text", perText)
	}
}
