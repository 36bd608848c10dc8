//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// Exposed reports whether other users can use a file with a private key. Kubernetes gives a process its secrets as
// files. If the process does not run as root, root owns these files, and the process's group can read them. Such a
// file does not count as exposed.
func Exposed(info fs.FileInfo) bool {
	others := info.Mode().Perm() & 0o077
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid == 0 && os.Geteuid() != 0 {
		others &^= 0o040
	}
	return others != 0
}
