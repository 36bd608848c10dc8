//go:build !unix

package mcp

import (
	"os"
	"syscall"
)

// ownGroup returns nil: this system has no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// signalGroup ends a program. The program's children are not ended, because this system has no process groups. The
// program can't be asked to end.
func signalGroup(p *os.Process, s syscall.Signal) {
	if s == syscall.SIGKILL {
		_ = p.Kill() // an error means that it has ended
	}
}
