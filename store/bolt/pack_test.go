package bolt

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/record"
)

// The store reads any value exactly as it was written, with and without compression.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SampledFrom([]bucket{renderings, auditPayloads, requests, audit, files}).Draw(t, "bucket")
		value := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) []byte {
				return []byte(`{"surface":"s","body":"` + strings.Repeat(rapid.StringMatching(`[A-Za-z0-9+/]{4}`).Draw(t, "base64"), rapid.IntRange(0, 200).Draw(t, "times")) + `","at":"x"}`)
			}),
			rapid.Custom(func(t *rapid.T) []byte { return append([]byte("{"), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...) }),
			rapid.Custom(func(t *rapid.T) []byte {
				return append([]byte{0}, bytes.Repeat([]byte(`"body":"e30="`+"\n"), rapid.IntRange(0, 90).Draw(t, "times"))...)
			}),
		).Draw(t, "value")
		switch in {
		case requests:
			value = append(header{version: rapid.Uint64Min(1).Draw(t, "version"), birth: rapid.Uint64().Draw(t, "birth")}.append(nil), value...)
		case audit:
			value = append(number(nil, rapid.SampledFrom([]uint64{0, 1, approvers.NoLeaf}).Draw(t, "leaf")), value...)
		}
		stored := value
		if packed, ok := pack([]byte("before"), in, value); ok {
			stored = packed[len("before"):]
		}
		if in == audit && len(value) > auditHeader {
			stored = compress(nil, in, value)
		}
		got, err := unpack(in, stored)
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("%q is read as %q, %v", value, got, err)
		}
		if in == requests {
			h, _, _ := cutHeader(value)
			if version, birth := numbersOf(stored); version != h.version || birth != h.birth {
				t.Fatalf("the numbers of %q are %d and %d, want %d and %d", stored, version, birth, h.version, h.birth)
			}
		}
	})
}

// The stored form of a card takes at most a fifth of the card's size. If a row with a valid checksum can't be unpacked,
// a read reports the damage.
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

// The store reads values that programs of version 7 compressed with flate.
func TestFlate(t *testing.T) {
	s := opened(t)
	shown := store.Rendering{OutboxMessage: "s", Post: 1, Body: []byte("the text of a card"), At: benchTime}
	js, err := record.Append(nil, &shown)
	if err != nil {
		t.Fatal(err)
	}
	for mark, value := range map[byte][]byte{flatePacked: js, flateBody: splitBody(js)} {
		out := bytes.NewBuffer([]byte{mark})
		w, err := flate.NewWriterDict(out, flate.DefaultCompression, cardDictionary)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(value)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		key := number(text(nil, "s"), 1)
		err = s.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("renderings")).Put(key, withChecksum(renderings, key, out.Bytes()))
		})
		if err == nil {
			err = s.View(t.Context(), func(r store.Reader) error {
				got, err := r.Rendering("s", 1)
				if !reflect.DeepEqual(got, shown) {
					t.Errorf("mark %d: got %+v", mark, got)
				}
				return err
			})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A record is compressed only when it is closed (see table.closed). Compressing an open record would repeat the
// compression at every change of the record.
func TestClosedRecordsArePacked(t *testing.T) {
	s := opened(t)
	r := approvers.Request{ID: "r", State: approvers.Pending, CreatedAt: benchTime, Preview: strings.Repeat("words ", 50)}
	for _, state := range []approvers.State{approvers.Pending, approvers.Approved, approvers.Rejected} {
		r.State = state
		err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutRequest(r) })
		if err != nil {
			t.Fatal(err)
		}
		r.Version++
		err = s.db.View(func(tx *bbolt.Tx) error {
			if v := tx.Bucket([]byte("requests")).Get([]byte("r")); (v[0] == packedRecord) == state.Open() || (len(v) < 200) == state.Open() {
				t.Errorf("%s: %d bytes are stored: %q", state, len(v), v)
			}
			return nil
		})
		if err == nil {
			err = s.View(t.Context(), func(x store.Reader) error {
				if got, err := x.Request("r"); err != nil || got.Preview != r.Preview || got.State != state {
					t.Errorf("%s: got %+v, %v", state, got, err)
				}
				return nil
			})
		}
		if err := errors.Join(err, s.Check(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// Open accepts a store of an earlier version. The opened store has the contents of the earlier store, and passes the
// check.
func TestEarlierStores(t *testing.T) {
	for _, version := range []int{5, 6, 7, 9} {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testEarlierStore(t, fmt.Sprintf("testdata/schema%d.db.gz", version)) })
	}
}

// unpacked returns the content of a file that is compressed with gzip.
func unpacked(t *testing.T, name string) []byte {
	t.Helper()
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
	return file
}

func testEarlierStore(t *testing.T, name string) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, unpacked(t, name), 0o600); err != nil {
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
	err := s.Update(t.Context(), func(tx store.Tx) error {
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

// Noise returns about n bytes of text that can hardly be compressed.
func Noise(n int) string {
	random := make([]byte, 3*n/4)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	return base64.StdEncoding.EncodeToString(random)
}
