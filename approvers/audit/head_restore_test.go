package audit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/config"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// spoilHead changes a bit of a stored head.
func spoilHead(t *testing.T, path string, number uint64) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, key := tx.Bucket([]byte("audit_heads")), binary.BigEndian.AppendUint64(nil, number)
		v := bytes.Clone(b.Get(key))
		v[len(v)/2] ^= 1
		return b.Put(key, v)
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A damaged head does not make a store an old copy. The head is written again from the file of heads, and the history
// continues.
func TestDamagedHead(t *testing.T) {
	testkit.SkipIfShort(t)
	for _, number := range []uint64{1, 2, 4} {
		for _, again := range []uint64{0, number + 1} { // another damaged head
			if again > 4 {
				continue
			}
			t.Run(fmt.Sprint(number, again), func(t *testing.T) {
				s := newSealedStore(t)
				at := config.Audit{Key: filepath.Join(t.TempDir(), "key"), Heads: filepath.Join(t.TempDir(), "heads")}
				keys, err := OpenKeyFile(t.Context(), at.Key, s.db, s.log)
				if err != nil {
					t.Fatal(err)
				}
				s.keys = keys
				s.head(4)
				NewHeadShipper(HeadFile(at.Heads), s.db, s.log).Ship(t.Context())
				if err := s.db.Close(); err != nil {
					t.Fatal(err)
				}
				spoilHead(t, s.path, number)
				want := []uint64{number}
				if again > 0 {
					spoilHead(t, s.path, again)
					want = append(want, again)
				}
				read, err := bolt.Open(s.path, bolt.Options{AsIs: true})
				if err != nil {
					t.Fatal(err)
				}
				if older, err := FindOlder(t.Context(), s.path, at.Heads, read); err != nil || older != nil {
					t.Errorf("as it is: got %v, %v", older, err)
				}
				if err := read.Close(); err != nil {
					t.Fatal(err)
				}
				s.open(s.path)
				restored, err := RestoreHeads(t.Context(), at, s.db)
				if err != nil || !slices.Equal(restored, want) {
					t.Errorf("restored %v, want %v (%v)", restored, want, err)
				}
				if older, err := FindOlder(t.Context(), s.path, at.Heads, s.db); err != nil || older != nil {
					t.Errorf("got %v, %v", older, err)
				}
				if damaged, _ := store.DamageOf(s.db); len(damaged) > 0 {
					t.Errorf("still damaged: %v", damaged)
				}
				s.head(1)
				keyFile, err := ReadKeyFile(at.Key)
				if err != nil {
					t.Fatal(err)
				}
				report, err := Verify(t.Context(), s.db, VerifyOptions{Keys: keyFile.Public, Guard: bolt.Guard})
				if err != nil || report.Faults() > 0 {
					t.Errorf("%d faults, %v", report.Faults(), err)
				}
			})
		}
	}
}

// RestoreHeads adds nothing to an older copy of a store.
func TestHeadsOfNewerStore(t *testing.T) {
	testkit.SkipIfShort(t)
	s := newSealedStore(t)
	at := config.Audit{Key: filepath.Join(t.TempDir(), "key"), Heads: filepath.Join(t.TempDir(), "heads")}
	keys, err := OpenKeyFile(t.Context(), at.Key, s.db, s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.keys = keys
	s.head(2)
	var old bytes.Buffer
	if _, err := s.db.Copy(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	s.head(1)
	NewHeadShipper(HeadFile(at.Heads), s.db, s.log).Ship(t.Context())
	path := filepath.Join(t.TempDir(), "old.db")
	if err := os.WriteFile(path, old.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.open(path)
	if restored, err := RestoreHeads(t.Context(), at, s.db); err != nil || len(restored) > 0 {
		t.Errorf("restored %v, %v", restored, err)
	}
	if older, err := FindOlder(t.Context(), path, at.Heads, s.db); err != nil || older == nil || older.Number != 3 {
		t.Errorf("got %v, %v", older, err)
	}
}
