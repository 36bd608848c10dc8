package bolt_test

import (
	"testing"

	"countersign/internal/testkit"
)

func TestMain(m *testing.M) {
	if !testkit.CI() {
		testkit.RapidChecks(25) // rapid's own number is 100
	}
	testkit.Main(m, 4)
}
