package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// wreck damages one byte or one page of a copy of a file. what describes the damage.
func wreck(whole []byte, random *rand.Rand, page bool) (broken []byte, what string) {
	broken = bytes.Clone(whole)
	if !page {
		at := random.IntN(len(broken))
		was := broken[at]
		for broken[at] == was {
			broken[at] = byte(random.Uint32())
		}
		return broken, fmt.Sprintf("byte %d of page %d: %#x became %#x", at%4096, at/4096, was, broken[at])
	}
	n := random.IntN(len(broken) / 4096)
	p := broken[n*4096 : (n+1)*4096]
	other := whole[random.IntN(len(broken)/4096)*4096:][:4096]
	kind := random.IntN(4)
	switch kind {
	case 0:
		clear(p)
	case 1:
		clear(p[2048:])
	case 2:
		copy(p[2048:], other[2048:])
	case 3:
		for i := 2048; i < 4096; i++ {
			p[i] = byte(random.Uint32())
		}
	}
	return broken, fmt.Sprintf("page %d: %s", n, []string{"all zero", "half zero", "half of another page", "half garbage"}[kind])
}

// dump returns every undamaged row of a store, except the rows of set_aside.
func dump(t *testing.T, s *Store) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := s.db.View(func(tx *bbolt.Tx) error {
		for in := range allBuckets {
			if in == setAside {
				continue
			}
			err := tx.Bucket([]byte(bucketNames[in])).ForEach(func(k, v []byte) error {
				if stateOf(in, k, v) == rowSound {
					rows[in.String()+" "+string(k)] = string(valueOf(in, v))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// wreckable returns the file of a store with rows in every bucket except set_aside. Some buckets have their own pages,
// and other buckets share pages.
func wreckable(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole.db")
	s := mustOpen(t, path)
	for n := range 12 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			var errs []error
			id := fmt.Sprint("id", n)
			var head approvers.AuditRecord
			for _, kind := range []approvers.AuditKind{approvers.AuditProposed, approvers.AuditShown, approvers.AuditDecided} {
				p := approvers.AuditPayload{Chain: id, Seq: head.Seq + 1, Salt: []byte(id), Body: bytes.Repeat([]byte(kind), 20)}
				head = approvers.AuditRecord{Chain: id, At: benchTime, Kind: kind, PayloadHash: p.Hash()}.Link(head)
				errs = append(errs, tx.AppendAudit(head, &p))
			}
			for seq := range uint64(4) {
				errs = append(errs, tx.PutMessage(store.Message{Conversation: id, Seq: seq + 1, Text: strings.Repeat("words ", 100)}))
			}
			errs = append(errs,
				tx.PutConversation(store.Conversation{ID: id, Place: "p" + id, Messages: 4}),
				tx.PutTurn(approvers.Turn{ID: id, Conversation: id}),
				tx.PutCall(store.Call{ID: id, Turn: id, Args: strings.Repeat("args ", 50)}),
				tx.PutRequest(approvers.Request{
					ID: id, State: approvers.Pending, Conversation: id, CreatedAt: benchTime, ClosedBy: approvers.PersonID("T/" + id), Args: bytes.Repeat([]byte("a"), 900*n),
				}),
				tx.PutExecution(approvers.Execution{ID: id, Conversation: id, Args: bytes.Repeat([]byte("a"), 300)}),
				tx.PutElicitation(approvers.Elicitation{ID: id, Execution: id}),
				tx.PutFile(store.File{Execution: id, Name: "f"}.Of([]byte("data"+id)), []byte("data"+id)),
				tx.AddCounter(store.Counter{Key: id, At: benchTime, ID: id, N: 1}),
				tx.PutGrant(approvers.Grant{ID: id, State: approvers.GrantLive, Tool: "t" + id}),
				tx.PutAbsence(approvers.Absence{Who: approvers.PersonID(id)}),
				tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: id, Due: benchTime, Affinity: store.ToConversation + id}),
				tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: id, Due: benchTime}),
				tx.PutInbox(store.Inbox{ID: id, ReceivedAt: benchTime}),
				tx.PutInbox(store.Inbox{ID: "h" + id, ReceivedAt: benchTime, HandledAt: benchTime}),
				tx.PutOutboxMessage(store.OutboxMessage{ID: id, Ref: id, Channel: "C", TS: id}),
				tx.PutRendering(store.Rendering{OutboxMessage: id, Post: 1, Body: bytes.Repeat([]byte("b"), 500)}),
				tx.PutSetting(store.Setting{Key: id, Value: []byte("1")}),
				tx.PutHead(store.Head{Number: uint64(n) + 1, Size: uint64(n) + 1, Note: "signed"}),
			)
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Check(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := int(lastPage(t, path)) * 4096 // the pages after the last used page were never written
	return whole[:max(used, smallest)]
}

func lastPage(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := metas(f, 4096)
	if err != nil {
		t.Fatal(err)
	}
	return m.pages
}

// For every kind of damage, opening the file does not panic. If a row is lost or changed, damage is reported. A
// repaired store has no additional row, and the next Open needs no repairs. COUNTERSIGN_DAMAGE="1000 200" makes the
// test damage more bytes and pages.
func TestDamagedFile(t *testing.T) {
	flips, pages, seed := testkit.Damage(t, 60, 20)
	whole := wreckable(t)
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	want := dump(t, s)
	if found := s.Damage(); len(found) > 0 {
		t.Fatalf("a whole store is damaged: %v", found)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 7))
	refused, mended, lost, untouched := 0, 0, 0, 0
	for i := range flips + pages {
		broken, what := wreck(whole, random, i >= flips)
		dir := t.TempDir()
		path := filepath.Join(dir, "store.db")
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		if err != nil {
			refused++
			if !errors.Is(err, store.ErrForeign) && !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: refused with %v", what, err)
			}
			continue
		}
		got, told := dump(t, s), s.Damage()
		differs := 0
		for k, v := range want {
			if got[k] != v || len(got[k]) == 0 && len(v) == 0 && !has(got, k) {
				differs++
			}
		}
		var open []store.Damage
		for _, x := range told {
			if !x.Mended {
				open = append(open, x)
			}
		}
		switch {
		case differs > 0 && len(open) == 0:
			t.Errorf("%s: %d rows differ, and only %v is reported", what, differs, told)
		case differs > 0:
			lost++
		case len(told) > 0:
			mended++
		default:
			untouched++
		}
		for k := range got {
			if !has(want, k) {
				t.Errorf("%s: there is a row %q that was not there", what, k)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		s, err = Open(path, Options{})
		if err != nil {
			t.Fatalf("%s: it was mended, and does not open again: %v", what, err)
		}
		for _, x := range s.Damage() {
			if x.Mended {
				t.Errorf("%s: it was mended, and has to be mended again: %v", what, x)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	}
	t.Logf("flips=%d pages=%d seed=%d: untouched=%d mended=%d with_marked_rows=%d refused=%d", flips, pages, seed, untouched, mended, lost, refused)
}

func has(rows map[string]string, k string) bool {
	_, there := rows[k]
	return there
}
