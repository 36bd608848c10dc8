//go:build unix

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// sameOwner gives a new file the owner and group of the replaced file or, if there is none, those of the directory. The
// user who restores a store may not be the user who runs the bot.
func sameOwner(of, file string) error {
	info, err := os.Stat(of)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(of))
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil // only root can change the owner
	}
	return os.Chown(file, int(stat.Uid), int(stat.Gid))
}

// keepOwner gives a file the owner and group of another file.
func keepOwner(of fs.FileInfo, file string) error {
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
