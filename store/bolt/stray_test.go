package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"countersign/store"
)

// If a single bit of a page flips, the repair must not bring back rows that were deleted. Free pages still have these
// rows.
func TestDeletedRowsStayDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := mustOpen(t, path)
	update := func(fn func(tx store.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	const conversations, clicks = 240, 200
	id := func(i int) string { return fmt.Sprintf("conversation %04d", i) }
	for i := range conversations {
		update(func(tx store.Tx) error {
			for seq := range uint64(3) {
				if err := tx.PutMessage(store.Message{Conversation: id(i), Seq: seq + 1, Text: "secret" + Noise(300)}); err != nil {
					return err
				}
			}
			return tx.PutConversation(store.Conversation{ID: id(i), Place: id(i), Messages: 3})
		})
	}
	for i := range clicks {
		update(func(tx store.Tx) error {
			return tx.PutInbox(store.Inbox{ID: id(i), Kind: store.InboxInteraction, ReceivedAt: benchTime, Payload: []byte(Noise(600))})
		})
	}
	for i := range clicks {
		update(func(tx store.Tx) error {
			x, err := tx.Inbox(id(i))
			if err != nil {
				return err
			}
			x.Payload, x.HandledAt = nil, benchTime.Add(time.Minute)
			return tx.PutInbox(x)
		})
	}
	update(func(tx store.Tx) error { _, err := tx.ForgetInbox(benchTime.Add(time.Hour), clicks-40); return err })
	for i := range conversations {
		if i%6 != 5 {
			update(func(tx store.Tx) error { _, err := tx.EraseConversation(id(i), 1000); return err })
		}
	}
	update(func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: "last", Value: []byte("1")}) })
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var leaves []uint64
	pages(t, whole, func(id uint64, page []byte, use []pageUse) bool {
		if id+1 < uint64(len(use)) && use[id+1] != pageReached && binary.LittleEndian.Uint16(page[8:]) == pageLeaf {
			leaves = append(leaves, id)
		}
		return false
	})
	if len(leaves) == 0 { // about a dozen pages: the pages that transactions use differ from run to run
		t.Fatal("no page is next to a free page")
	}
	for _, page := range leaves {
		for bit := range 3 {
			broken := bytes.Clone(whole)
			broken[page*4096+12] ^= 1 << bit // the number of overflow pages
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{})
			if err != nil {
				continue // the page has the list of buckets
			}
			for k := range dump(t, s) {
				if !has(want, k) {
					t.Errorf("page %d, bit %d: the deleted row %q is back", page, bit, k)
					break
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
