package task

import (
	"io"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
)

// A command that writes its output to a file replaces no file of the bot, by whatever name the file is given.
func TestToFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{"COUNTERSIGN_STORE": "bolt:bot.db", "COUNTERSIGN_POLICY": "policy.yaml", "COUNTERSIGN_AUDIT_KEY": "key", "OPENAI_API_KEY_FILE": "secret"} {
		t.Setenv(name, value)
	}
	files := []string{"bot.db", "bot.db.crashes", "bot.db.heads", "bot.db.receipt-key", "bot.db.sock", "key", "policy.yaml", "countersign.lock", "secret", "page.html"}
	for _, name := range files {
		if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, name+".link"); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{name, name + ".link"} {
			err := ToFile(&cobra.Command{}, path, func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err })
			content, readErr := os.ReadFile(name)
			if readErr != nil {
				t.Fatal(readErr)
			}
			own := name != "page.html"
			if own && (cli.Code(err) != cli.ExitUsage || string(content) != "before") || !own && err != nil {
				t.Errorf("%s: %v, and it has %q", path, err, content)
			}
		}
	}
	if content, err := os.ReadFile("page.html"); err != nil || string(content) != "after" {
		t.Errorf("the page has %q, %v", content, err)
	}
}
