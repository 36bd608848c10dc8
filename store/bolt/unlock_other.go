//go:build !linux && !darwin

package bolt

import "os"

// unlock does nothing on systems where closing a file releases its lock.
func unlock(*os.File) {}

// lockShared does nothing on systems other than Linux and macOS.
func lockShared(*os.File) error { return nil }
