package bolt_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// made returns the path of a store with one record.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "kept"}) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// alter changes a store's file with bbolt alone.
func alter(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestNewFileIsPrivateAndAlone(t *testing.T) {
	path := made(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, want 0600", info.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory contains %v (%v), want the store only", entries, err)
	}
}

// Each row of the table is a file that Open refuses, or a missing file. Open returns the error with the text of the
// row, and leaves the file unchanged.
func TestRefusedFiles(t *testing.T) {
	rows := []struct {
		name string
		make func(t *testing.T, dir string) string
		want error
		says string
	}{
		{"a text", write("just a text"), store.ErrForeign, "another kind of file"},
		{"a longer text", write(strings.Repeat("not a database\n", 5000)), store.ErrForeign, "another kind of file"},
		{"an empty file", write(""), store.ErrForeign, "is empty"},
		{"zeros", write(strings.Repeat("\x00", 1<<16)), store.ErrForeign, "another kind of file"},
		{"another program's bbolt file", func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "other.db")
			alter(t, path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
			return path
		}, store.ErrForeign, "belongs to another program"},
		{"another program's bbolt file without a list of free pages", func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "other.db")
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			return path
		}, store.ErrForeign, "belongs to another program"},
		{"a newer store", func(t *testing.T, _ string) string {
			path := made(t)
			alter(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("countersign")).Put([]byte("schema"), []byte("11")) })
			return path
		}, store.ErrNewer, "has version 11, and this program reads versions up to 10"},
		{"a store without a version", func(t *testing.T, _ string) string {
			path := made(t)
			alter(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("countersign")).Delete([]byte("schema")) })
			return path
		}, store.ErrForeign, "does not say its version"},
		{"a store that lacks a bucket", func(t *testing.T, _ string) string {
			path := made(t)
			alter(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("timers")) })
			return path
		}, store.ErrForeign, "no bucket timers"},
		{"a store cut to half", cut(2), store.ErrForeign, "was cut off: it has "},
		{"a store cut to an eighth", cut(8), store.ErrForeign, "was cut off: it has "},
		{"a store cut off before what its last commit wrote", func(t *testing.T, _ string) string {
			path := made(t)
			alter(t, path, func(tx *bbolt.Tx) error {
				for i := range 1000 {
					if err := tx.Bucket([]byte("timers")).Put(fmt.Append(nil, i), make([]byte, 1000)); err != nil {
						return err
					}
				}
				return nil
			})
			if err := os.Truncate(path, 40_000); err != nil {
				t.Fatal(err)
			}
			return path
		}, store.ErrForeign, "was cut off: it has 40000 bytes of at least "},
		{"both meta pages overwritten", func(t *testing.T, _ string) string {
			path := made(t)
			overwrite(t, path, 0, 2*os.Getpagesize())
			return path
		}, store.ErrForeign, "damaged"},
		{"everything but the meta pages overwritten", func(t *testing.T, _ string) string {
			path := made(t)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, path, 2*os.Getpagesize(), int(info.Size())-2*os.Getpagesize())
			return path
		}, store.ErrForeign, "damaged"},
		{"the entries of two buckets overwritten, one of which has the version", func(t *testing.T, _ string) string {
			path := made(t)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"absences", "countersign"} {
				for i := range b {
					if entry, is := bytes.CutPrefix(b[i:], []byte(name+strings.Repeat("\x00", 8))); is {
						entry[8] = 1 // the number of the bucket's small page, which is always 0
					}
				}
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, store.ErrDamaged, "its entry in the list of buckets is damaged. Put a backup in its place"},
		{"a directory", func(_ *testing.T, dir string) string { return dir }, nil, "is a directory"},
		{"a device", func(*testing.T, string) string { return "/dev/null" }, store.ErrForeign, "not a regular file"},
		{"no directory", func(_ *testing.T, dir string) string { return filepath.Join(dir, "missing", "store.db") }, fs.ErrNotExist, "does not exist"},
		{"below a file", func(t *testing.T, dir string) string {
			return filepath.Join(write("x")(t, dir), "store.db")
		}, syscall.ENOTDIR, "not a directory"},
		{"a link to nowhere", func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "link")
			if err := os.Symlink(filepath.Join(dir, "nowhere"), path); err != nil {
				t.Fatal(err)
			}
			return path
		}, fs.ErrNotExist, "symbolic link to"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			path := row.make(t, t.TempDir())
			before, _ := os.ReadFile(path)
			s, err := bolt.Open(path, bolt.Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("got error %v, want %v", err, row.want)
			}
			if !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("the error %q does not say %q and the path", err, row.says)
			}
			if text := err.Error(); strings.Contains(text, ": store: ") || strings.Contains(text, "runtime error") {
				t.Errorf("the error %q names its package twice, or a panic", text)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(text string) func(t *testing.T, dir string) string {
	return func(t *testing.T, dir string) string {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func cut(by int64) func(t *testing.T, dir string) string {
	return func(t *testing.T, _ string) string {
		path := made(t)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()/by); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func overwrite(t *testing.T, path string, from, n int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[from:], bytes.Repeat([]byte{0xa5}, n))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// If the operating system refuses to open the file, the error says what to do.
func TestRefusalsOfTheSystem(t *testing.T) {
	testkit.SkipIfShort(t)
	for errno, says := range map[syscall.Errno]string{
		syscall.EACCES: "the owner of the file and its directory",
		syscall.EPERM:  "the owner of the file and its directory",
		syscall.EROFS:  "mounted read-only",
		syscall.EIO:    "if the disk fails, put a backup on another one",
	} {
		path := made(t)
		_, err := bolt.Open(path, bolt.Options{OpenFile: func(name string, _ int, _ os.FileMode) (*os.File, error) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errno}
		}})
		if !errors.Is(err, errno) || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%v: got error %v, want one that says %q", errno, err, says)
		}
	}
}

func TestSecondOpenInOneProcess(t *testing.T) {
	path := made(t)
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = bolt.Open(path, bolt.Options{})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Fatalf("got error %v, want ErrLocked with the path", err)
	}
	// The refused second Open must not have released the lock of the first Open.
	if _, err := bolt.Open(path, bolt.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("the third: got error %v, want ErrLocked", err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "x"}) }); err != nil {
		t.Fatal(err)
	}
}

const holdEnv = "COUNTERSIGN_TEST_HOLD"

// TestHold runs as the second process of TestSecondProcess.
func TestHold(t *testing.T) {
	path := os.Getenv(holdEnv)
	if path == "" {
		t.Skip("only run by TestSecondProcess")
	}
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("held")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSecondProcess(t *testing.T) {
	path := made(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHold$")
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q (%v)", line, err)
	}
	_, err = bolt.Open(path, bolt.Options{})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("got error %v, want ErrLocked with the path", err)
	}
	if who := fmt.Sprintf("process %d (", cmd.Process.Pid); !strings.Contains(fmt.Sprint(err), who) && !strings.Contains(fmt.Sprint(err), "fuser") {
		t.Errorf("the error %v does not tell how to find the holder", err)
	}
	t.Log(err)
	if err := errors.Join(stop.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(path, bolt.Options{}) // the other process has ended
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// Several calls of Open run at the same time on a path without a file. Only one store is created, and only one call
// gets the store.
func TestCreatingTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	type opened struct {
		s   *bolt.Store
		err error
	}
	results := make(chan opened)
	for range 8 {
		go func() {
			s, err := bolt.Open(path, bolt.Options{})
			results <- opened{s, err}
		}()
	}
	winners := 0
	for range 8 {
		r := <-results
		switch {
		case r.err == nil:
			winners++
			defer r.s.Close()
		case !errors.Is(r.err, store.ErrLocked):
			t.Errorf("got error %v, want ErrLocked", r.err)
		}
	}
	if winners != 1 {
		t.Errorf("%d hold the store, want 1", winners)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory contains %v (%v), want the store only", entries, err)
	}
}

// If the file is removed while Open runs, Open returns an error, and does not create an empty store.
func TestFileThatGoesAway(t *testing.T) {
	path := made(t)
	_, err := bolt.Open(path, bolt.Options{OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
		return os.OpenFile(name, flag, mode)
	}})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made in its place (%v)", err)
	}
}

// A failed creation of a store leaves no file behind, and the next creation succeeds.
func TestCreationThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	_, err := bolt.Open(path, bolt.Options{OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		if err == nil {
			defer f.Close()
			return os.OpenFile("/dev/full", os.O_RDWR, 0)
		}
		return f, err
	}})
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("got error %v, want ErrFull", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 0 {
		t.Errorf("the directory holds %v (%v), want nothing", entries, err)
	}
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
