package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
)

// erasable makes a store with rows that can be erased. All rows belong to one conversation.
func erasable(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s := mustOpen(t, path)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		var errs []error
		var head approvers.AuditRecord
		for n := range 3 {
			p := approvers.AuditPayload{Chain: "req_1", Seq: uint64(n) + 1, Salt: []byte("salt"), Body: bytes.Repeat([]byte("text "), 20)}
			head = approvers.AuditRecord{Chain: "req_1", At: benchTime, Kind: approvers.AuditProposed, PayloadHash: p.Hash()}.Link(head)
			errs = append(errs,
				tx.AppendAudit(head, &p),
				tx.PutMessage(store.Message{Conversation: "conv", Seq: uint64(n) + 1, Text: "text"}),
				tx.PutRendering(store.Rendering{OutboxMessage: "card", Post: uint64(n) + 1, Body: []byte("body")}),
				tx.PutFile(store.File{Execution: "exec", Index: n, Name: "f"}.Of([]byte("data")), []byte("data")),
				tx.AddCounter(store.Counter{Key: "tokens/U1", At: benchTime.Add(time.Duration(n) * time.Minute), ID: "turn", N: 5}),
			)
		}
		return errors.Join(append(errs,
			tx.PutConversation(store.Conversation{ID: "conv", Place: "C", Messages: 3}),
			tx.PutExecution(approvers.Execution{ID: "exec", Conversation: "conv"}),
			tx.PutOutboxMessage(store.OutboxMessage{ID: "card", Ref: "conv"}),
		)...)
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// spoilRow changes a bit of the value of a bucket's first row.
func spoilRow(t *testing.T, path string, in bucket) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		k, v := tx.Bucket([]byte(in.String())).Cursor().First()
		v = bytes.Clone(v)
		v[len(v)/2] ^= 1
		return tx.Bucket([]byte(in.String())).Put(bytes.Clone(k), v)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Damaged rows can be erased, and do not prevent the erasure of the other rows. Then the store has no damage any more.
func TestEraseDamaged(t *testing.T) {
	conversation := func(tx store.Tx) error {
		done, err := tx.EraseConversation("conv", 1000)
		if err == nil && !done {
			err = errors.New("something is left")
		}
		return err
	}
	wants := func(want int) func(n int, err error) error {
		return func(n int, err error) error {
			if err == nil && n != want {
				err = fmt.Errorf("%d rows were erased, want %d", n, want)
			}
			return err
		}
	}
	for _, c := range []struct {
		name  string
		in    bucket
		erase func(tx store.Tx) error
	}{
		{"payloads", auditPayloads, func(tx store.Tx) error {
			seqs, err := tx.ErasePayloads("req_1", 1, 2)
			return wants(2)(len(seqs), err)
		}},
		{"a chain's payload", auditPayloads, func(tx store.Tx) error { return wants(3)(tx.PruneChain("req_1")) }},
		{"a chain's record", audit, func(tx store.Tx) error { return wants(3)(tx.PruneChain("req_1")) }},
		{"renderings", renderings, func(tx store.Tx) error { return wants(2)(tx.EraseRenderings("card", 3)) }},
		{"files", files, func(tx store.Tx) error { return wants(3)(tx.EraseFiles("exec")) }},
		{"file_data", fileData, func(tx store.Tx) error { return wants(3)(tx.EraseFiles("exec")) }},
		{"a conversation's message", messages, conversation},
		{"a conversation's rendering", renderings, conversation},
		{"a conversation's file", files, conversation},
		{"the bytes of a conversation's file", fileData, conversation},
		{"counters", counters, func(tx store.Tx) error { return wants(3)(tx.PruneCounters(benchTime.Add(time.Hour), 1000)) }},
		{"counters by time", counterTime, func(tx store.Tx) error { return wants(3)(tx.PruneCounters(benchTime.Add(time.Hour), 1000)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := erasable(t)
			spoilRow(t, path, c.in)
			for _, asIs := range []bool{true, false} { // the damage is found while the store is in use, or when it is opened
				s, err := Open(path, Options{AsIs: asIs})
				if err != nil {
					t.Fatal(err)
				}
				undo := errors.New("undo")
				err = s.Update(t.Context(), func(tx store.Tx) error {
					if err := c.erase(tx); err != nil || !asIs {
						return err
					}
					return undo
				})
				if asIs && !errors.Is(err, undo) || !asIs && err != nil {
					t.Errorf("as it is %v: %v", asIs, err)
				}
				damaged, _ := store.DamageOf(s)
				if !asIs && len(damaged) > 0 {
					t.Errorf("still damaged: %v", damaged)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s := mustOpen(t, path)
			if damaged, _ := store.DamageOf(s); len(damaged) > 0 {
				t.Errorf("opened again, it is damaged: %v", damaged)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
