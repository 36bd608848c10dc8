package audit

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

// RestoreHeads writes signed heads again that a store has lost by damage. It reads them from the end of the file of
// heads, and returns their numbers. RestoreHeads writes a head only if one of the installation's keys has signed it, and
// if the store has exactly the records that the head covers. So an older copy of a store does not get the heads of a
// newer one.
func RestoreHeads(ctx context.Context, at config.Audit, s store.Store) (restored []uint64, err error) {
	if _, database := s.(store.Relocatable); database || at.Heads == "" || at.Key == "" {
		return nil, nil
	}
	kept, err := HeadFile(at.Heads).heads()
	if err != nil {
		return nil, nil //nolint:nilerr // FindOlder reports this error
	}
	keys, err := ReadKeyFile(at.Key)
	if err != nil {
		return nil, nil //nolint:nilerr // the start reports this error
	}
	var lost []fileHead
	err = s.View(ctx, func(r store.Reader) (err error) {
		lost, err = lostHeads(r, kept, keys.Public)
		return err
	})
	if err == nil && len(lost) > 0 {
		err = writeHeads(ctx, s, lost)
	}
	if store.OnlyDamaged(err) || errors.Is(err, store.ErrConflict) { // the damage around the heads is too great
		return nil, nil
	}
	for _, h := range lost {
		restored = append(restored, h.number)
	}
	return restored, err
}

func writeHeads(ctx context.Context, s store.Store, heads []fileHead) error {
	return s.Update(ctx, func(tx store.Tx) error {
		for _, h := range heads {
			if err := tx.PutHead(store.Head{Number: h.number, Size: h.head.Size, Note: h.Note}); err != nil {
				return err
			}
		}
		return nil
	})
}

// lostHeads returns those heads that are damaged or missing in the store, and whose records are in the store. The heads
// are in the order of their numbers.
func lostHeads(r store.Reader, kept []fileHead, keys []string) (lost []fileHead, err error) {
	var want []fileHead
	for _, h := range kept {
		stored, err := r.Heads(h.number-1, 1)
		if err != nil {
			return nil, err
		}
		there := len(stored) > 0 && stored[0].Number == h.number && !stored[0].Damaged
		signed := slices.ContainsFunc(keys, func(key string) bool { return approvers.SignedBy(h.Note, key) })
		twice := slices.ContainsFunc(want, func(w fileHead) bool { return w.number == h.number })
		if h.head.Number > 0 && !there && signed && !twice {
			want = append(want, h)
		}
	}
	slices.SortFunc(want, func(a, b fileHead) int { return int(a.number) - int(b.number) })
	var tree approvers.Tree
	for _, h := range want {
		for tree.Size < h.head.Size {
			entries, err := r.Journal(tree.Size, int(min(journalPage, h.head.Size-tree.Size)))
			if err != nil || len(entries) == 0 {
				return lost, err // the store does not have the records of the other heads
			}
			for _, e := range entries {
				tree.Add(approvers.LeafHash(e.Sum))
			}
		}
		root, err := tree.Root()
		if err != nil || root != h.head.Root {
			return lost, err
		}
		lost = append(lost, h)
	}
	return lost, nil
}
