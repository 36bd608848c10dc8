//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// setOwner gives a file the owner and group of the first of the given files and directories that exists. Operators often
// run commands as root, and the bot runs as another user. If this process is not root, setOwner does nothing, because
// only root can change the owner. On some file systems and in some containers, root can't do this either. The file then
// keeps its owner.
func setOwner(file *os.File, of ...string) error {
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
