//go:build linux

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// disk simulates a failing disk under an open store. The method become makes the store's file descriptor refer to a
// device. The method heal makes the descriptor refer to the real file.
type disk struct {
	t    *testing.T
	file *os.File
	real int // a second descriptor of the real file, which keeps its lock
}

// openOnDisk opens a store whose file has free pages, so a small commit does not make the file grow.
func openOnDisk(t *testing.T) (*bolt.Store, *disk, string) {
	t.Helper()
	d := &disk{t: t}
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := bolt.Open(path, bolt.Options{OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
		f, err = os.OpenFile(name, flag, mode)
		d.file = f
		return f, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if d.real, err = unix.Dup(int(d.file.Fd())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(d.real) })
	for n := range 3 {
		if err := s.Update(t.Context(), func(tx store.Tx) error {
			return tx.PutMessage(store.Message{Conversation: "filler", Seq: 1, Text: bolt.Noise(1<<16 + n)})
		}); err != nil {
			t.Fatal(err)
		}
	}
	return s, d, path
}

// become makes the store write to a device instead of its file. With /dev/full, every write fails because the disk is
// full. With /dev/null, writes succeed, but a sync fails.
func (d *disk) become(device string) {
	d.t.Helper()
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Dup3(int(f.Fd()), int(d.file.Fd()), unix.O_CLOEXEC); err != nil {
		d.t.Fatal(err)
	}
}

// heal makes the store write to its real file.
func (d *disk) heal() {
	d.t.Helper()
	if err := unix.Dup3(d.real, int(d.file.Fd()), unix.O_CLOEXEC); err != nil {
		d.t.Fatal(err)
	}
}

func putTurn(id string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: id}) }
}

func has(t *testing.T, s *bolt.Store, id string) bool {
	t.Helper()
	var err error
	if viewErr := s.View(t.Context(), func(r store.Reader) error { _, err = r.Turn(id); return nil }); viewErr != nil {
		t.Fatal(viewErr)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// While the disk is full, only writes fail. Once the disk has free space, writes succeed.
func TestFullDisk(t *testing.T) {
	testkit.SkipIfShort(t)
	s, d, path := openOnDisk(t)
	if err := s.Update(t.Context(), putTurn("before")); err != nil {
		t.Fatal(err)
	}
	d.become("/dev/full")
	for n := range 3 {
		err := s.Update(t.Context(), putTurn(fmt.Sprint("full", n)))
		if !errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrCommitUnknown) || !strings.Contains(err.Error(), path) {
			t.Fatalf("got error %v, want ErrFull with the path", err)
		}
	}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			if err := s.Update(t.Context(), putTurn(fmt.Sprint("together", n))); !errors.Is(err, store.ErrFull) {
				t.Errorf("together: got error %v, want ErrFull", err)
			}
		})
	}
	wg.Wait()
	if !has(t, s, "before") || has(t, s, "full0") {
		t.Error("a read transaction does not see the data from before the disk was full")
	}
	d.heal()
	if err := s.Update(t.Context(), putTurn("after")); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"before": true, "after": true, "full0": false, "together3": false} {
		if has(t, s, id) != want {
			t.Errorf("turn %s is there: %v", id, !want)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// After a failed sync, the contents of the disk are unknown. So the store stops. The next Open reads the actual
// contents of the disk.
func TestSyncThatFails(t *testing.T) {
	s, d, path := openOnDisk(t)
	if err := s.Update(t.Context(), putTurn("before")); err != nil {
		t.Fatal(err)
	}
	d.become("/dev/null")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if err := s.Update(t.Context(), putTurn(fmt.Sprint(n))); !errors.Is(err, store.ErrCommitUnknown) || !errors.Is(err, unix.EINVAL) {
				t.Errorf("got error %v, want ErrCommitUnknown with its cause", err)
			}
		})
	}
	wg.Wait()
	d.heal() // the store stays stopped, even with a working disk
	ran := false
	for what, err := range map[string]error{
		"update": s.Update(t.Context(), func(store.Tx) error { ran = true; return nil }),
		"view":   s.View(t.Context(), func(store.Reader) error { ran = true; return nil }),
		"check":  s.Check(t.Context()),
	} {
		if !errors.Is(err, store.ErrCommitUnknown) {
			t.Errorf("%s: got error %v, want ErrCommitUnknown", what, err)
		}
	}
	if ran {
		t.Error("a closure ran on a store that has stopped")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !has(t, s, "before") {
		t.Error("earlier durable data is gone")
	}
	if err := s.Update(t.Context(), putTurn("after")); err != nil {
		t.Error(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

const syncEnv = "COUNTERSIGN_TEST_SYNC"

// TestUnderStrace is the traced process of TestFailingSyncs. The process prints the outcome of each of its commits.
func TestUnderStrace(t *testing.T) {
	path := os.Getenv(syncEnv)
	if path == "" {
		t.Skip("only run by TestFailingSyncs")
	}
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println("not opened")
		return
	}
	for n := range 8 {
		ran := false
		err := s.Update(t.Context(), func(tx store.Tx) error { ran = true; return putTurn(fmt.Sprint(n))(tx) })
		fmt.Printf("turn %d ran=%v unknown=%v\n", n, ran, errors.Is(err, store.ErrCommitUnknown))
	}
	s.Close()
}

// A sync of data, or a sync of the meta page, fails with EIO. If the sync of the meta page fails, bbolt returns an
// error, but the next Open finds the transaction in the file. So the store's error says that the outcome is unknown. In
// both cases, the file has all acknowledged writes, and the store writes nothing after the failure.
func TestFailingSyncs(t *testing.T) {
	strace := testkit.RequireProgram(t, "strace", "failing syncs", testkit.InstallStrace)
	for _, when := range []string{"1", "2", "3", "4"} { // strace counts the syncs of each thread separately, and the process has several threads
		path := made(t)
		cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when="+when,
			os.Args[0], "-test.run=^TestUnderStrace$")
		cmd.Env = append(os.Environ(), syncEnv+"="+path)
		out, err := cmd.Output()
		if err == nil && strings.Contains(string(out), "not opened") {
			t.Logf("sync %s: the store was not opened, because it can't be synced", when)
			continue
		}
		if err != nil && !strings.Contains(string(out), "turn 0") {
			t.Fatalf("the process could not be traced (may this user trace processes here?): %v\n%s", err, out)
		}
		s, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stopped := false
		for n := range 8 {
			var ran, unknown bool
			_, said, _ := strings.Cut(string(out), fmt.Sprintf("turn %d ", n))
			if _, err := fmt.Sscanf(said, "ran=%t unknown=%t", &ran, &unknown); err != nil {
				t.Fatalf("the traced process does not report the outcome of turn %d:\n%s", n, out)
			}
			there := has(t, s, fmt.Sprint(n))
			switch {
			case stopped && (ran || !unknown || there):
				t.Errorf("turn %d came after the failure: ran %v, unknown %v, there %v", n, ran, unknown, there)
			case !unknown && !there:
				t.Errorf("turn %d was acknowledged and is lost", n)
			case unknown && !stopped:
				t.Logf("sync %s: turn %d is unknown, and there: %v", when, n, there)
			}
			stopped = stopped || unknown
		}
		if !stopped {
			t.Errorf("no sync failed:\n%s", out)
		}
		if err := errors.Join(s.Check(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
	}
}
