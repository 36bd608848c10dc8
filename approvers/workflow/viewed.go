package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Viewing is what one person alone was shown of a request: in a form, or on their Home tab.
type Viewing struct {
	Request string
	Digest  string // of the execution that was shown
	Who     approvers.PersonID
	As      string // "view", "home", "reveal"
	Body    []byte // text and blocks as JSON
}

// Viewed records that somebody was shown something, once for each person and each body, and names it by its hash.
func (w *Outbox) Viewed(ctx context.Context, v Viewing) (rendering string, err error) {
	rendering = view.HashOf(v.Body)
	err = w.update(ctx, "viewed", func(t *tx) error {
		known, err := view.WasShown(t, v.Request, v.Who, rendering)
		if err != nil || known {
			return err
		}
		facts := map[string]string{"surface": v.As, "to": store.ToUser + v.Who.User(), "rendering": rendering, "digest": v.Digest}
		return t.audit(v.Request, approvers.AuditShown, v.Who, facts, v.Body)
	})
	return rendering, err
}
