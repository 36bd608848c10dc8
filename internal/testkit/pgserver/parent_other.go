//go:build unix && !linux

package pgserver

import "syscall"

// endWithParent does nothing: only Linux tells a process of its parent's end.
func endWithParent(*syscall.SysProcAttr) {}
