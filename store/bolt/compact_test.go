package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// hollow creates a store that is mostly free space. The result left is the number of remaining turns.
func hollow(t *testing.T) (path string, left int) {
	t.Helper()
	const conversations = 40
	path = filepath.Join(t.TempDir(), "store.db")
	s := opened(t, path)
	id := func(i int) string { return fmt.Sprintf("conversation %03d", i) }
	for i := range conversations {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			err := tx.PutConversation(store.Conversation{ID: id(i), Place: id(i)})
			for seq := range uint64(50) {
				err = errors.Join(err, tx.PutMessage(store.Message{Conversation: id(i), Seq: seq + 1, Text: bolt.Noise(1200)}))
			}
			return errors.Join(err, tx.PutTurn(approvers.Turn{ID: "kept " + id(i)}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range conversations - 2 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.EraseConversation(id(i), 1000)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, conversations
}

// contents returns all rows of a store's file, and the buckets' counters.
func contents(t *testing.T, path string) string {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			fmt.Fprintf(&out, "%s %d\n", name, b.Sequence())
			return b.ForEach(func(k, v []byte) error {
				_, err := fmt.Fprintf(&out, "%x %x\n", k, v)
				return err
			})
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A compacted store is smaller, and has the same rows and mode. A symbolic link to the store stays. A second compaction
// saves nothing.
func TestCompact(t *testing.T) {
	testkit.SkipIfShort(t)
	path, _ := hollow(t)
	was := contents(t, path)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	left := path + ".compacted-1234" // a copy that a killed process left
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var usage bolt.Usage
	before, after, err := bolt.Compact(t.Context(), link, func(u bolt.Usage) error { usage = u; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if after > before/4 || usage.Size != before || usage.Free < before/2 || usage.Free >= before {
		t.Errorf("%d bytes became %d; of %d, %d were free", before, after, usage.Size, usage.Free)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != after || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v (%v)", info, err)
	}
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link leads to %s (%v)", to, err)
	}
	if contents(t, path) != was {
		t.Error("the rows are not the same")
	}
	s := opened(t, path)
	if err := errors.Join(s.Check(t.Context()), s.Close()); err != nil {
		t.Error(err)
	}
	if before, again, err := bolt.Compact(t.Context(), path, nil); err != nil || again != before || again != after {
		t.Errorf("a second time: %d bytes became %d, %v", before, again, err)
	}
	wantFiles(t, path, "store.db")
}

// If compaction fails, the store is unchanged, and the store's directory has no additional file.
func TestCompactRefused(t *testing.T) {
	testkit.SkipIfShort(t)
	mine := errors.New("mine")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	path, _ := hollow(t)
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	held := opened(t, path)
	for _, c := range []struct {
		name string
		do   func() error
		want error
	}{
		{"it is held", func() error { _, _, err := bolt.Compact(t.Context(), path, nil); return err }, store.ErrLocked},
		{"it is not worth it", func() error {
			if err := held.Close(); err != nil {
				return err
			}
			_, _, err := bolt.Compact(t.Context(), path, func(bolt.Usage) error { return mine })
			return err
		}, mine},
		{"it is stopped", func() error { _, _, err := bolt.Compact(ended, path, nil); return err }, context.Canceled},
		{"it is damaged", func() error {
			torn := append([]byte(nil), was...)
			clear(torn[2*os.Getpagesize() : len(torn)*3/4])
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				return err
			}
			_, _, err := bolt.Compact(t.Context(), path, nil)
			return errors.Join(err, os.WriteFile(path, was, 0o600))
		}, store.ErrDamaged},
		{"it is cut off", func() error {
			if err := os.WriteFile(path, was[:len(was)/3], 0o600); err != nil {
				return err
			}
			_, _, err := bolt.Compact(t.Context(), path, nil)
			return errors.Join(err, os.WriteFile(path, was, 0o600))
		}, store.ErrForeign},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.want)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(was) {
			t.Errorf("%s: the store was changed (%v)", c.name, err)
		}
		wantFiles(t, path, "store.db")
	}
	if _, _, err := bolt.Compact(t.Context(), path+".none", nil); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("of none: %v", err)
	}
}
