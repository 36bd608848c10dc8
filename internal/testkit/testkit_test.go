package testkit_test

import (
	"fmt"
	"os"
	"testing"

	"countersign/internal/testkit"
)

// wrong is a testing.TB that records whether a test failed or was skipped.
type wrong struct {
	testing.TB
	ended   bool
	skipped string
}

func (w *wrong) Fatalf(string, ...any)            { w.ended = true }
func (w *wrong) Skipf(format string, args ...any) { w.skipped = fmt.Sprintf(format, args...) }

func TestComponent(t *testing.T) {
	const program = "a-program-that-nobody-has"
	t.Setenv("CI", "true")
	w := &wrong{TB: t}
	if testkit.RequireProgram(w, program, "the page", "install it"); !w.ended {
		t.Error("a missing program does not fail the test where CI runs")
	}
	t.Setenv("CI", "")
	w = &wrong{TB: t}
	testkit.RequireProgram(w, program, "the page", "install it")
	if w.ended || w.skipped != "SKIPPED: the page not tried, because "+program+" is missing: install it" {
		t.Errorf("ended=%v, and it says %q", w.ended, w.skipped)
	}
	w = &wrong{TB: t}
	if path := testkit.RequireProgram(w, "go", "anything", "install Go"); path == "" || w.ended || w.skipped != "" {
		t.Errorf("the go command is not found: %q, %+v", path, w)
	}
}

func TestSize(t *testing.T) {
	const variable = "COUNTERSIGN_CAMPAIGNS"
	for _, tt := range []struct {
		text, ci string
		want     int
	}{{"", "true", 7}, {"", "", 1}, {"1", "true", 1}, {"1", "", 1}, {"10000", "true", 10_000}, {"10000", "", 10_000}} {
		t.Setenv(variable, tt.text)
		t.Setenv("CI", tt.ci)
		if got := testkit.Size(t, variable, 7); got != tt.want && (tt.text != "" || !testkit.RaceEnabled) {
			t.Errorf("%q, with CI=%q: %d, want %d", tt.text, tt.ci, got, tt.want)
		}
	}
	t.Setenv(variable, "")
	t.Setenv("CI", "")
	if got := testkit.Size(t, variable, 1); got != 1 {
		t.Errorf("a quarter of 1 is %d, want 1", got)
	}
	for _, text := range []string{"0", "-1", "many", "1e4"} {
		t.Setenv(variable, text)
		w := &wrong{TB: t}
		if testkit.Size(w, variable, 7); !w.ended {
			t.Errorf("%q is accepted as a size", text)
		}
	}
}

func TestEveryOther(t *testing.T) {
	const variable = "COUNTERSIGN_CAMPAIGNS"
	for _, tt := range []struct {
		text, ci string
		index    int
		skipped  bool
	}{{"", "", 0, false}, {"", "", 1, true}, {"", "true", 1, false}, {"1", "", 1, false}} {
		t.Setenv(variable, tt.text)
		t.Setenv("CI", tt.ci)
		w := &wrong{TB: t}
		if testkit.EveryOther(w, variable, tt.index); (w.skipped != "") != tt.skipped && !testkit.RaceEnabled {
			t.Errorf("%+v: %q", tt, w.skipped)
		}
	}
}

func TestSeed(t *testing.T) {
	t.Setenv(testkit.SeedVariable, "")
	t.Setenv("COUNTERSIGN_CAMPAIGNS", "100")
	testkit.Size(t, "COUNTERSIGN_CAMPAIGNS", 7)
	if testkit.Seed(t) == testkit.Seed(t) {
		t.Error("two long campaigns have one seed")
	}
	t.Setenv(testkit.SeedVariable, "18446744073709551615")
	if got := testkit.Seed(t); got != 1<<64-1 {
		t.Errorf("the seed is %d", got)
	}
	t.Setenv(testkit.SeedVariable, "-1")
	w := &wrong{TB: t}
	if testkit.Seed(w); !w.ended {
		t.Error("-1 is accepted as a seed")
	}
	if a, b := testkit.Chance(1, 1).Uint64(), testkit.Chance(1, 2).Uint64(); a == b || a != testkit.Chance(1, 1).Uint64() {
		t.Error("a stream is not repeatable, or equals another one")
	}
}

// TestTempInMemory checks which variables make the tests use a disk. In the checks of a pull request, a variable names
// a file, and the tests must nevertheless run in memory.
func TestTempInMemory(t *testing.T) {
	t.Setenv("TMPDIR", "")
	t.Setenv("COUNTERSIGN_FIGURES_FILE", "figures")
	remove := testkit.TempInMemory()
	inMemory := os.Getenv("TMPDIR") != ""
	remove()
	if !inMemory {
		t.Setenv("TMPDIR", "")
		os.Unsetenv("COUNTERSIGN_FIGURES_FILE")
		defer testkit.TempInMemory()()
		if os.Getenv("TMPDIR") != "" {
			t.Error("a variable that names a file makes the tests use a disk")
		}
		return
	}
	t.Setenv("TMPDIR", "")
	t.Setenv("COUNTERSIGN_CAMPAIGNS", "10")
	defer testkit.TempInMemory()()
	if dir := os.Getenv("TMPDIR"); dir != "" {
		t.Errorf("a long campaign uses %s and not a disk", dir)
	}
}
