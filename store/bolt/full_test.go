//go:build linux

package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"countersign/approvers"
	"countersign/store"
)

// One closure needs more room than the disk has. Those who would have shared its commit still get theirs.
func TestFullDiskForOne(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("this user can't mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
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
					return tx.PutMessage(store.Message{Conversation: "large", Seq: 1, Text: strings.Repeat("x", 8<<20)})
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
