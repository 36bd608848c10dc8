//go:build linux || darwin

package bolt

import (
	"os"
	"syscall"
)

// unlock releases a file's lock. unlock is needed, because closing a file that is mapped does not release the lock.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockShared takes a lock that keeps other processes from opening a file for writing.
func lockShared(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) }
