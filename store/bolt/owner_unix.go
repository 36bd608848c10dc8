//go:build unix

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a new file the owner and group of the one whose place it takes: whoever restores it need not be who runs the bot.
func sameOwner(of, file string) error {
	info, err := os.Stat(of)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil // only root can give a file away
	}
	return os.Chown(file, int(stat.Uid), int(stat.Gid))
}
