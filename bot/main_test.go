package bot

import (
	"os"
	"testing"

	"countersign/internal/testkit"
)

// TestMain runs more parallel tests than the machine has processors, because tests mostly wait for the bot. The stores
// are in memory.
func TestMain(m *testing.M) {
	testkit.RunAtOnce(4)
	remove := testkit.TempInMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}
