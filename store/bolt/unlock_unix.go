//go:build linux || darwin

package bolt

import (
	"os"
	"syscall"
)

// unlock releases a file's lock. Closing the file does not release it while the file is mapped.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockShared keeps away processes that want to write to a file.
func lockShared(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) }
