package workflow_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"countersign/internal/testkit"
)

// TestMain lowers the number of cases of property tests, because each case is a long sequence of transactions. The flag
// -rapid.checks sets another number.
func TestMain(m *testing.M) {
	if !slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-rapid.checks") }) {
		checks := "10"
		if testkit.CI() {
			checks = "25"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	remove := testkit.TempInMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}
