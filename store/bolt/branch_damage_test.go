package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/store"
)

// deep returns the file of a store whose bucket settings has two levels of branch pages.
func deep(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deep.db")
	if err := os.WriteFile(path, wreckable(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for n := range 300 {
			if err := tx.PutSetting(store.Setting{Key: deepKey(n), Value: bytes.Repeat([]byte("1"), 200)}); err != nil {
				return err
			}
		}
		return tx.PutSetting(store.Setting{Key: string(store.SettingPause)})
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// deepKey returns a key that is long, so that only a few keys fit on a page.
func deepKey(n int) string { return fmt.Sprint("setting", n, strings.Repeat("_", 180)) }

// shape has the numbers of some pages of a file.
type shape struct{ list, root, inner, leaf, freelist uint64 }

// shapeOf finds the root of the list of buckets, the root of the bucket settings, and a branch page and a leaf page below
// this root.
func shapeOf(t *testing.T, file []byte) (f shape) {
	t.Helper()
	m, err := metas(bytes.NewReader(file), 4096)
	if err != nil {
		t.Fatal(err)
	}
	f.list, f.freelist = m.root, m.freelist
	below := func(id uint64) uint64 { return binary.LittleEndian.Uint64(file[id*4096+pageHeader+8:]) }
	top := tree{x: &examination{ctx: t.Context(), file: bytes.NewReader(file), size: 4096, meta: m, use: make([]pageUse, m.pages)}, nested: true}
	top.element = func(k, v []byte, _ uint32) error {
		if string(k) == settings.String() {
			f.root = binary.LittleEndian.Uint64(v)
		}
		return nil
	}
	if err := top.page(f.list, nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	f.inner = below(f.root)
	f.leaf = below(f.inner)
	for id, flags := range map[uint64]uint16{f.list: pageBranch, f.root: pageBranch, f.inner: pageBranch, f.leaf: pageLeaf, f.freelist: pageFreelist} {
		if has := binary.LittleEndian.Uint16(file[id*4096+8:]); has != flags {
			t.Fatalf("page %d of %+v is of kind %#x", id, f, has)
		}
	}
	return f
}

// setMeta changes a number of both meta pages, and corrects their checksums.
func setMeta(file []byte, at int, to uint64) {
	for _, page := range [][]byte{file[:4096], file[4096:8192]} {
		binary.LittleEndian.PutUint64(page[at:], to)
		sum := fnv.New64a()
		_, _ = sum.Write(page[metaMagic:metaSum])
		binary.LittleEndian.PutUint64(page[metaSum:], sum.Sum64())
	}
}

// bbolt would follow damaged branch pages forever, or until the stack of the process overflows. Every function that opens a
// file must find such pages first, in a file of any size.
func TestDamagedBranches(t *testing.T) {
	whole := deep(t)
	at := shapeOf(t, whole)
	points := func(file []byte, from, to uint64) { binary.LittleEndian.PutUint64(file[from*4096+pageHeader+8:], to) }
	last := func(file []byte, from, to uint64) {
		n := uint64(binary.LittleEndian.Uint16(file[from*4096+10:]))
		points(file[(n-1)*pageElement:], from, to)
	}
	for _, c := range []struct {
		name  string
		mends bool // Open repairs the file
		spoil func(f []byte)
	}{
		{"the list of buckets names itself", false, func(f []byte) { points(f, at.list, at.list) }},
		{"the end of the list of buckets names its beginning", false, func(f []byte) { last(f, at.list, at.list) }},
		{"the list of buckets names a bucket, which names the list", false, func(f []byte) { points(f, at.list, at.root); points(f, at.root, at.list) }},
		{"the list of buckets names a bucket", false, func(f []byte) { points(f, at.list, at.root) }},
		{"a bucket names itself", true, func(f []byte) { points(f, at.root, at.root) }},
		{"the end of a bucket names its beginning", true, func(f []byte) { last(f, at.root, at.root) }},
		{"a page of a bucket names itself", true, func(f []byte) { points(f, at.inner, at.inner) }},
		{"a page of a bucket names the page above it", true, func(f []byte) { points(f, at.inner, at.root) }},
		{"a page of a bucket names the list of buckets", true, func(f []byte) { last(f, at.inner, at.list) }},
		{"both meta pages name a bucket", false, func(f []byte) { setMeta(f, metaRoot, at.root) }},
		{"both meta pages name a page of rows", false, func(f []byte) { setMeta(f, metaRoot, at.leaf) }},
		{"both meta pages name the list of free pages", false, func(f []byte) { setMeta(f, metaRoot, at.freelist) }},
		{"both meta pages name a meta page", false, func(f []byte) { setMeta(f, metaRoot, 1) }},
		{"both meta pages name a page outside of the file", false, func(f []byte) { setMeta(f, metaRoot, 1<<40) }},
		{"the file has far too many pages", false, func(f []byte) { setMeta(f, metaPages, math.MaxUint64) }},
		{"the file has more pages than it can hold", false, func(f []byte) { setMeta(f, metaPages, 1<<20) }},
		{"the list of free pages is a page of rows", false, func(f []byte) { setMeta(f, metaFreelist, at.leaf) }},
		{"the list of free pages is a branch page", false, func(f []byte) { setMeta(f, metaFreelist, at.root) }},
		{"the list of free pages is outside of the file", false, func(f []byte) { setMeta(f, metaFreelist, 1<<40) }},
		{"there is no list of free pages, and a bucket names itself", false, func(f []byte) { setMeta(f, metaFreelist, math.MaxUint64); points(f, at.root, at.root) }},
		{"there is no list of free pages, and a page of rows is cleared", false, func(f []byte) {
			setMeta(f, metaFreelist, math.MaxUint64)
			clear(f[at.leaf*4096 : (at.leaf+1)*4096])
		}},
		{"the list of free pages has a huge number of pages", false, func(f []byte) {
			binary.LittleEndian.PutUint16(f[at.freelist*4096+10:], manyFreePages)
			binary.LittleEndian.PutUint64(f[at.freelist*4096+pageHeader:], 1<<34)
		}},
		{"a page in use is free", true, func(f []byte) {
			binary.LittleEndian.PutUint16(f[at.freelist*4096+10:], 1)
			binary.LittleEndian.PutUint64(f[at.freelist*4096+pageHeader:], at.leaf)
		}},
	} {
		damaged := bytes.Clone(whole)
		c.spoil(damaged)
		for _, size := range []string{"small", "large"} {
			t.Run(c.name+", "+size, func(t *testing.T) {
				if size == "large" {
					examineUpTo(t, 1)
				}
				for what, use := range uses {
					path := filepath.Join(t.TempDir(), "store.db")
					if err := os.WriteFile(path, damaged, 0o600); err != nil {
						t.Fatal(err)
					}
					err := use(t, path)
					switch {
					case what == "serve" && c.mends && err != nil, what == "salvage" && err != nil:
						t.Errorf("%s: %v", what, err)
					case what == "serve" && !c.mends, what == "restore" && !c.mends, what == "compact":
						if !errors.Is(err, store.ErrForeign) {
							t.Errorf("%s: got error %v, want ErrForeign", what, err)
						}
					case what == "read" && err == nil:
						t.Error("a command that reads did not notice the damage")
					}
					noted := what == "compact" && size == "large" // Compact sets examineKey
					if now, err := os.ReadFile(path); err != nil || what != "serve" && !noted && !bytes.Equal(now, damaged) {
						t.Errorf("%s: the file was changed (%v)", what, err)
					}
				}
			})
		}
	}
}

// examineUpTo changes the size above which Open does not examine a whole file.
func examineUpTo(t *testing.T, size int64) {
	t.Helper()
	was := mostAtOpen
	mostAtOpen = size
	t.Cleanup(func() { mostAtOpen = was })
}

// uses has everything that commands do with a file. Each function returns the first error.
var uses = map[string]func(t *testing.T, path string) error{
	"serve": func(t *testing.T, path string) error {
		s, err := Open(path, Options{})
		if err != nil {
			return err
		}
		err = s.Update(t.Context(), func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: "new", Value: []byte("1")}) })
		return errors.Join(err, s.Inspect(t.Context()), s.Check(t.Context()), s.Close())
	},
	"read": func(t *testing.T, path string) error {
		s, err := Open(path, Options{ReadOnly: true})
		if err != nil {
			return err
		}
		_, err = s.Copy(t.Context(), io.Discard)
		return errors.Join(err, s.Inspect(t.Context()), s.Check(t.Context()), s.View(t.Context(), func(r store.Reader) error {
			_, first := r.Setting("id0")
			_, last := r.Setting(deepKey(99))
			return errors.Join(first, last, r.EachAuditRow(func(approvers.AuditRow) error { return nil }))
		}), s.Close())
	},
	"compact": func(t *testing.T, path string) error {
		_, _, err := Compact(t.Context(), path, nil)
		return err
	},
	"salvage": func(t *testing.T, path string) error {
		_, err := Salvage(t.Context(), path, path+".salvaged", nil)
		return err
	},
	"restore": func(t *testing.T, path string) error {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = Replace(path+".restored", f, func(*Store) error { return nil })
		return err
	},
}

// If another valid page of the file replaces a page, no checksum shows the damage. Open and Salvage report that rows of the
// bucket may be missing.
func TestReplacedPage(t *testing.T) {
	whole := deep(t)
	at := shapeOf(t, whole)
	path := filepath.Join(t.TempDir(), "whole.db")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	message := uint64(pagesOf(t, path)["messages "+string(number(text(nil, "id0"), 1))][0])
	s := mustOpen(t, path)
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		page, by uint64
	}{
		{"by a page of another bucket", at.leaf, message},
		{"by a branch page below it", at.root, at.inner},
		{"by a page of rows below it", at.inner, at.leaf},
		{"the list of buckets, by a page below it", at.list, binary.LittleEndian.Uint64(whole[at.list*4096+pageHeader+8:])},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged := bytes.Clone(whole)
			copy(damaged[c.page*4096+8:(c.page+1)*4096], whole[c.by*4096+8:])
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			told := func(what string, s *Store, lost []store.Damage) {
				if rows := dump(t, s); !maps.Equal(rows, want) && !slices.ContainsFunc(lost, func(d store.Damage) bool {
					return !d.Mended && d.Key == "" && (d.Bucket == settings.String() || d.Bucket == "file")
				}) {
					t.Errorf("%s: %d of %d rows are there, and only this is listed: %v", what, len(rows), len(want), lost)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			lost, err := Salvage(t.Context(), path, path+".salvaged", nil)
			if err != nil {
				t.Fatal(err)
			}
			told("salvage", mustOpen(t, path+".salvaged"), lost)
			if s, err := Open(path, Options{}); err == nil {
				told("open", s, s.Damage())
			} else if !errors.Is(err, store.ErrForeign) {
				t.Errorf("got error %v, want ErrForeign", err)
			}
		})
	}
}
