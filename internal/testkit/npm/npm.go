// Package npm installs packages from npm for tests, in the versions that a lock file pins.
package npm

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

	"countersign/internal/testkit"
)

// patience is how long an installation may take.
const patience = 5 * time.Minute

// Require returns Node.js and npm, or skips or fails the test as testkit.RequireProgram does.
func Require(t testing.TB, untried string) (node, npm string) {
	t.Helper()
	return testkit.RequireProgram(t, "node", untried, testkit.InstallNode), testkit.RequireProgram(t, "npm", untried, testkit.InstallNode)
}

// Installed returns a folder with the node_modules of the package.json in dir. The package-lock.json in dir pins the
// versions. Installed creates one folder for each content of these two files. The folder is outside of the repository,
// because the go command searches all folders of the repository for packages.
func Installed(t testing.TB, npm, dir, name string) string {
	t.Helper()
	hash := sha256.New()
	files := map[string][]byte{}
	for _, file := range []string{"package.json", "package-lock.json"} {
		raw, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(raw)
		files[file] = raw
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "countersign", name)
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
	for file, raw := range files {
		if err := os.WriteFile(filepath.Join(fresh, file), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	// If another run has already created the folder, this folder is used, because it has the same packages.
	if err := os.Rename(fresh, done); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, gone := os.Stat(done); gone != nil {
			t.Fatal(err)
		}
	}
	return done
}
