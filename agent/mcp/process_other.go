//go:build !unix

package mcp

import (
	"os"
	"syscall"
)

// ownGroup returns nil, because this system has no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// signalGroup ends the program if s is SIGKILL. Other signals have no effect on this system. The program's children
// continue to run, because this system has no process groups.
func signalGroup(p *os.Process, s syscall.Signal) {
	if s == syscall.SIGKILL {
		_ = p.Kill() // an error means that the program has ended
	}
}
