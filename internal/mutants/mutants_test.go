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

// TestMutantsFit checks that each mutant can be made from the current code.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) { m.overlay(t) })
	}
}

// The method "noticed" returns the campaign that noticed the mutant, and the name of a test that failed.
func (m mutant) noticed(t *testing.T) (by campaign, failed string) {
	t.Helper()
	overlay := m.overlay(t)
	for _, c := range m.by {
		args := []string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=4m", "-run", c.run, c.pkg}
		if c.rapid {
			args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1s", "-rapid.checks=100")
		}
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = top
		cmd.Env = append(append(plainEnv(), "TMPDIR="+t.TempDir()), c.env...) // a separate temporary directory, because a test that never ends is killed and leaves its files behind
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
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

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

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
