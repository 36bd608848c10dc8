package bot

import (
	"flag"
	"os"
	"testing"

	"countersign/internal/testkit"
)

// TestMain runs more parallel tests than the machine has processors, because tests mostly wait for the bot. The stores
// are in memory.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set("4"); err != nil {
			panic(err)
		}
	}
	remove := testkit.TempInMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}
