package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
)

// The doctor warns if the running bot and the doctor's own program have different versions.
func TestRunningVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for version, warns := range map[string]string{
		cli.ThisBuild().Version: "",
		"v9.1.2":                "warn the running bot has the version v9.1.2, and this program has the version " + cli.ThisBuild().Version,
		"":                      "warn the running bot has the version unknown",
	} {
		lines, code := found(func(d *Doctor) {
			d.OpenStore = func(context.Context, config.Env) (Store, error) { return nil, store.ErrLocked }
			d.AskBot = func(context.Context, config.Env) (Running, error) { return Running{Version: version}, nil }
			d.store(t.Context(), config.Env{Store: config.Store{Path: path}})
		})
		if code != 0 || !strings.Contains(lines, "ok a bot is running") || !strings.Contains(lines, warns) || strings.Contains(lines, "warn the running bot") != (warns != "") {
			t.Errorf("the bot has %q: code %d\n%s", version, code, lines)
		}
	}
}
