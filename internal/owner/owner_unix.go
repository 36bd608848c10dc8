//go:build unix

package owner

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Inherit gives a new file the owner and group of the first of the given files and directories that exists. If this
// process is not root, Inherit does nothing, because only root can change the owner. On some file systems and in some
// containers, root can't do this either. The file then keeps its owner.
func Inherit(file *os.File, of ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, path := range of {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := file.Chown(int(stat.Uid), int(stat.Gid)); !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EINVAL) {
				return err
			}
			return nil
		}
	}
	return nil
}

// Keep gives a file the owner and group of another file. Keep returns an error if this process can't do this.
func Keep(file string, of fs.FileInfo) error {
	want, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if has, ok := info.Sys().(*syscall.Stat_t); ok && has.Uid == want.Uid && has.Gid == want.Gid {
		return nil
	}
	return os.Chown(file, int(want.Uid), int(want.Gid))
}
