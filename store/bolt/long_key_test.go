package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"countersign/store"
)

// If damage makes a row's key longer than any key, the row is set aside. The list of damage does not show the key's
// content, which belongs to the row beside it.
func TestLongKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := mustOpen(t, path)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for i, size := range []int{100, 200_000} {
			data := []byte(Noise(size))
			if err := tx.PutFile(store.File{Execution: "exec_1", Index: i, Name: "f"}.Of(data), data); err != nil {
				return err
			}
		}
		return tx.PutSetting(store.Setting{Key: "kept", Value: []byte("1")})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 17 {
		t.Run(fmt.Sprint("bit ", bit), func(t *testing.T) {
			broken := bytes.Clone(whole)
			pages(t, broken, func(_ uint64, page []byte, _ []pageUse) bool {
				if binary.LittleEndian.Uint16(page[8:]) != pageLeaf || binary.LittleEndian.Uint32(page[12:]) < 20 {
					return false
				}
				page[pageHeader+8+bit/8] ^= 1 << (bit % 8) // the length of the first row's key
				return true
			})
			if bytes.Equal(broken, whole) {
				t.Fatal("nothing was changed")
			}
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, path)
			if len(s.Damage()) == 0 {
				t.Error("the damage is not listed")
			}
			for _, x := range s.Damage() {
				if len(x.String()) > 1500 {
					t.Errorf("a text of %d bytes: %.100s", len(x.String()), x)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Salvage(t.Context(), path, filepath.Join(t.TempDir(), "salvaged.db"), nil); err != nil {
				t.Errorf("salvage: %v", err)
			}
		})
	}
}
