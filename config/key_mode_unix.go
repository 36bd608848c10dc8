//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// Exposed reports whether other users than the user of this process can read a file with a private key. If a process
// does not run as root, Kubernetes gives it a secret as a file. Root owns this file, and the process's group can read
// it. Such a file does not count as exposed.
func Exposed(info fs.FileInfo) bool {
	others := info.Mode().Perm() & 0o077
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid == 0 && os.Geteuid() != 0 {
		others &^= 0o040
	}
	return others != 0
}
