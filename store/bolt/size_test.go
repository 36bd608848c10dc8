package bolt_test

import (
	"bytes"
	"os"
	"testing"

	"countersign/store"
)

// TestSize compares the result of Size with the file's size, before and after a write.
func TestSize(t *testing.T) {
	s, path := openIn(t)
	before, err := s.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx store.Tx) error {
		return tx.PutInbox(store.Inbox{ID: "large", Kind: store.InboxEvent, Payload: bytes.Repeat([]byte("0123456789abcdef"), 16<<10)})
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if before <= 0 || after <= before || after > file.Size() {
		t.Errorf("%d bytes, then %d; the file has %d", before, after, file.Size())
	}
}
