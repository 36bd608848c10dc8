//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// Exposed reports whether users other than the one who runs this process can use a file with a private key. Kubernetes
// gives a secret to a process that is not root as a file of root's that the process's group can read: such a file is not
// exposed.
func Exposed(info fs.FileInfo) bool {
	others := info.Mode().Perm() & 0o077
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid == 0 && os.Geteuid() != 0 {
		others &^= 0o040
	}
	return others != 0
}
