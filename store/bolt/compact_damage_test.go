package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/store"
)

// pages calls fn with every page of the last commit that begins with the page's own number, until fn returns true.
func pages(t *testing.T, file []byte, fn func(id uint64, page []byte, use []pageUse) bool) {
	t.Helper()
	m, err := metas(bytes.NewReader(file), 4096)
	if err != nil {
		t.Fatal(err)
	}
	x := &examination{ctx: t.Context(), file: bytes.NewReader(file), size: 4096, meta: m}
	if err := x.all(); err != nil || len(x.faults) > 0 {
		t.Fatal(err, x.faults)
	}
	for id := uint64(2); id < m.pages; id++ {
		page := file[id*4096:]
		if x.use[id] == pageReached && binary.LittleEndian.Uint64(page) == id && fn(id, page, x.use) {
			return
		}
	}
}

// Compact refuses a damaged file and leaves it unchanged. A compacted copy would lack unreadable rows without a trace,
// and a damaged meta page would undo the last commit. In a cycle of pages, the copy would never end.
func TestCompactDamaged(t *testing.T) {
	whole := deep(t)
	flags := func(page []byte) uint16 { return binary.LittleEndian.Uint16(page[8:]) }
	for _, c := range []struct {
		name  string
		spoil func(file []byte)
	}{
		{"the newest meta page", func(file []byte) {
			newest := 0
			if binary.LittleEndian.Uint64(file[4096+metaTx:]) > binary.LittleEndian.Uint64(file[metaTx:]) {
				newest = 4096
			}
			file[newest+metaRoot] ^= 1
		}},
		{"the number of rows of a page", func(file []byte) {
			pages(t, file, func(_ uint64, page []byte, _ []pageUse) bool {
				if flags(page) != pageLeaf || binary.LittleEndian.Uint16(page[10:]) < 3 {
					return false
				}
				binary.LittleEndian.PutUint16(page[10:], 2)
				return true
			})
		}},
		{"a row", func(file []byte) {
			copy(file, bytes.ReplaceAll(file, []byte(`"key":"id1"`), []byte(`"kEy":"id1"`)))
		}},
		{"a page that names itself", func(file []byte) {
			pages(t, file, func(id uint64, page []byte, _ []pageUse) bool {
				if flags(page) != pageBranch {
					return false
				}
				binary.LittleEndian.PutUint64(page[pageHeader+8:], id)
				return true
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged := bytes.Clone(whole)
			if c.spoil(damaged); bytes.Equal(damaged, whole) {
				t.Fatal("nothing was spoilt")
			}
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Compact(t.Context(), path, nil); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("got error %v, want ErrDamaged", err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, damaged) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// Open examines a large file only if damage was found in it before. If Compact finds the damage, the next Open repairs
// the file, as the error says. Compact does not write to a file with a damaged list of free pages.
func TestCompactLargeDamaged(t *testing.T) {
	examineUpTo(t, 1)
	whole := deep(t)
	at := shapeOf(t, whole)
	for _, c := range []struct {
		name  string
		mends bool
		spoil func(file []byte)
	}{
		{"a row", true, func(file []byte) { copy(file, bytes.ReplaceAll(file, []byte(`"key":"id1"`), []byte(`"kEy":"id1"`))) }},
		{"a page of rows", true, func(file []byte) { clear(file[at.leaf*4096 : (at.leaf+1)*4096]) }},
		{"the list of free pages", false, func(file []byte) { file[at.freelist*4096+10]-- }},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged := bytes.Clone(whole)
			c.spoil(damaged)
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := Compact(t.Context(), path, nil)
			if !errors.Is(err, store.ErrDamaged) || strings.Contains(err.Error(), repairs) != c.mends {
				t.Errorf("got error %v, want ErrDamaged; the error says that serve repairs the file: want %v", err, c.mends)
			}
			if now, err := os.ReadFile(path); err != nil || bytes.Equal(now, damaged) == c.mends {
				t.Errorf("the file was changed: want %v (%v)", c.mends, err)
			}
			s := mustOpen(t, path)
			if found := s.Damage(); len(found) > 0 != c.mends {
				t.Errorf("the store was repaired: want %v, and Damage lists %v", c.mends, found)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if kept, err := filepath.Glob(path + ".damaged-*"); err != nil || len(kept) > 0 != c.mends {
				t.Errorf("the damaged file was kept: want %v, and there is %v (%v)", c.mends, kept, err)
			}
		})
	}
}
