// Package campaign is what the long tests have in common: how large one is, and where its chance comes from. go test runs a short version of
// each; the environment asks for the long one, and repeats one that failed. docs/figures.md lists them.
package campaign

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Size is how much of something a campaign does: what the variable says, or otherwise as much as plain go test has time for.
func Size(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, and has to be a whole number above 0", variable, text)
	}
	return n
}

// SeedVariable repeats a campaign.
const SeedVariable = "COUNTERSIGN_SEED"

// Seed is where a campaign's chance comes from: another seed each time, unless COUNTERSIGN_SEED says which. It is printed, so that what failed can
// be repeated.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(SeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is %q, and has to be a seed that a campaign printed", SeedVariable, text)
		}
	}
	t.Logf("%s=%d", SeedVariable, seed)
	return seed
}

// Chance is a source of chance of a seed. Streams of one seed are independent of each other.
func Chance(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
