//go:build !linux

package testkit

// TempInMemory does nothing, because this system has no directory for temporary files in memory.
func TempInMemory() (remove func()) { return func() {} }
