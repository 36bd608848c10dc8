//go:build linux || darwin

package bolt

import (
	"errors"
	"os"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// lock takes the lock that bbolt takes when it opens a file. bbolt then takes the lock again, which changes nothing.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return berrors.ErrTimeout
	}
	return err
}

// unlock releases a file's lock. unlock is needed, because closing a file that is mapped does not release the lock.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockShared takes a lock that keeps other processes from opening a file for writing.
func lockShared(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) }
