package postgres_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// TestUnsealedJournal reads the entries that no head covers, in pages. A page may start at any entry, or after the last
// entry. The reading transaction itself adds some of the entries.
func TestUnsealedJournal(t *testing.T) {
	t.Parallel()
	s := open(t, at(empty(t)))
	add := func(tx store.Tx, n int) error {
		a := approvers.AuditRecord{Chain: fmt.Sprintf("chain%02d", n), At: time.Unix(1, 0), Kind: approvers.AuditProposed}
		return tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil)
	}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for n := range 10 {
			if err := add(tx, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx store.Tx) error {
		check := func(from uint64, limit int, want ...int) {
			t.Helper()
			list, err := tx.Journal(from, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != len(want) {
				t.Fatalf("%d entries from %d, want %d", len(list), from, len(want))
			}
			for i, e := range list {
				if e.Leaf != from+uint64(i) || e.Chain != fmt.Sprintf("chain%02d", want[i]) {
					t.Errorf("from %d: %+v, want chain %d", from, e, want[i])
				}
			}
		}
		check(0, 3, 0, 1, 2)
		check(3, 3, 3, 4, 5)
		check(6, 3, 6, 7, 8)
		check(2, 2, 2, 3)
		check(12, 3)
		check(12, 3)
		check(9, 3, 9)
		check(10, 3)
		for n := range 4 {
			if err := add(tx, 10+n); err != nil {
				return err
			}
		}
		check(8, 3, 8, 9, 10)
		check(11, 3, 11, 12, 13)
		check(14, 3)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If somebody deleted the last record of a chain by hand, but not its payload, the chain can still be written.
func TestStrayPayload(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, asBot(name))
	add := func() error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			head, err := tx.AuditHead("req_1")
			if store.IgnoreNotFound(err) != nil {
				return err
			}
			p := &approvers.AuditPayload{Chain: "req_1", Seq: head.Seq + 1, Salt: []byte(rand.Text()), Body: []byte("{}")}
			a := approvers.AuditRecord{Chain: "req_1", At: time.Unix(1, 0), Kind: approvers.AuditProposed, PayloadHash: p.Hash()}
			return tx.AppendAudit(a.Link(head), p)
		})
	}
	if err := errors.Join(add(), add(), execIn(name, "DELETE FROM countersign.audit_records WHERE seq = 2"), add(), add()); err != nil {
		t.Fatal(err)
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		for seq := range uint64(3) {
			if _, err := r.AuditPayload("req_1", seq+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
