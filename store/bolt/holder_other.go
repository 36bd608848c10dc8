//go:build !linux

package bolt

import "fmt"

// holder explains how to find the process that holds the file's lock.
func holder(path string) string { return fmt.Sprintf("a process that `fuser %s` shows", path) }
