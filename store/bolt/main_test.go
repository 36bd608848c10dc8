package bolt_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"countersign/internal/testkit"
)

func TestMain(m *testing.M) {
	if !testkit.CI() && !slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-rapid.checks") }) {
		if err := flag.Set("rapid.checks", "25"); err != nil { // by default 100
			panic(err)
		}
	}
	testkit.Main(m, 4)
}
