//go:build !race

package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The mutants are built only without the race detector, because the race detector would find nothing more.

// mutant is one way to break the product.
type mutant struct {
	name  string
	edits []edit
	by    []campaign // campaigns, tried in this order; at least one must notice the mutant
	first bool       // CI tries it
}

// edit replaces a text that is in a file exactly once.
type edit struct{ file, old, new string }

// campaign is a test that should notice a mutant.
type campaign struct {
	pkg, run string
	env      []string // variables that set the campaign's size, if its short version is too small to notice the mutant
	rapid    bool     // the package's tests use the library rapid, and need flags so that rapid leaves no files behind
}

func (c campaign) String() string {
	return strings.Join(append(slices.Clone(c.env), fmt.Sprintf("go test %s -run '%s'", c.pkg, c.run)), " ")
}

// TestMutants runs the campaigns on each mutant, and prints which campaign noticed the fault. COUNTERSIGN_MUTANTS
// selects the mutants. Its value is "first" (the five most important mutants), "all", or a mutant's name.
func TestMutants(t *testing.T) {
	which := os.Getenv("COUNTERSIGN_MUTANTS")
	if which == "" {
		t.Skip("SKIPPED: broken variants not tried, because each is a build of its own: set COUNTERSIGN_MUTANTS to first, all, or the name of one")
	}
	if which == "first" {
		which = ""
	}
	var table strings.Builder
	began, tried := time.Now(), 0
	for _, m := range mutants {
		if which == "" && !m.first || which != "" && which != "all" && which != m.name {
			continue
		}
		tried++
		t.Run(m.name, func(t *testing.T) {
			begun := time.Now()
			by, says := m.noticed(t)
			fmt.Fprintf(&table, "\n%-60s %-8s %s (%s)", m.name, time.Since(begun).Round(time.Second), by, says)
		})
	}
	t.Logf("mutants=%d in %s%s", tried, time.Since(began).Round(time.Second), table.String())
	if tried == 0 {
		t.Errorf("COUNTERSIGN_MUTANTS is %q, and has to be first, all, or the name of one", which)
	}
}

// TestMutantsFit checks that each mutant can be made from the current code, and that its campaigns name existing tests.
// Only TestMutants knows whether a campaign also runs a subtest.
func TestMutantsFit(t *testing.T) {
	tests := map[string][]string{} // by package
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			m.overlay(t)
			for _, c := range m.by {
				if tests[c.pkg] == nil {
					tests[c.pkg] = testsOf(t, c.pkg)
				}
				name, _, _ := strings.Cut(c.run, "/")
				if !slices.ContainsFunc(tests[c.pkg], regexp.MustCompile(name).MatchString) {
					t.Errorf("%s runs no test", c)
				}
			}
		})
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(raw, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// A campaign whose tests are all skipped, or whose pattern matches no subtest, has not run.
func TestCampaignThatRunsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		run, out string
		ran      bool
	}{
		"a test":                    {"^TestA$", "=== RUN   TestA\n--- PASS: TestA (0.01s)\nPASS\n", true},
		"no test":                   {"^TestA$", "testing: warning: no tests to run\nPASS\n", false},
		"a skipped test":            {"^TestA$", "=== RUN   TestA\n--- SKIP: TestA (0.00s)\nPASS\n", false},
		"one of two tests":          {"^TestA", "=== RUN   TestA\n--- SKIP: TestA (0.00s)\n=== RUN   TestAB\n--- PASS: TestAB (0.00s)\nPASS\n", true},
		"a subtest":                 {"^TestA$", "=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/b (0.01s)\nPASS\n", true},
		"a named subtest":           {"^TestA$/^b", "=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/b (0.01s)\nPASS\n", true},
		"no subtest":                {"^TestA$/^b", "=== RUN   TestA\n--- PASS: TestA (0.01s)\nPASS\n", false},
		"a skipped subtest":         {"^TestA$", "=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.01s)\n    --- SKIP: TestA/b (0.00s)\nPASS\n", false},
		"a skipped named subtest":   {"^TestA$/^b", "=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.01s)\n    --- SKIP: TestA/b (0.00s)\nPASS\n", false},
		"one of two named subtests": {"^TestA$/^b", "=== RUN   TestA\n=== RUN   TestA/b\n=== RUN   TestA/bc\n--- PASS: TestA (0.01s)\n    --- SKIP: TestA/b (0.00s)\n    --- PASS: TestA/bc (0.00s)\nPASS\n", true},
	} {
		if got := (campaign{run: c.run}).ran(c.out); got != c.ran {
			t.Errorf("%s: got %t, want %t", name, got, c.ran)
		}
	}
}

// The method "noticed" returns the campaign that noticed the mutant, and the name of a test that failed.
func (m mutant) noticed(t *testing.T) (by campaign, failed string) {
	t.Helper()
	overlay := m.overlay(t)
	for _, c := range m.by {
		args := []string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-v", "-timeout=4m", "-run", c.run, c.pkg}
		if c.rapid {
			args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1s", "-rapid.checks=100")
		}
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = top
		cmd.Env = append(append(plainEnv(), "TMPDIR="+t.TempDir()), c.env...) // a separate temporary directory, because a test that never ends is killed and leaves its files behind
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil && !c.ran(string(out)):
			t.Errorf("%s runs no test: the tests are skipped, or have other names", c)
		case err == nil:
			t.Logf("%s does not notice it", c)
		case !errors.As(err, &exit), strings.Contains(string(out), "[build failed]"), strings.Contains(string(out), "[setup failed]"):
			t.Fatalf("the mutant does not build any more, and must be rewritten: %v\n%s", err, out)
		default:
			if found := failedTest.FindAllStringSubmatch(string(out), -1); found != nil {
				return c, found[len(found)-1][1]
			}
			if strings.Contains(string(out), "panic: test timed out") {
				return c, "it never ends"
			}
			t.Fatalf("%s ended with %v, and names no test that failed:\n%s", c, err, out)
		}
	}
	t.Errorf("nobody notices that %s", m.name)
	return campaign{}, ""
}

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	passedTest = regexp.MustCompile(`(?m)^ *--- PASS: (\S+)`)
)

// ran reports whether a test that the campaign names passed, according to the output of go test -v. A test with
// subtests counts only through its subtests, because it also passes if all of them are skipped.
func (c campaign) ran(out string) bool {
	return slices.ContainsFunc(passedTest.FindAllStringSubmatch(out, -1), func(m []string) bool {
		return strings.Count(m[1], "/") >= strings.Count(c.run, "/") && !strings.Contains(out, "=== RUN   "+m[1]+"/")
	})
}

// plainEnv returns the environment without the sizes and seeds of campaigns.
func plainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "COUNTERSIGN_") })
}

// top is the module's root.
const top = "../.."

// overlay writes the changed files and the JSON file that go build -overlay reads.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	changed := map[string]string{} // text by file
	for _, e := range m.edits {
		path, err := filepath.Abs(filepath.Join(top, e.file))
		if err != nil {
			t.Fatal(err)
		}
		text, ok := changed[path]
		if !ok {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("the mutant has to be written again: %s has this text %d times, and not once:\n%s", e.file, n, e.old)
		}
		changed[path] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for path, text := range changed {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
