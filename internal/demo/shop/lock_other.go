//go:build !linux && !darwin

package shop

// lock keeps nobody out: on this system one process at a time may have the file.
func lock(string) (unlock func(), err error) { return func() {}, nil }
