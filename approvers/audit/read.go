package audit

import (
	"context"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// EachChain calls fn with the records of every chain. EachChain reads one page of chains in each snapshot. EachChain
// skips damaged records. After all other records were read, EachChain returns an *Unread error that lists the damaged
// records.
func EachChain(ctx context.Context, s store.Store, fn func([]approvers.AuditRecord) error) error {
	return eachChain(ctx, s, func(records []approvers.AuditRecord, _ bool) error { return fn(records) })
}

// eachChain is like EachChain. It also tells fn whether the last records of the chain are damaged and were skipped.
func eachChain(ctx context.Context, s store.Store, fn func(records []approvers.AuditRecord, cut bool) error) error {
	type chain struct {
		records []approvers.AuditRecord
		cut     bool
	}
	var left Unread
	for after, more := "", true; more; {
		var page []chain
		var damaged Unread
		err := s.View(ctx, func(r store.Reader) error {
			page, damaged = nil, Unread{}
			ids, err := r.AuditChains(after, chainPage)
			if err != nil {
				return err
			}
			more = len(ids) == chainPage
			for _, id := range ids {
				if id <= after {
					return fmt.Errorf("%w: its chains are out of order. Put a backup in its place", store.ErrDamaged)
				}
				records, err := r.Audit(id)
				var skipped Unread
				if err := skipped.Add(err); err != nil {
					return err
				}
				damaged.Rows = append(damaged.Rows, skipped.Rows...)
				if n := len(records); n > 0 {
					seqs := skipped.seqs()
					page = append(page, chain{records, len(seqs) > 0 && seqs[len(seqs)-1] > records[n-1].Seq})
				}
				after = id
			}
			return nil
		})
		if err != nil {
			return err
		}
		left.Rows = append(left.Rows, damaged.Rows...)
		for _, c := range page {
			if err := fn(c.records, c.cut); err != nil {
				return err
			}
		}
	}
	return left.Err()
}

// chainPage is how many chains are read in one snapshot.
const chainPage = 256
