package bolt

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"countersign/store"
)

// A store from before checksums opens, has its contents, and passes the check.
func TestStoreOfSchema5(t *testing.T) {
	packed, err := os.Open("testdata/schema5.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	want := dump(t, wellFilled(t))
	got := dump(t, s)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%q is %q, was %q", k, got[k], v)
		}
	}
	if len(got) != len(want) || len(s.Damage()) > 0 {
		t.Errorf("%d rows, want %d; damage %v", len(got), len(want), s.Damage())
	}
	err = s.Update(t.Context(), func(tx store.Tx) error {
		r, err := tx.Request("1")
		return errors.Join(err, tx.PutRequest(r))
	})
	if err := errors.Join(err, s.Check(t.Context()), s.Close()); err != nil {
		t.Error(err)
	}
	if again := mustOpen(t, path); len(again.Damage()) > 0 {
		t.Errorf("damage after the upgrade: %v", again.Damage())
	}
}
