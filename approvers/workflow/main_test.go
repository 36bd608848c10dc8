package workflow_test

import (
	"os"
	"testing"

	"countersign/internal/testkit"
)

// TestMain lowers the number of cases of property tests, because each case is a long sequence of transactions.
func TestMain(m *testing.M) {
	checks := 10
	if testkit.CI() {
		checks = 25
	}
	testkit.RapidChecks(checks)
	remove := testkit.TempInMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}
