package policyfile

import (
	"os"
	"testing"

	"countersign/internal/testkit"
)

// TestMain keeps the stores and the databases in memory. More parallel tests run than the machine has processors,
// because tests mostly wait for the database.
func TestMain(m *testing.M) {
	testkit.RunAtOnce(4)
	remove := testkit.TempInMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}
