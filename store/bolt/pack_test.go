package bolt

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"countersign/store"
)

// Any value is read as it was written, whether it is compressed or not.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SampledFrom([]bucket{renderings, auditPayloads, requests}).Draw(t, "bucket")
		value := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) []byte {
				return []byte(`{"surface":"s","body":"` + strings.Repeat(rapid.StringMatching(`[A-Za-z0-9+/]{4}`).Draw(t, "base64"), rapid.IntRange(0, 200).Draw(t, "times")) + `","at":"x"}`)
			}),
			rapid.Custom(func(t *rapid.T) []byte { return append([]byte("{"), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...) }),
			rapid.Custom(func(t *rapid.T) []byte {
				return append([]byte{0}, bytes.Repeat([]byte(`"body":"e30="`+"\n"), rapid.IntRange(0, 90).Draw(t, "times"))...)
			}),
		).Draw(t, "value")
		got, err := unpack(in, pack(in, value))
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("%q is read as %q, %v", value, got, err)
		}
	})
}

// A card takes less than a fifth of its size in the file. A compressed row that is damaged, or that another program
// wrote, is reported.
func TestCardIsPacked(t *testing.T) {
	s := opened(t)
	golden, err := os.ReadFile("../../bot/render/testdata/card_pending.json")
	var compact bytes.Buffer
	if err := errors.Join(err, json.Compact(&compact, golden)); err != nil {
		t.Fatal(err)
	}
	card := compact.Bytes()
	shown := store.Rendering{OutboxMessage: "s", Post: 1, Body: card, At: benchTime}
	err = s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutOutboxMessage(store.OutboxMessage{ID: "s", Ref: "r"}), tx.PutRendering(shown))
	})
	if err != nil {
		t.Fatal(err)
	}
	key := number(text(nil, "s"), 1)
	size := func() (n int) {
		err := s.db.View(func(tx *bbolt.Tx) error {
			n = len(tx.Bucket([]byte("renderings")).Get(key))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := size(); 5*got > len(card) {
		t.Errorf("%d bytes are stored in %d", len(card), got)
	}
	read := func() (got store.Rendering, err error) {
		err = s.View(t.Context(), func(r store.Reader) error {
			got, err = r.Rendering("s", 1)
			return err
		})
		return got, err
	}
	if got, err := read(); err != nil || !bytes.Equal(got.Body, card) {
		t.Errorf("got %s, %v", got.Body, err)
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("renderings")).Put(key, withChecksum(renderings, key, []byte{packed, 0xff, 0xff}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(); !errors.Is(err, store.ErrDamaged) || !strings.Contains(fmt.Sprint(err), "can't be unpacked") {
		t.Errorf("got error %v for a row that can't be unpacked", err)
	}
}

// A store of an earlier version opens, has its contents, and passes the check.
func TestEarlierStores(t *testing.T) {
	for _, version := range []int{5, 6} {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testEarlierStore(t, fmt.Sprintf("testdata/schema%d.db.gz", version)) })
	}
}

func testEarlierStore(t *testing.T, name string) {
	compressed, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer compressed.Close()
	plain, err := gzip.NewReader(compressed)
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
