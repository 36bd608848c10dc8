//go:build !linux && !darwin

package bolt

import "os"

// unlock does nothing on systems where closing a file releases its lock.
func unlock(*os.File) {}
