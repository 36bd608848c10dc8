//go:build linux || darwin

package shop

import (
	"os"
	"path/filepath"
	"syscall"
)

// lock waits until no other process writes the file at path. The lock is on the file's directory, and ends with the
// process.
func lock(path string) (unlock func(), err error) {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		d.Close()
		return nil, err
	}
	return func() { d.Close() }, nil
}
