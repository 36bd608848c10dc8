package bot

import (
	"testing"

	"countersign/internal/testkit"
)

// TestMain runs more parallel tests than the machine has processors, because tests mostly wait for the bot. TestMain
// also puts the stores in memory.
func TestMain(m *testing.M) { testkit.Main(m, 4) }
