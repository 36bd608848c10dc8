package campaign

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

// SmallDisk is a disk of its own, in memory, that a test may fill up: nothing else is on it.
type SmallDisk struct {
	Dir  string // where it is mounted
	size int64
	t    testing.TB
}

// MountSmallDisk mounts a disk of so many bytes until the test ends.
func MountSmallDisk(t testing.TB, size int64) SmallDisk {
	t.Helper()
	d := SmallDisk{Dir: t.TempDir(), size: size, t: t}
	if err := unix.Mount("tmpfs", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		t.Fatalf("this test fills a disk up, and may not mount a small one for that (%v): run it as root, or with a mount namespace of its own:\n"+
			"unshare --user --map-root-user --mount go test …", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.Dir, 0); err != nil {
			t.Error(err)
		}
	})
	d.guard()
	return d
}

// guard makes sure that what is about to be filled is the small disk, and not the machine's.
func (d SmallDisk) guard() {
	d.t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(d.Dir, &s); err != nil {
		d.t.Fatal(err)
	}
	if s.Type != unix.TMPFS_MAGIC || int64(s.Blocks)*s.Bsize > d.size+s.Bsize {
		d.t.Fatalf("%s is no small disk: it is of type %#x, and has %d bytes", d.Dir, s.Type, int64(s.Blocks)*s.Bsize)
	}
}

// Fill fills the disk up to its last byte. free empties it again.
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

// ReadOnly mounts the disk anew so that it can't be written to, or can again.
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
