package bolt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"countersign/approvers"
	"countersign/store"
)

// Each bucket is copied, or is an index that the copy rebuilds. The only exception is set_aside.
func TestEveryBucketIsCopied(t *testing.T) {
	known := map[bucket]bool{setAside: true}
	for _, p := range parts {
		for _, in := range p.in {
			known[in] = true
		}
	}
	for b := range allBuckets {
		if !known[b] && !isIndex[b] {
			t.Errorf("the bucket %s is not copied: add it to parts (contents.go)", b)
		}
	}
}

// If a killed process left an incomplete copy, the next Fill continues this copy. Fill never deletes another file at
// the temporary path. A Fill in one process does not disturb a copy that another process is making.
func TestFillAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	one := func(f store.Filling) error {
		return f.Put(t.Context(), store.Row{Part: store.PartTurns, Record: []byte(`{"id":"one","version":7}`)})
	}
	var kept []byte
	errKilled := errors.New("killed")
	err := Fill(t.Context(), path, "", false, func(f store.Filling) (err error) {
		if err := errors.Join(one(f), f.EachRow(t.Context(), func(store.Row) error { return nil })); err != nil {
			return err
		}
		if err := Fill(t.Context(), path, "", false, one); !errors.Is(err, store.ErrLocked) {
			t.Errorf("a second copy at the same time: %v", err)
		}
		kept, err = os.ReadFile(path + fillSuffix)
		return errors.Join(err, errKilled)
	})
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	s := mustOpen(t, other)
	err = s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "other"}) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string][]byte{"a whole store": whole, "an older store": unpacked(t, "testdata/schema9.db.gz"), "something else": []byte("something else")} {
		for _, anew := range []bool{false, true} {
			if err := os.WriteFile(path+fillSuffix, left, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Fill(t.Context(), path, "", anew, one); !errors.Is(err, store.ErrForeign) {
				t.Errorf("beside %s: got error %v, want ErrForeign", name, err)
			}
			if now, err := os.ReadFile(path + fillSuffix); err != nil || !bytes.Equal(now, left) {
				t.Errorf("%s was changed (%v)", name, err)
			}
		}
	}
	if err := os.Remove(path + fillSuffix); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, other+".new").Close()
	fresh, err := os.ReadFile(other + ".new")
	if err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string][]byte{"part of a store": kept, "a copy without rows": fresh} {
		if err := os.WriteFile(path+fillSuffix, left, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Fill(t.Context(), path, "", false, one); err != nil {
			t.Fatalf("after %s was left: %v", name, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("after %s was left: the directory has %v, %v", name, files, err)
		}
		if err := Fill(t.Context(), path, "", false, one); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a store was replaced: %v", err)
		}
		s := mustOpen(t, path)
		var turn approvers.Turn
		err = s.View(context.Background(), func(r store.Reader) (err error) { turn, err = r.Turn("one"); return err })
		if err != nil || turn.Version != 7 {
			t.Errorf("the copy has %+v, %v", turn, err)
		}
		if err := errors.Join(s.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
}
