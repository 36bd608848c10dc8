//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// likes returns BotsFile with a fixed parameter like.
func likes(like string) func(string, func(*os.File) error) error {
	return func(path string, write func(*os.File) error) error { return BotsFile(path, like, write) }
}

// A file of the bot that root replaces keeps its owner. A new file of the bot gets the owner of the file that it is like,
// or of its directory. Any other file belongs to root, even if it replaces another user's file.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	for _, err := range []error{os.WriteFile(old, nil, 0o600), os.Chown(dir, 1234, 1235), os.Chown(old, 2345, 2346)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	roots := fmt.Sprintf("0:%d", os.Getegid())
	for _, c := range []struct {
		name  string
		write func(string, func(*os.File) error) error
		want  string
	}{
		{"old", likes(""), "2345:2346"}, {"new", likes(old), "2345:2346"}, {"old", WholeFile, roots},
		{"bots", likes(""), "1234:1235"}, {"unlike", likes(old + ".none"), "1234:1235"}, {"other", WholeFile, roots},
	} {
		path := filepath.Join(dir, c.name)
		if err := c.write(path, func(*os.File) error { return nil }); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		if owner := fmt.Sprintf("%d:%d", stat.Uid, stat.Gid); owner != c.want {
			t.Errorf("%s belongs to %s, want %s", c.name, owner, c.want)
		}
	}
}
