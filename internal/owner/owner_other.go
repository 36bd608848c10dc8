//go:build !unix

package owner

import (
	"io/fs"
	"os"
)

// Inherit does nothing on systems without file owners.
func Inherit(*os.File, ...string) error { return nil }

// Keep does nothing on systems without file owners.
func Keep(string, fs.FileInfo) error { return nil }
