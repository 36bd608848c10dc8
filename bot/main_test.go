package bot

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs more tests at once than there are processors: most of the time, a test waits for the bot.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set("4"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
