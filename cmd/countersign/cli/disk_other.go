//go:build !linux && !darwin

package cli

// FreeSpace returns false: the free space is not known on this system.
func FreeSpace(string) (uint64, bool) { return 0, false }
