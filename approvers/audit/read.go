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
	var left Unread
	for after, more := "", true; more; {
		var page [][]approvers.AuditRecord
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
				if err := damaged.Add(err); err != nil {
					return err
				}
				page = append(page, records)
				after = id
			}
			return nil
		})
		if err != nil {
			return err
		}
		left.Rows = append(left.Rows, damaged.Rows...)
		for _, records := range page {
			if len(records) == 0 {
				continue
			}
			if err := fn(records); err != nil {
				return err
			}
		}
	}
	return left.Err()
}

// chainPage is how many chains are read in one snapshot.
const chainPage = 256
