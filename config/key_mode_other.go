//go:build !unix

package config

import "io/fs"

// Exposed returns false: on this system, a file's mode does not say who can use the file.
func Exposed(fs.FileInfo) bool { return false }
