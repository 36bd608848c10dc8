//go:build !linux

package testkit

// TempInMemory does nothing here: there is no place for temporary files in memory.
func TempInMemory() (remove func()) { return func() {} }
