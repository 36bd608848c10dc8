package policyfile

import (
	"testing"

	"countersign/internal/testkit"
)

// TestMain runs more parallel tests than the machine has processors, because tests mostly wait for the database. Stores
// and databases are in memory.
func TestMain(m *testing.M) { testkit.Main(m, 4) }
