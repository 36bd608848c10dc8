//go:build unix

package testkit

import (
	"syscall"
	"testing"
	"time"
)

// ProcessorTime returns the time that the process has used on all processors.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
