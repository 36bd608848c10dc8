package nodetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// requireNode returns Node.js and npm. Where CI runs they must be there.
func requireNode(t *testing.T) (node, npm string) {
	t.Helper()
	node, nodeErr := exec.LookPath("node")
	npm, npmErr := exec.LookPath("npm")
	if err := errors.Join(nodeErr, npmErr); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("this test needs Node.js 20 or newer and npm on the PATH: %v", err)
		}
		t.Skipf("SKIPPED: Slack's own client was not tried, because Node.js 20 or newer and npm are not on the PATH: %v", err)
	}
	return node, npm
}

// installed returns the folder that holds the app's node_modules, as package-lock.json pins them. It is made once for
// each lock file, outside of the repository, where the go command would look for packages in it.
func installed(t *testing.T, npm string) string {
	t.Helper()
	hash := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(raw)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "countersign", "nodetest")
	done := filepath.Join(cache, hex.EncodeToString(hash.Sum(nil))[:16])
	if _, err := os.Stat(done); err == nil {
		return done
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(cache, "installing-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(fresh, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	// Another run may have been faster: what it installed is the same.
	if err := os.Rename(fresh, done); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, gone := os.Stat(done); gone != nil {
			t.Fatal(err)
		}
	}
	return done
}
