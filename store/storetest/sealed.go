package storetest

import (
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// append1 appends a record with a payload to a chain.
func append1(chain, body string) func(store.Tx) error {
	return func(tx store.Tx) error {
		head, err := tx.AuditHead(chain)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		p := approvers.AuditPayload{Chain: chain, Seq: head.Seq + 1, Salt: []byte{7}, Body: []byte(body)}
		a := approvers.AuditRecord{Chain: chain, At: at(1), Kind: approvers.AuditShown, Facts: map[string]string{"body": body}, PayloadHash: p.Hash()}
		return tx.AppendAudit(a.Link(head), &p)
	}
}

// entries returns the journal's entries from a leaf on. Each entry is a text with its leaf, chain and seq.
func entries(r store.Reader, from uint64, limit int) ([]string, error) {
	list, err := r.Journal(from, limit)
	return ids(list, func(e approvers.JournalEntry) string { return fmt.Sprint(e.Leaf, " ", e.Chain, " ", e.Seq) }), err
}

// journal checks that the journal has one entry for each record, in the order of the appends. The journal has no entry
// for an append that was undone.
func journal(h *harness) {
	h.write(append1("b", "1"), append1("a", "2"), append1("b", "3"))
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(append1("c", "never")(tx), errMine) })
	h.write(append1("a", "4"))
	h.view(func(r store.Reader) error {
		all := []string{"0 b 1", "1 a 1", "2 b 2", "3 a 2"}
		for from := range uint64(6) {
			for _, limit := range []int{0, 1, 3, 100} {
				got, err := entries(r, from, limit)
				if err != nil {
					return err
				}
				want := all[min(from, 4):]
				h.same(fmt.Sprintf("%d entries from %d", limit, from), got, append([]string{}, want[:min(limit, len(want))]...))
			}
		}
		list, err := r.Journal(0, 10)
		if err != nil {
			return err
		}
		for _, e := range list {
			x, err := r.AuditRow(e.Chain, e.Seq)
			if err != nil {
				return err
			}
			h.same("the record's hash", approvers.SumOf(x.Record), e.Sum)
			h.same("the record's leaf", x.Leaf, e.Leaf)
			h.same("the hash that is stored", x.Sum, e.Sum)
			a, err := approvers.ParseAuditRecord(x.Record)
			h.same("where it belongs", fmt.Sprint(a.Chain, a.Seq, a.Hash == e.Sum.String()), fmt.Sprint(e.Chain, e.Seq, true))
			h.same("its payload is not with it", x.Payload == nil, true)
			if err != nil {
				return err
			}
		}
		var rows []string
		err = r.EachAuditRow(func(x approvers.AuditRow) error {
			rows = append(rows, fmt.Sprint(x.Leaf, " ", x.Chain, " ", x.Seq))
			a, err := approvers.ParseAuditRecord(x.Record)
			h.same("its payload", approvers.SumOf(x.Payload).String(), a.PayloadHash)
			return err
		})
		h.same("every row", rows, []string{"1 a 1", "3 a 2", "0 b 1", "2 b 2"})
		if stopped := r.EachAuditRow(func(approvers.AuditRow) error { return errMine }); !errors.Is(stopped, errMine) {
			h.Errorf("the walk continued: %v", stopped)
		}
		return err
	})
}

func heads(h *harness) {
	put := func(number, size uint64, note string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.PutHead(store.Head{Number: number, Size: size, Note: note}) }
	}
	h.refused(store.ErrConflict, put(1, 0, "over nothing"))
	if err := h.try(put(1, 1, "over more than there is")); err == nil || errors.Is(err, store.ErrConflict) {
		h.Errorf("a head over more than there is: %v", err)
	}
	h.write(append1("a", "1"), append1("b", "2"), append1("a", "3"), append1("a", "4"))
	h.refused(store.ErrConflict, put(2, 1, "not the first"))
	h.write(put(1, 2, "one\n\n— é\n"))
	for _, stale := range []func(store.Tx) error{put(1, 2, "again"), put(1, 3, "again"), put(3, 3, "a gap"), put(2, 2, "nothing new"), put(2, 1, "less")} {
		h.refused(store.ErrConflict, stale)
	}
	if err := h.try(put(2, 5, "too much")); err == nil {
		h.Error("a head over more than there is was stored")
	}
	h.write(put(2, 3, "two"), put(3, 4, "three"))
	h.refused(store.ErrConflict, put(2, 3, "forged"))
	h.view(func(r store.Reader) error {
		one, two, three := store.Head{Number: 1, Size: 2, Note: "one\n\n— é\n"}, store.Head{Number: 2, Size: 3, Note: "two"}, store.Head{Number: 3, Size: 4, Note: "three"}
		all, err := r.Heads(0, 10)
		h.same("all heads", all, []store.Head{one, two, three})
		some, err2 := r.Heads(1, 1)
		h.same("the head after the first", some, []store.Head{two})
		none, err3 := r.Heads(3, 10)
		h.same("heads after the last", len(none), 0)
		none, err4 := r.Heads(1<<64-1, 10)
		h.same("heads after the highest number", len(none), 0)
		last, err5 := r.LastHead()
		h.same("the last head", last, three)
		return errors.Join(err, err2, err3, err4, err5)
	})
}

// payloadsErased checks that ErasePayloads deletes payloads. The records with the hashes of the payloads stay.
func payloadsErased(h *harness) {
	h.write(append1("a", "1"), append1("ab", "2"), append1("a", "3"))
	h.write(func(tx store.Tx) error {
		head, err := tx.AuditHead("a")
		if err != nil {
			return err
		}
		return tx.AppendAudit(approvers.AuditRecord{Chain: "a", At: at(2), Kind: approvers.AuditClosed}.Link(head), nil)
	}, append1("a", "5"))
	var before []approvers.AuditRecord
	h.view(func(r store.Reader) (err error) { before, err = r.Audit("a"); return err })
	erase := func(chain string, want []uint64, only ...uint64) {
		h.Helper()
		h.update(func(tx store.Tx) error {
			seqs, err := tx.ErasePayloads(chain, only...)
			h.same("whose payloads are erased", seqs, want)
			return err
		})
	}
	erase("none", nil)
	h.refused(errMine, func(tx store.Tx) error { _, err := tx.ErasePayloads("a"); return errors.Join(err, errMine) })
	erase("a", []uint64{2}, 2, 3, 7)
	erase("a", nil, 3)
	erase("a", []uint64{1, 4})
	erase("a", nil)
	h.view(func(r store.Reader) error {
		after, err := r.Audit("a")
		h.same("the records", after, before)
		for seq := range uint64(5) {
			if _, err := r.AuditPayload("a", seq); !errors.Is(err, store.ErrNotFound) {
				h.Errorf("the payload of record %d: got error %v, want ErrNotFound", seq, err)
			}
		}
		other, err2 := r.AuditPayload("ab", 1)
		h.same("another chain's payload", string(other.Body), "2")
		err3 := r.EachAuditRow(func(x approvers.AuditRow) error {
			h.same(fmt.Sprintf("record %d of %s has a payload", x.Seq, x.Chain), x.Payload != nil, x.Chain == "ab")
			return nil
		})
		return errors.Join(err, err2, err3)
	})
	h.write(append1("a", "6"))
	erase("a", []uint64{5})
}

// chainsPruned checks that PruneChain deletes a chain's records. The journal entries of these records stay, because
// heads cover the entries. A new chain may use the name of the pruned chain.
func chainsPruned(h *harness) {
	h.write(append1("a", "1"), append1("ab", "2"), append1("a", "3"), append1("c", "4"))
	h.write(func(tx store.Tx) error { return tx.PutHead(store.Head{Number: 1, Size: 3}) })
	prune := func(chain string, want int) {
		h.Helper()
		h.update(func(tx store.Tx) error {
			n, err := tx.PruneChain(chain)
			h.same("how many records are pruned", n, want)
			return err
		})
	}
	left := func(chains, journal []string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			got, err := r.AuditChains("", 10)
			h.same("the chains", got, chains)
			all, err2 := entries(r, 0, 10)
			h.same("the journal", all, journal)
			return errors.Join(err, err2)
		})
	}
	was := []string{"0 a 1", "1 ab 1", "2 a 2", "3 c 1"}
	prune("none", 0)
	h.refused(errMine, func(tx store.Tx) error { _, err := tx.PruneChain("a"); return errors.Join(err, errMine) })
	left([]string{"a", "ab", "c"}, was)
	prune("a", 2)
	prune("a", 0)
	left([]string{"ab", "c"}, was)
	h.view(func(r store.Reader) error {
		if _, err := r.AuditHead("a"); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("the head of a pruned chain: got error %v, want ErrNotFound", err)
		}
		if _, err := r.AuditPayload("a", 1); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("a payload of a pruned chain: got error %v, want ErrNotFound", err)
		}
		return nil
	})
	prune("c", 1) // the pruned record is the last one in the journal
	h.write(append1("a", "again"))
	left([]string{"a", "ab"}, append(was, "4 a 1"))
}
