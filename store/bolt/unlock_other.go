//go:build !linux && !darwin

package bolt

import "os"

// lock does nothing on systems other than Linux and macOS.
func lock(*os.File) error { return nil }

// unlock does nothing on systems where closing a file releases its lock.
func unlock(*os.File) {}

// lockShared does nothing on systems other than Linux and macOS.
func lockShared(*os.File) error { return nil }
