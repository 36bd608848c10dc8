package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/bolt"
)

// withHeads is a store with the signed heads of another store.
type withHeads struct {
	store.Store
	heads []store.Head
}

type withHeadsReader struct {
	store.Reader
	heads []store.Head
}

func (s withHeads) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(withHeadsReader{r, s.heads}) })
}

func (r withHeadsReader) Heads(after uint64, _ int) ([]store.Head, error) {
	return r.heads[after:], nil
}

// A tamperer replaces one record and its entry in the journal, but can't sign the heads again. The history is
// consistent except for the heads' signed roots, so only the comparison of these roots with the journal finds the
// change.
func TestVerifyComparesHeadsWithJournal(t *testing.T) {
	signed := newSealedStore(t)
	signed.head(3)
	var heads []store.Head
	err := signed.db.View(t.Context(), func(r store.Reader) (err error) {
		heads, err = r.Heads(0, 10)
		return err
	})
	if err != nil || len(heads) != 3 {
		t.Fatalf("%d heads, %v", len(heads), err)
	}
	for replaced := range 4 { // 0: no record
		changed := newSealedStore(t)
		for n := range 3 {
			changed.n = n
			if n+1 == replaced {
				changed.n += 10
			}
			changed.head(1)
		}
		want := ""
		if replaced > 0 {
			want = fmt.Sprintf("head %d: the journal is not the one that was signed; the change is among its records %d to %d", replaced, replaced-1, replaced-1)
		}
		signed.verifies(fmt.Sprintf("record %d was replaced", replaced), withHeads{changed.db, heads}, want)
	}
}

// A payload may be missing only if a record of its chain says that it was erased.
func TestVerifyFindsMissingPayload(t *testing.T) {
	s := newSealedStore(t)
	var last approvers.AuditRecord
	add := func(a approvers.AuditRecord, payload string, change func(store.Tx) error) {
		t.Helper()
		a.Chain, a.At = "req_1", time.Unix(1, 0)
		var p *approvers.AuditPayload
		if payload != "" {
			p = &approvers.AuditPayload{Chain: a.Chain, Seq: last.Seq + 1, Salt: []byte("0123456789abcdef"), Body: []byte(payload)}
			a.PayloadHash = p.Hash()
		}
		last = a.Link(last)
		err := s.db.Update(t.Context(), func(tx store.Tx) error { return errors.Join(tx.AppendAudit(last, p), change(tx)) })
		if err == nil {
			_, err = s.workflow.History.Seal(t.Context(), s.keys...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(store.Tx) error { return nil }
	add(approvers.AuditRecord{Kind: approvers.AuditProposed}, "refund 5", nothing)
	s.verifies("nothing is missing", s.db, "")
	add(approvers.AuditRecord{Kind: approvers.AuditDecided}, "", func(tx store.Tx) error {
		_, err := tx.ErasePayloads(last.Chain)
		return err
	})
	s.verifies("no record says that it was erased", s.db, "chain req_1: the payload of record 1 is missing, and no record says that it was erased")
	add(approvers.AuditRecord{Kind: approvers.AuditErased, Facts: approvers.Erasure{Seqs: []uint64{1}}.Facts()}, "", nothing)
	s.verifies("a record says that it was erased", s.db, "")
}

// The method "verifies" verifies a store with the fixture's key. The verification must find the fault want, or no fault
// if want is "".
func (s *sealedStore) verifies(what string, db store.Store, want string) {
	s.Helper()
	report, err := Verify(s.Context(), db, VerifyOptions{Keys: []string{s.keys[0].Public}, Guard: bolt.Guard})
	if err != nil {
		s.Fatal(err)
	}
	var faults []string
	if want != "" {
		faults = []string{want}
	}
	if !slices.Equal(report.faults, faults) {
		s.Errorf("%s: got %q, want %q", what, report.faults, faults)
	}
}
