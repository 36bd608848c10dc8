package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// pageOfRequests is how many requests one transaction looks at that goes through all of them. Clicks wait for it, so it
// is small.
const pageOfRequests = 20

// openRequests goes through every open request, some in each transaction.
func (w *core) openRequests(ctx context.Context, what string, fn func(*tx, approvers.Request) error) error {
	var after store.RequestCursor
	for more := true; more; {
		var last store.RequestCursor
		err := w.update(ctx, what, func(t *tx) error {
			last = after
			page, err := t.OpenRequests(after, pageOfRequests)
			if err != nil {
				return err
			}
			more = len(page) == pageOfRequests
			for _, r := range page {
				last = store.RequestCursor{CreatedAt: r.CreatedAt, ID: r.ID}
				if err := fn(t, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		after = last
	}
	return nil
}
