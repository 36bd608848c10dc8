package testkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk is a separate file system in memory that a test may fill up.
type SmallDisk struct {
	Dir  string // the mount point
	size int64
	t    testing.TB
}

// MountSmallDisk mounts a file system of size bytes until the test ends.
func MountSmallDisk(t testing.TB, size int64) SmallDisk {
	t.Helper()
	d := SmallDisk{Dir: t.TempDir(), size: size, t: t}
	if err := unix.Mount("tmpfs", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		missing(t, "a full disk", fmt.Sprintf("a small disk can't be mounted (%v)", err),
			"run the tests as root, or with `unshare --user --map-root-user --mount`")
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.Dir, 0); err != nil {
			t.Error(err)
		}
	})
	d.guard()
	return d
}

// guard fails the test if the directory is not the small disk.
func (d SmallDisk) guard() {
	d.t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(d.Dir, &s); err != nil {
		d.t.Fatal(err)
	}
	if s.Type != unix.TMPFS_MAGIC || int64(s.Blocks)*s.Bsize > d.size+s.Bsize {
		d.t.Fatalf("%s is not the small disk: it is of type %#x, and has %d bytes", d.Dir, s.Type, int64(s.Blocks)*s.Bsize)
	}
}

// Fill fills the disk to its last byte. The returned function frees this space.
func (d SmallDisk) Fill() (free func()) {
	d.t.Helper()
	d.guard()
	f, err := os.Create(filepath.Join(d.Dir, "filler"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for written := int64(0); ; {
		n, err := f.Write(make([]byte, 4096))
		written += int64(n)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			return func() {
				if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
					d.t.Error(err)
				}
			}
		case err != nil:
			d.t.Fatal(err)
		case written > d.size:
			d.t.Fatalf("%s takes more than its %d bytes", d.Dir, d.size)
		}
	}
}

// ReadOnly remounts the disk. If on is true, the disk is read-only. Otherwise, the disk is writable.
func (d SmallDisk) ReadOnly(on bool) {
	d.t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if on {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("tmpfs", d.Dir, "tmpfs", flags, fmt.Sprintf("size=%d", d.size)); err != nil {
		d.t.Fatal(err)
	}
}
