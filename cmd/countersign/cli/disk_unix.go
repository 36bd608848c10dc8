//go:build linux || darwin

package cli

import (
	"syscall"
)

// FreeSpace returns how many bytes can be written below a directory. If the free space is unknown, FreeSpace returns
// false.
func FreeSpace(dir string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
