package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The directory for temporary files in memory, and the free space that it must have for the tests of a package.
const (
	memory     = "/dev/shm"
	memoryRoom = 1 << 30
)

// TempInMemory makes t.TempDir return directories in memory. Stores commit in these directories in the same way as on a
// disk, but faster. TestMain calls TempInMemory, and calls remove at the end. TempInMemory does nothing if memory has
// too little space, if TMPDIR is set, if benchmarks run, or if a COUNTERSIGN_ variable selects a long campaign. A
// variable that names a file (COUNTERSIGN_…_FILE) selects no campaign. Benchmarks and long campaigns use the usual
// TMPDIR, which must be on a disk: their figures include disk writes.
func TempInMemory() (remove func()) {
	flag.Parse() // TestMain runs before package testing parses the flags
	bench := flag.Lookup("test.bench").Value.String() != ""
	long := slices.ContainsFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "COUNTERSIGN_") && !strings.HasSuffix(name, "_FILE")
	})
	var room unix.Statfs_t
	if bench || long || os.Getenv("TMPDIR") != "" || unix.Statfs(memory, &room) != nil || room.Bavail*uint64(room.Bsize) < memoryRoom {
		return func() {}
	}
	const prefix = "cs-"                                        // short, because the path of a Unix socket has at most 107 bytes
	left, _ := filepath.Glob(filepath.Join(memory, prefix+"*")) // the pattern is valid
	for _, dir := range left {
		if f, err := lockDir(dir); err == nil { // no process holds the lock, so the process of this directory was killed
			os.RemoveAll(dir)
			f.Close()
		}
	}
	dir, err := os.MkdirTemp(memory, prefix)
	if err != nil {
		return func() {}
	}
	held, err := lockDir(dir)
	if err == nil {
		err = os.Chmod(dir, 0o711) // so that a server that runs as another user can reach its own directory below it
	}
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	return func() {
		os.RemoveAll(dir)
		if err == nil {
			held.Close()
		}
	}
}

// lockDir locks a directory until the file is closed or the process ends. If another process holds the lock, lockDir
// fails.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
