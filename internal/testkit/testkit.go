// Package testkit has functions for the long tests. The functions set the size of a test and its random source. Without
// further settings, go test runs a short version of each test. Environment variables select the long version, or repeat
// a failed run. docs/campaigns.md lists the variables.
package testkit

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Tests use the same setting for garbage collection as countersign serve.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// long becomes true when the first test runs in its long form.
var long atomic.Bool

// RunAtOnce sets how many parallel tests of a package run at the same time. The flag -parallel takes precedence.
// Use RunAtOnce in packages whose tests mostly wait for processes, browsers or databases. TestMain calls RunAtOnce
// before the tests run.
func RunAtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			panic(err)
		}
	}
}

// Main runs the tests of a package with temporary files in memory. At most atOnce parallel tests run at the same time.
// TestMain calls Main.
func Main(m *testing.M, atOnce int) {
	RunAtOnce(atOnce)
	remove := TempInMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}

// SkipIfShort skips a test if the flag -short is set. Long tests call it: tests of many cases in sequence, and tests that
// mostly wait for other programs. Other tests run the same code, and remain.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped because of -short")
	}
}

// RapidChecks sets the number of cases of a package's property tests, unless the flag -rapid.checks sets it. TestMain
// calls it.
func RapidChecks(n int) {
	if slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-rapid.checks") }) {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// fullShortForm reports whether the short form of a campaign runs in full. This is the case in CI, except under the
// race detector. In all other cases, only a part of the short form runs.
func fullShortForm() bool { return CI() && !RaceEnabled }

// Size returns the size of a campaign: the value of the environment variable. If the variable is not set, the size is
// inCI if the short form runs in full (see fullShortForm), and otherwise a quarter of inCI.
func Size(t testing.TB, variable string, inCI int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" && fullShortForm() {
		return inCI
	}
	if text == "" {
		return max(1, inCI/4)
	}
	long.Store(true)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, and has to be a whole number above 0", variable, text)
	}
	return n
}

// DamageVariable is the environment variable that selects the long form of the tests that damage a store. Its value has
// the form "FLIPS PAGES [SEED]".
const DamageVariable = "COUNTERSIGN_DAMAGE"

// Damage returns the size of a test that damages a store, and the seed of its random numbers: the value of
// DamageVariable, or else the given numbers and the seed 1. Each flip changes one byte. Over a file, the test damages
// pages. Over a database, the test damages whole values instead of pages.
func Damage(t testing.TB, flips, pages int) (int, int, uint64) {
	t.Helper()
	text, seed := os.Getenv(DamageVariable), uint64(1)
	if text == "" {
		return flips, pages, seed
	}
	if n, err := fmt.Sscan(text, &flips, &pages, &seed); n < 2 || n != len(strings.Fields(text)) {
		t.Fatalf("%s=%q: %v; write two numbers, and a third one for the seed", DamageVariable, text, err)
	}
	return flips, pages, seed
}

// EveryOther skips a subtest with an odd index, for tests with many similar cases. EveryOther skips no subtest if the
// environment variable of the campaign is set, or if the short form runs in full (see fullShortForm).
func EveryOther(t testing.TB, variable string, index int) {
	t.Helper()
	if !fullShortForm() && os.Getenv(variable) == "" && index%2 == 1 {
		t.Skipf("without CI=true or %s, every other case is tried", variable)
	}
}

// SeedVariable is the environment variable that sets the seed of a campaign, to repeat a failed run.
const SeedVariable = "COUNTERSIGN_SEED"

// Seed returns the seed of a campaign. The short form always uses the same seed. The long form, which Size selects,
// uses a new seed each time. COUNTERSIGN_SEED replaces the seed in both forms. Seed logs the seed, so that a failed run
// can be repeated.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if long.Load() {
		seed = rand.Uint64()
	}
	if text := os.Getenv(SeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is %q, and has to be a seed that a campaign printed", SeedVariable, text)
		}
	}
	t.Logf("%s=%d", SeedVariable, seed)
	return seed
}

// Stride returns the number n for crash tests. In such a test, the process can stop at many points, and the test stops
// it only at every nth point. In the long form, which COUNTERSIGN_CRASHES selects, n is 1.
func Stride() int {
	switch {
	case os.Getenv("COUNTERSIGN_CRASHES") != "":
		return 1
	case RaceEnabled:
		return 11
	case CI():
		return 4
	}
	return 8
}

// Chance returns a random source for a seed. Different streams of one seed are independent of each other.
func Chance(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
