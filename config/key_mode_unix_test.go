//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

// file describes a file by its mode and its owner.
type file struct {
	mode  fs.FileMode
	owner uint32
}

func (f file) Name() string       { return "key" }
func (f file) Size() int64        { return 1 }
func (f file) Mode() fs.FileMode  { return f.mode }
func (f file) ModTime() time.Time { return time.Time{} }
func (f file) IsDir() bool        { return false }
func (f file) Sys() any           { return &syscall.Stat_t{Uid: f.owner} }

// The group may read a key file only if root owns the file and the process does not run as root.
func TestExposed(t *testing.T) {
	byRoot := os.Geteuid() == 0
	for f, want := range map[file]bool{
		{0o600, 1000}: false, {0o400, 1000}: false, {0o640, 1000}: true, {0o604, 1000}: true,
		{0o400, 0}: false, {0o440, 0}: byRoot, {0o460, 0}: true, {0o444, 0}: true,
	} {
		if got := Exposed(f); got != want {
			t.Errorf("mode %o of user %d: %t, want %t", f.mode, f.owner, got, want)
		}
	}
}
