package policyfile

import (
	"testing"

	"countersign/internal/testkit"
)

// TestMain runs up to four tests in parallel, because tests mostly wait for the database. Stores and databases are in
// memory.
func TestMain(m *testing.M) { testkit.Main(m, 4) }
