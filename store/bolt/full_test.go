//go:build linux

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// One closure needs more space than the disk has, and fails. The store commits the writes of the other closures that
// wait at the same time.
func TestFullDiskForOne(t *testing.T) {
	testkit.SkipIfShort(t)
	dir := testkit.MountSmallDisk(t, 2<<20).Dir
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(filepath.Join(dir, "store.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const large = 4
		errs, release := busy(t, s, 10, func(i int) (context.Context, func(store.Tx) error) {
			return t.Context(), func(tx store.Tx) error {
				if i == large {
					return tx.PutMessage(store.Message{Conversation: "large", Seq: 1, Text: Noise(8 << 20)})
				}
				return tx.PutTurn(approvers.Turn{ID: fmt.Sprint(i)})
			}
		})
		release()
		for i, err := range errs {
			if (i == large) != errors.Is(err, store.ErrFull) || (i != large && err != nil) {
				t.Errorf("closure %d: got error %v", i, err)
			}
		}
		err = s.View(t.Context(), func(r store.Reader) error {
			for i := range 10 {
				if _, err := r.Turn(fmt.Sprint(i)); (err == nil) == (i == large) {
					t.Errorf("turn %d: %v", i, err)
				}
			}
			return nil
		})
		if err := errors.Join(err, s.Check(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// Closures that wait at the same time share one commit. If a closure returns an error and the shared commit fails, Update
// returns the error of the commit and not the closure's own error. The closure may have read writes of earlier closures,
// and the failed commit may have lost these writes.
func TestOwnErrorBesideFailedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file *os.File
		s, err := Open(filepath.Join(t.TempDir(), "store.db"), Options{OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			f, err = os.OpenFile(name, flag, mode)
			file = f
			return f, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // /dev/null accepts writes, but a sync fails
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		mine := errors.New("mine")
		errs, release := busy(t, s, 2, func(i int) (context.Context, func(store.Tx) error) {
			return t.Context(), func(store.Tx) error {
				if i == 0 {
					return mine
				}
				return unix.Dup3(int(null.Fd()), int(file.Fd()), unix.O_CLOEXEC)
			}
		})
		release()
		for i, err := range errs {
			if !errors.Is(err, store.ErrCommitUnknown) {
				t.Errorf("closure %d: got error %v, want ErrCommitUnknown", i, err)
			}
		}
	})
}
