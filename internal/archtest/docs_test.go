package archtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	codeFence = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// The function "pages" lists the Markdown files of the repository's top level and of docs, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			page, err := filepath.Rel(root(t), file)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, filepath.ToSlash(page))
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d pages were found: %v", len(found), found)
	}
	return found
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, h := range mdHeading.FindAllStringSubmatch(codeFence.ReplaceAllString(text, ""), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(strings.ReplaceAll(h[1], "`", "")), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}

// TestLinks checks that every relative link of the documentation leads to an existing file. If a link has an anchor,
// the file must have a heading with this anchor.
func TestLinks(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text := codeSpan.ReplaceAllString(codeFence.ReplaceAllString(readPage(t, page), ""), "")
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			if _, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readPage(t, target)), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", page, m[1], target)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// TestContents checks that docs/README.md lists every page of docs exactly once.
func TestContents(t *testing.T) {
	contents := readPage(t, "docs/README.md")
	_, lists, _ := strings.Cut(contents, "\n## ")
	for _, page := range pages(t) {
		name, ok := strings.CutPrefix(page, "docs/")
		if !ok || name == "README.md" {
			continue
		}
		if n := strings.Count(lists, "]("+name+")"); n != 1 {
			t.Errorf("docs/README.md lists %s %d times", name, n)
		}
	}
}

// TestLineLength checks that the lines of the documentation have at most 120 columns. Tables, code and lines of one
// unbreakable word are exceptions.
func TestLineLength(t *testing.T) {
	for _, page := range pages(t) {
		fenced := false
		for i, line := range strings.Split(readPage(t, page), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || utf8.RuneCountInString(line) <= 120 {
				continue
			}
			if strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s:%d has %d columns", page, i+1, utf8.RuneCountInString(line))
			}
		}
	}
}

// TestNamedTestsExist finds tests that a page names but that do not exist, for example after a rename. If a page names
// TestScenarios/NAME, the scenario NAME must exist.
func TestNamedTestsExist(t *testing.T) {
	declared := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	err := filepath.WalkDir(root(t), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			declared[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w*)(?:/([\\w-]+))?`")
	for _, page := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(readPage(t, page), -1) {
			if !declared[m[1]] {
				t.Errorf("%s names %s, and there is no such test", page, m[0])
			}
			if m[1] != "TestScenarios" || m[2] == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(root(t), "cmd/countersign/testdata/scenarios", m[2]+".txt")); err != nil {
				t.Errorf("%s names %s: %v", page, m[0], err)
			}
		}
	}
}

// TestNamedRuns finds commands such as `go test ./bot -run Click` on a page that would run no test. A command that names
// one script (Scripts/NAME) needs a script of this name.
func TestNamedRuns(t *testing.T) {
	run := regexp.MustCompile("`(?:[A-Z_]+=(?:\"[^\"]*\"|\\S+) )*go (?:-C (\\S+) )?test (?:\\./)?(\\S*?) ?-run '?([^' `]+)'?[^`]*`")
	declared := regexp.MustCompile(`(?m)^func (Test\w*)\(`)
	runs := 0
	for _, page := range pages(t) {
		for _, m := range run.FindAllStringSubmatch(strings.ReplaceAll(readPage(t, page), "\n", " "), -1) {
			runs++
			if m[3] == "^$" { // a benchmark
				continue
			}
			dir := filepath.Join(root(t), filepath.FromSlash(m[1]), filepath.FromSlash(m[2]))
			test, script, _ := strings.Cut(strings.ReplaceAll(m[3], `\|`, "|"), "/")
			files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range declared.FindAllStringSubmatch(string(text), -1) {
					found = append(found, d[1])
				}
			}
			for part := range strings.SplitSeq(test, "|") {
				if !slices.ContainsFunc(found, regexp.MustCompile(part).MatchString) {
					t.Errorf("%s: %s runs no test for %s", page, m[0], part)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "testdata/script", script+".txtar")); test == "Scripts" && script != "" && err != nil {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
		}
	}
	if runs < 30 {
		t.Errorf("only %d commands were found", runs)
	}
}

// TestNamedCode finds names of code that do not exist, for example after a rename. CONTRIBUTING.md names code together
// with its file, as in `Workflow.Workers` (`jobs.go`). A file with this name must declare the name.
func TestNamedCode(t *testing.T) {
	files := map[string]string{}
	err := filepath.WalkDir(root(t), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(path)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(?:\\w+\\.)?(\\w+)`\\s+\\(`([\\w/]+\\.go)`").FindAllStringSubmatch(readPage(t, "CONTRIBUTING.md"), -1)
	if len(named) < 20 {
		t.Fatalf("only %d names with a file were found: %q", len(named), named)
	}
	for _, m := range named {
		declares := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|var |const |type |\t)` + m[1] + `\b`)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(path string) bool { return strings.HasSuffix(path, "/"+m[2]) && declares.MatchString(files[path]) }) {
			t.Errorf("CONTRIBUTING.md names %s in %s, and no file of this name declares it", m[1], m[2])
		}
	}
}
