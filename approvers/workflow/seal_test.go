package workflow_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

func newSealKey(t *testing.T, origin string) approvers.SealKey {
	t.Helper()
	text, err := approvers.NewSealKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// record appends n records to an audit chain.
func (h *harness) record(chain string, n int) {
	h.t.Helper()
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		head, err := tx.AuditHead(chain)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		for range n {
			head = approvers.AuditRecord{Chain: chain, At: h.clock.Now(), Kind: approvers.AuditProposed}.Link(head)
			if err := tx.AppendAudit(head, nil); err != nil {
				return err
			}
		}
		return nil
	}))
}

// sealAll calls Seal until all records are sealed. The result is how many records each head adds.
func (h *harness) sealAll(keys ...approvers.SealKey) (took []int) {
	h.t.Helper()
	for {
		n, err := h.History.Seal(h.ctx(), keys...)
		h.ok(err)
		if n == 0 {
			return took
		}
		took = append(took, n)
	}
}

// sealedUntil checks every head against the journal and the earlier heads. The result size is how many records the
// heads cover.
func (h *harness) sealedUntil(named ...string) (size uint64, faults []string) {
	h.t.Helper()
	h.ok(h.store.View(h.ctx(), func(r store.Reader) error {
		heads, err := r.Heads(0, 1<<20)
		if err != nil {
			return err
		}
		c := approvers.HeadChain{Named: named}
		var tree approvers.Tree
		for _, h := range heads {
			head, found := c.Next(h.Number, h.Size, h.Note)
			for _, f := range found {
				faults = append(faults, f.Error())
			}
			for tree.Size < h.Size {
				e, err := r.Journal(tree.Size, 1)
				if err != nil {
					return err
				}
				tree.Add(approvers.LeafHash(e[0].Sum))
			}
			if root, err := tree.Root(); err != nil || root != head.Root {
				faults = append(faults, fmt.Sprintf("the root of head %d does not match the journal (%v)", h.Number, err))
			}
			size = h.Size
		}
		return nil
	}))
	return size, faults
}

func (h *harness) wantSealed(size uint64, named ...string) {
	h.t.Helper()
	if got, faults := h.sealedUntil(named...); got != size || len(faults) > 0 {
		h.t.Errorf("%d records are sealed, want %d; faults: %q", got, size, faults)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestSeal(t *testing.T) {
	h := newHarness(t)
	key := newSealKey(t, "countersign-here")
	same(t, "heads over nothing", len(h.sealAll(key)), 0)
	h.record("a", 3)
	h.record("b", 1)
	same(t, "the first head took", h.sealAll(key), []int{4})
	same(t, "heads without anything new", len(h.sealAll(key)), 0)
	h.record("a", 2)
	h.clock.pass(time.Second)
	same(t, "the second head took", h.sealAll(key), []int{2})
	h.wantSealed(6, key.Public)
	h.reopen()
	h.record("c", 2500) // more records than one head can add
	same(t, "the next heads took", h.sealAll(key), []int{1024, 1024, 452})
	h.wantSealed(2506, key.Public)
	last := readStore(h, store.Reader.LastHead)
	head, err := approvers.OpenHead(last.Note, key.Public)
	h.ok(err)
	same(t, "its number, origin and time", fmt.Sprint(head.Number, head.Origin, head.At.Equal(h.clock.Now())), "5countersign-heretrue")
}

// The deletion of audit chains does not make earlier heads invalid.
func TestSealAfterPruning(t *testing.T) {
	h := newHarness(t)
	key := newSealKey(t, "countersign-here")
	h.record("a", 5)
	h.sealAll(key)
	h.record("a", 1)
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { _, err := tx.PruneChain("a"); return err }))
	h.record("b", 1)
	same(t, "the head took", h.sealAll(key), []int{2})
	h.wantSealed(7, key.Public)
}

func TestSealWithAnotherKey(t *testing.T) {
	h := newHarness(t)
	one, two, three := newSealKey(t, "countersign-here"), newSealKey(t, "countersign-here"), newSealKey(t, "countersign-here")
	h.record("a", 1)
	h.sealAll(one)
	h.record("a", 1)
	h.sealAll(two, three, one)
	h.record("a", 1)
	h.sealAll(two, one)
	h.wantSealed(3)
	h.wantSealed(3, one.Public)
	h.record("a", 1)
	h.sealAll(three) // the old key was lost, so only the new key signs
	h.record("a", 1)
	h.sealAll(three, two)
	if _, faults := h.sealedUntil(one.Public); len(faults) != 1 || !strings.Contains(faults[0], "head 4: the key") {
		t.Errorf("a key took over without a signature of the one before: %q", faults)
	}
	h.wantSealed(5, one.Public, two.Public, three.Public)

	h.record("a", 1)
	if _, err := h.History.Seal(h.ctx(), newSealKey(t, "countersign-there")); !errors.Is(err, workflow.ErrSeal) {
		t.Errorf("the key of another installation: %v", err)
	}
	same(t, "with its own key it continues", h.sealAll(three), []int{1})
}

// Seal computes the next head from a stored state. If the stored state is missing or wrong, Seal rebuilds the state
// from the journal.
func TestSealGoesOnFromTheJournal(t *testing.T) {
	for what, value := range map[string]string{
		"nothing": "{}", "another type": `"x"`, "another tree": `{"tree":{"size":1,"roots":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]},"key":""}`,
		"too few roots": `{"tree":{"size":1030,"roots":[]},"key":""}`,
	} {
		h := newHarness(t)
		key, old := newSealKey(t, "countersign-here"), newSealKey(t, "countersign-here")
		h.record("a", 5)
		h.sealAll(old)
		h.record("a", 1025)
		h.sealAll(key, old)
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
			s, err := tx.Setting(store.SettingSeal)
			s.Value = []byte(value)
			return errors.Join(err, tx.PutSetting(s))
		}))
		h.record("a", 1)
		same(t, what+": the next head took", h.sealAll(key), []int{1})
		h.wantSealed(1031, old.Public)
	}
}

// tamper wraps a store and changes records that signed heads cover.
type tamper struct {
	store.Store
	journal func([]approvers.JournalEntry) []approvers.JournalEntry
	head    func(store.Head) store.Head
}

func (s tamper) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(tamperedTx{tx, s}) })
}

type tamperedTx struct {
	store.Tx
	by tamper
}

func (t tamperedTx) Journal(from uint64, limit int) ([]approvers.JournalEntry, error) {
	list, err := t.Tx.Journal(from, limit)
	if t.by.journal != nil {
		list = t.by.journal(list)
	}
	return list, err
}

func (t tamperedTx) LastHead() (store.Head, error) {
	h, err := t.Tx.LastHead()
	if t.by.head != nil && err == nil {
		h = t.by.head(h)
	}
	return h, err
}

// If records that signed heads cover were changed, Seal signs no new head.
func TestSealRefuses(t *testing.T) {
	key, thief := newSealKey(t, "countersign-here"), newSealKey(t, "countersign-here")
	for what, by := range map[string]tamper{
		"a head that nobody signed": {head: func(h store.Head) store.Head {
			h.Note = strings.Replace(h.Note, "number 1\n", "number 2\n", 1)
			return h
		}},
		"a head that can't be read": {head: func(h store.Head) store.Head { h.Note = "x"; return h }},
		"a head that somebody else signed": {head: func(h store.Head) store.Head {
			head, err := approvers.ReadHead(h.Note)
			if err != nil {
				t.Error(err)
			}
			head.Root[0]++
			h.Note, err = head.Sign(thief)
			if err != nil {
				t.Error(err)
			}
			return h
		}},
		"a record that is missing": {journal: func(list []approvers.JournalEntry) []approvers.JournalEntry { return list[1:] }},
	} {
		h := newHarness(t)
		h.record("a", 5)
		h.sealAll(key)
		h.record("a", 5)
		h.ok(h.store.Close())
		h.open(func(s store.Store) store.Store { by.Store = s; return by })
		if n, err := h.History.Seal(h.ctx(), key); !errors.Is(err, workflow.ErrSeal) {
			t.Errorf("%s: %d records were sealed (%v)", what, n, err)
		}
		h.wantSealed(5, key.Public)
	}
}
