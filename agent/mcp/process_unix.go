//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// ownGroup gives a program its own process group, so that signals also reach the program's children.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup signals all processes of a program's group.
// An error means that all processes of the group have ended.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }
