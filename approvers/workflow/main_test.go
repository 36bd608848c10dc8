package workflow_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain has properties checked fewer times than rapid does by itself, unless -rapid.checks says how often: each of
// these checks is a whole history of a store.
func TestMain(m *testing.M) {
	if !slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-rapid.checks") }) {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
