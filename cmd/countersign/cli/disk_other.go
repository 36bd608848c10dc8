//go:build !linux && !darwin

package cli

// FreeSpace is not known here.
func FreeSpace(string) (uint64, bool) { return 0, false }
