//go:build unix && !linux

package pgserver

import "syscall"

// endWithParent does nothing, because only Linux can signal a process when its parent ends.
func endWithParent(*syscall.SysProcAttr) {}
