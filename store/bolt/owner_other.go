//go:build !unix

package bolt

import "io/fs"

// sameOwner does nothing on systems without file owners.
func sameOwner(string, string) error { return nil }

// keepOwner does nothing on systems without file owners.
func keepOwner(fs.FileInfo, string) error { return nil }
