package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
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

// distort changes the structure of a copy of a file: a number in the header of a page or in an element, the order of
// elements, a whole page, or the length of the file. The parameter used lists the pages in use: an older version of a page
// on a free page would be valid in the place of this page. what describes the damage.
func distort(whole []byte, used []uint64, random *rand.Rand) (broken []byte, what string) {
	broken = bytes.Clone(whole)
	pages := len(broken) / 4096
	page := func() (n uint64, p []byte) {
		n = used[random.IntN(len(used))]
		return n, broken[n*4096 : (n+1)*4096]
	}
	n, p := page()
	count := int(binary.LittleEndian.Uint16(p[10:]))
	element := func() []byte { return p[pageHeader+pageElement*random.IntN(max(1, min(count, 255))):] }
	small := func() uint32 { return uint32(random.IntN(3 * 4096)) }
	switch kind := random.IntN(12); kind {
	case 0:
		to := []uint16{pageBranch, pageLeaf, 4, pageFreelist, 0, uint16(random.Uint32())}[random.IntN(6)]
		what = fmt.Sprintf("page %d: kind %#x became %#x", n, p[8], to)
		binary.LittleEndian.PutUint16(p[8:], to)
	case 1:
		to := []uint32{0, 1, 2, uint32(random.IntN(pages)), math.MaxUint32}[random.IntN(5)]
		what = fmt.Sprintf("page %d: overflow became %d", n, to)
		binary.LittleEndian.PutUint32(p[12:], to)
	case 2:
		to := []uint16{0, 1, uint16(count - 1), uint16(count + 1), math.MaxUint16}[random.IntN(5)]
		what = fmt.Sprintf("page %d: %d elements became %d", n, count, to)
		binary.LittleEndian.PutUint16(p[10:], to)
	case 3, 4:
		at := 4 * random.IntN(4)
		what = fmt.Sprintf("page %d: the number at %d of an element changed", n, at)
		binary.LittleEndian.PutUint32(element()[at:], small())
	case 5:
		a, b := element(), element()
		what = fmt.Sprintf("page %d: two elements are exchanged", n)
		for i := range pageElement {
			a[i], b[i] = b[i], a[i]
		}
	case 6:
		from, other := page()
		what = fmt.Sprintf("page %d: it became page %d, with its own number", n, from)
		copy(p, other)
		binary.LittleEndian.PutUint64(p, n)
	case 7:
		to := random.IntN(pages)
		what = fmt.Sprintf("page %d: it names page %d", n, to)
		binary.LittleEndian.PutUint64(element()[8:], uint64(to))
	case 8:
		to, other := page()
		was := binary.LittleEndian.Uint16(other[8:])
		what = fmt.Sprintf("pages %d and %d (kind %d) are exchanged, with their own numbers", n, to, was)
		for i := 8; i < 4096; i++ {
			p[i], other[i] = other[i], p[i]
		}
	case 9:
		to := smallest + random.IntN(len(broken)-smallest)
		broken, what = broken[:to], fmt.Sprintf("cut to %d bytes", to)
	case 10:
		more := make([]byte, random.IntN(20_000))
		for i := range more {
			more[i] = byte(random.Uint32())
		}
		broken, what = append(broken, more...), fmt.Sprintf("%d bytes of garbage at the end", len(more))
	case 11:
		list := binary.LittleEndian.Uint64(broken[4096+metaFreelist:]) * 4096
		at := list + uint64([]int{8, 10, 12, 16, 24, 32}[random.IntN(6)])
		what = fmt.Sprintf("the list of free pages: the number at %d changed", at-list)
		binary.LittleEndian.PutUint32(broken[at:], uint32(random.IntN(2*pages)))
	}
	return broken, what
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
// repaired store has no additional row, and the next Open needs no repairs. Compact refuses the
// file, or keeps all rows. COUNTERSIGN_DAMAGE="1000 200" makes the test damage more bytes, and pages in each of two ways.
func TestDamagedFile(t *testing.T) {
	flips, torn, seed := testkit.Damage(t, 60, 20)
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
	var used []uint64
	pages(t, whole, func(id uint64, _ []byte, _ []pageUse) bool {
		used = append(used, id)
		return false
	})
	random := rand.New(rand.NewPCG(seed, 7))
	refused, mended, lost, untouched := 0, 0, 0, 0
	for i := range flips + 2*torn {
		broken, what := wreck(whole, random, i >= flips)
		if i >= flips+torn {
			broken, what = distort(whole, used, random)
		}
		dir := t.TempDir()
		path, compacted := filepath.Join(dir, "store.db"), filepath.Join(dir, "compacted.db")
		for _, path := range []string{path, compacted} {
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Compact(t.Context(), compacted, nil); err == nil {
			s := mustOpen(t, compacted)
			if !maps.Equal(dump(t, s), want) || len(s.Damage()) > 0 {
				t.Errorf("%s: it was compacted, and lost rows", what)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
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
	t.Logf("flips=%d pages=%d distortions=%d seed=%d: untouched=%d mended=%d with_marked_rows=%d refused=%d", flips, torn, torn, seed, untouched, mended, lost, refused)
}

func has(rows map[string]string, k string) bool {
	_, there := rows[k]
	return there
}
