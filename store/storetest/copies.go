package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/store"
)

// Filler creates a new store with the rows that the function fill puts, and returns the store's opener. If fill fails,
// the store can't be opened, and the next call of the Filler continues with the missing rows. If anew is true, the call
// deletes the existing rows first.
type Filler func(ctx context.Context, anew bool, fill func(store.Filling) error) (Opener, error)

// Backend is a backend whose stores can be copied.
type Backend struct {
	Fresh func(t *testing.T) Opener // returns the Opener of an empty store
	New   func(t *testing.T) Filler // returns the Filler of a store that does not exist yet
}

// RunCopies copies stores to another backend and back. RunCopies tests that each copy has all rows of its original.
func RunCopies(t *testing.T, from, to Backend) {
	runAll(t, from.Fresh, map[string]func(*harness){
		"copies of random stores":    func(h *harness) { copiesOfModels(h, from, to) },
		"copies of whole records":    func(h *harness) { copiesOfWhole(h, from, to) },
		"a copy that is interrupted": func(h *harness) { interrupted(h, to) },
		"a copy that differs":        func(h *harness) { differing(h, to) },
	})
}

// copied copies a store, and returns the copy. copied requires that reads of the copy return the same data as reads of
// the original.
func copied(h *harness, s store.Store, to Backend, see func(store.Reader) []string) *harness {
	h.Helper()
	open, err := to.New(h.T)(h.Context(), false, func(f store.Filling) error {
		return store.CopyRows(h.Context(), s.(store.Contents), f, func(store.Copied) {}, func() {})
	})
	if err != nil {
		h.Fatalf("copy: %v", err)
	}
	c := newHarness(h.T, open, false)
	var want, got []string
	if err := s.View(h.Context(), func(r store.Reader) error { want = see(r); return nil }); err != nil {
		h.Fatal(err)
	}
	c.view(func(r store.Reader) error { got = see(r); return nil })
	if diff := cmp.Diff(want, got); diff != "" {
		h.Fatalf("the copy differs (-original +copy):\n%s", diff)
	}
	sameRows(h, s, c.store)
	return c
}

// sameRows requires that a copy has the rows of the original.
func sameRows(h *harness, original, copied store.Store) {
	h.Helper()
	want, got := allRows(h, original), allRows(h, copied)
	if !reflect.DeepEqual(want, got) { // cmp.Diff would need seconds for megabytes of rows
		h.Fatalf("the rows of the copy differ (-original +copy):\n%s", cmp.Diff(want, got))
	}
}

// allRows returns every row of a store.
func allRows(h *harness, s store.Store) (rows []store.Row) {
	h.Helper()
	err := s.(store.Contents).EachRow(h.Context(), func(row store.Row) error {
		rows = append(rows, row.Clone())
		return nil
	})
	if err != nil {
		h.Fatalf("each row: %v", err)
	}
	return rows
}

// copiesOfModels writes random transactions to a store, copies the store to the other backend, and copies this copy
// back.
func copiesOfModels(h *harness, from, to Backend) {
	rapid.Check(h.T, func(t *rapid.T) {
		h := newHarness(h.T, from.Fresh(h.T), false)
		defer func() { h.leave() }()
		m := newMemory()
		for range 2 {
			for range rapid.IntRange(5, 15).Draw(t, "transactions") {
				steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 8).Draw(t, "steps")
				run := func(tx store.Tx) error {
					for _, s := range steps {
						_, _ = s.run(tx) // an error does not matter: a refused step changes nothing
					}
					return nil
				}
				_ = run(m)
				h.update(run)
			}
			there := copied(h, h.store, to, everything)
			back := copied(there, there.store, from, everything)
			there.leave()
			h.leave()
			h = back
			h.view(func(r store.Reader) error { differ(t, everything(r), everything(m)); return nil })
		}
	})
}

// copiesOfWhole copies records with every field set. For kinds of records that are listed in the order of creation,
// copiesOfWhole copies several records.
func copiesOfWhole(h *harness, from, to Backend) {
	h.update(func(tx store.Tx) error {
		file, data := fill[store.File](false), []byte{0, 255, 1}
		timer := fill[store.Timer](false)
		policy := fill[store.Policy](false)
		policy.Content = approvers.SumOf(data).String()
		errs := []error{
			tx.PutConversation(fill[store.Conversation](false)), tx.PutMessage(fill[store.Message](false)), tx.PutTurn(fill[approvers.Turn](false)),
			tx.PutCall(fill[store.Call](false)), tx.PutRequest(fill[approvers.Request](false)), tx.PutExecution(fill[approvers.Execution](false)),
			tx.PutElicitation(fill[approvers.Elicitation](false)), tx.PutFile(file.Of(data), data), tx.SetTimer(timer), tx.PutInbox(fill[store.Inbox](false)),
			tx.PutOutboxMessage(fill[store.OutboxMessage](false)), tx.PutRendering(fill[store.Rendering](false)), tx.PutSetting(fill[store.Setting](false)),
			tx.PutPolicy(policy, data),
			tx.AddCounter(fill[store.Counter](false)), tx.PutGrant(fill[approvers.Grant](false)), tx.PutAbsence(fill[approvers.Absence](false)),
		}
		for i := range 30 { // ids descend, so that the order of creation differs from the order of ids
			id := fmt.Sprintf("%02d\x00\x01 ü", 30-i)
			errs = append(errs,
				tx.PutConversation(store.Conversation{ID: id, Place: "place", LastAt: at(i)}),
				tx.PutCall(store.Call{ID: id, Turn: "turn"}),
				tx.PutElicitation(approvers.Elicitation{ID: id, Execution: "execution"}),
				tx.PutOutboxMessage(store.OutboxMessage{ID: id, Ref: "ref", Channel: "C", TS: "1"}),
				tx.PutGrant(approvers.Grant{ID: id, Tool: "tool", State: approvers.GrantLive}),
				tx.PutRequest(approvers.Request{ID: id, State: approvers.Pending, CreatedAt: at(-i)}),
			)
		}
		return errors.Join(errs...)
	})
	see := func(r store.Reader) (out []string) {
		note := func(name string, v any, err error) { out = append(out, told(name, v, err)) }
		place, err := r.ConversationAt("place")
		note("place", place, err)
		calls, err := r.Calls("turn")
		note("calls", calls, err)
		asked, err := r.Elicitations("execution")
		note("elicitations", asked, err)
		shown, err := r.OutboxMessagesOf("ref")
		note("outbox messages", shown, err)
		last, err := r.OutboxMessageAt("C", "1")
		note("outbox message", last, err)
		grants, err := r.OpenGrants("tool")
		note("grants", grants, err)
		open, err := r.OpenRequests(store.RequestCursor{}, 100)
		note("open requests", open, err)
		of, err := r.RequestsOf(fill[approvers.Request](false).People()[0], store.RequestCursor{}, 100)
		note("requests of a person", of, err)
		recent, err := r.ConversationsSince(at(0), 100)
		note("conversations", recent, err)
		files, err := r.Files(fill[store.File](false).Execution)
		note("files", files, err)
		policy, err := r.Policy()
		note("the policy in force", policy, err)
		content, err := r.PolicyContent()
		note("its content", content, err)
		return out
	}
	there := copied(h, h.store, to, see)
	back := copied(there, there.store, from, see)
	there.leave()
	back.leave()
}

// interrupted checks that a store with an interrupted copy can't be opened. If the original is unchanged, the next copy
// continues with the missing rows. If anew is true, the next copy writes all rows. A complete store is never filled.
func interrupted(h *harness, to Backend) {
	const n = 20
	put := func(text string) {
		h.update(func(tx store.Tx) error {
			for i := range n {
				body := []byte(text + strings.Repeat(".", 150_000)) // the rows are so large that one transaction writes only a few of them
				if err := tx.PutRendering(store.Rendering{OutboxMessage: "m", Post: uint64(i + 1), Body: body}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	put("first")
	target := to.New(h.T)
	var written int // number of rows that earlier attempts have written
	attempt := func(stopAt int, anew bool) (Opener, error) {
		h.Helper()
		return target(h.Context(), anew, func(f store.Filling) error {
			written = f.Written()
			return store.CopyRows(h.Context(), stopping{h.store.(store.Contents), stopAt}, f, func(store.Copied) {}, func() {})
		})
	}
	incomplete := func(open Opener) {
		h.Helper()
		if s, err := open(); err == nil {
			h.Errorf("an incomplete copy was opened (its Close: %v)", s.Close())
		}
	}
	before := 0
	for _, stopAt := range []int{8, 8, 12, 18} { // the second attempt stops at the same row as the first
		open, err := attempt(stopAt, false)
		if !errors.Is(err, errStopped) {
			h.Fatalf("the interrupted copy ended with %v", err)
		}
		if written < before || written > stopAt {
			h.Errorf("%d rows were there, and %d before", written, before)
		}
		before = written
		incomplete(open)
	}
	if before == 0 {
		h.Error("nothing was written before the third interruption")
	}
	for _, below := range []uint64{2, n + 1} { // an original without the first row, and an original without any rows
		h.update(func(tx store.Tx) error {
			_, err := tx.EraseRenderings("m", below)
			return err
		})
		open, err := attempt(n, false)
		if !errors.Is(err, store.ErrChanged) {
			h.Errorf("the original has changed, and the copy ended with %v", err)
		}
		incomplete(open)
	}
	put("second")
	if _, err := attempt(0, true); !errors.Is(err, errStopped) || written != 0 {
		h.Errorf("a copy that begins again has %d rows, and ended with %v", written, err)
	}
	open, err := attempt(n, false)
	if err != nil {
		h.Fatalf("the copy that begins again ended with %v", err)
	}
	c := newHarness(h.T, open, false)
	sameRows(h, h.store, c.store)
	c.leave()
	for _, anew := range []bool{false, true} {
		if _, err := attempt(n, anew); err == nil {
			h.Error("a store was filled twice")
		}
	}
}

var errStopped = errors.New("stopped")

// stopping is a store whose EachRow returns an error after some rows.
type stopping struct {
	store.Contents
	after int
}

func (s stopping) EachRow(ctx context.Context, fn func(store.Row) error) error {
	n := 0
	return s.Contents.EachRow(ctx, func(row store.Row) error {
		if n++; n > s.after {
			return errStopped
		}
		return fn(row)
	})
}

// differing checks that CopyRows detects a copy in which all rows of a part are missing, or a row is different.
func differing(h *harness, to Backend) {
	h.update(func(tx store.Tx) error {
		return errors.Join(tx.PutTurn(approvers.Turn{ID: "a"}), tx.PutTurn(approvers.Turn{ID: "b"}), tx.PutMessage(store.Message{Conversation: "c", Seq: 1}),
			tx.AddCounter(store.Counter{Key: "k", At: start, ID: "i", N: 2}))
	})
	for name, change := range map[string]func(store.Row) (store.Row, bool){
		"a row is missing":  func(row store.Row) (store.Row, bool) { return row, row.Part != store.PartTurns },
		"a part is missing": func(row store.Row) (store.Row, bool) { return row, row.Part != store.PartMessages },
		"a row is another": func(row store.Row) (store.Row, bool) {
			if row.Part == store.PartCounters {
				row.Counter.N++
			}
			return row, true
		},
	} {
		_, err := to.New(h.T)(h.Context(), false, func(f store.Filling) error {
			return store.CopyRows(h.Context(), h.store.(store.Contents), changing{f, change}, func(store.Copied) {}, func() {})
		})
		if err == nil {
			h.Errorf("%s, and the copy is accepted", name)
		}
	}
}

// changing is a Filling that changes rows before Put.
type changing struct {
	store.Filling
	change func(store.Row) (changed store.Row, keep bool)
}

func (c changing) Put(ctx context.Context, row store.Row) error {
	row, keep := c.change(row)
	if !keep {
		return nil
	}
	return c.Filling.Put(ctx, row)
}
