package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"countersign/store"
)

// A store that is opened for reading stays as it is: it is neither repaired nor upgraded.
func TestReadOnly(t *testing.T) {
	whole := wreckable(t)
	torn := bytes.Clone(whole)
	pages(t, torn, func(_ uint64, page []byte, _ []pageUse) bool {
		if binary.LittleEndian.Uint16(page[8:]) != pageLeaf || page[pageHeader] == leafBucket {
			return false
		}
		page[12] ^= 1
		return true
	})
	for _, c := range []struct {
		name  string
		file  []byte
		opens error // the error of Open
		reads error // the error of View
		lists bool  // the damage is listed
	}{
		{"whole", whole, nil, nil, false},
		{"a damaged row", bytes.ReplaceAll(whole, []byte(`"key":"id1"`), []byte(`"kEy":"id1"`)), nil, nil, true},
		{"a damaged page", torn, nil, store.ErrDamaged, true},
		{"version 6", unpacked(t, "testdata/schema6.db.gz"), nil, nil, false},
		{"version 9", unpacked(t, "testdata/schema9.db.gz"), nil, nil, false},
		{"version 5", unpacked(t, "testdata/schema5.db.gz"), errOlder, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{ReadOnly: true})
			if !errors.Is(err, c.opens) {
				t.Fatalf("got error %v, want %v", err, c.opens)
			}
			if err == nil {
				err := s.View(t.Context(), func(r store.Reader) error { _, err := r.AuditChains("", 1); return err })
				if !errors.Is(err, c.reads) {
					t.Errorf("View: got error %v, want %v", err, c.reads)
				}
				if got := len(s.Damage()) > 0; got != c.lists {
					t.Errorf("the damage is %v", s.Damage())
				}
				if err := s.Inspect(t.Context()); err != nil {
					t.Errorf("Inspect: %v", err)
				}
				if check := s.Check(t.Context()); (check != nil) != c.lists {
					t.Errorf("Check: %v", check)
				}
				if err := s.Update(t.Context(), func(store.Tx) error { return nil }); !errors.Is(err, errReadOnly) {
					t.Errorf("Update: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, c.file) {
				t.Errorf("the file was changed (%v)", err)
			}
			if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
				t.Errorf("files: %v (%v)", files, err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.db"), Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
