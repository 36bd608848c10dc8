package workflow

import (
	"context"
	"errors"

	"countersign/approvers"
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
func (w *Workflow) Viewed(ctx context.Context, v Viewing) (rendering string, err error) {
	rendering = hashOf(v.Body)
	err = w.update(ctx, "viewed", func(t *tx) error {
		known, err := viewed(t, v.Request, v.Who, rendering)
		if err != nil || known {
			return err
		}
		facts := map[string]string{"surface": v.As, "to": toUser + v.Who.User(), "rendering": rendering, "digest": v.Digest}
		return t.audit(v.Request, approvers.AuditShown, v.Who, facts, v.Body)
	})
	return rendering, err
}

// HasViewed reports whether somebody was shown this of a request.
func (w *Workflow) HasViewed(ctx context.Context, request string, who approvers.PersonID, body []byte) (rendering string, yes bool, err error) {
	rendering = hashOf(body)
	err = w.Store.View(ctx, func(r store.Reader) error {
		yes, err = viewed(r, request, who, rendering)
		return err
	})
	return rendering, yes, err
}

func viewed(r store.Reader, request string, who approvers.PersonID, rendering string) (bool, error) {
	records, err := r.Audit(request)
	if err != nil {
		return false, err
	}
	for _, a := range records {
		if a.Kind == approvers.AuditShown && a.Actor == who && a.Facts["rendering"] == rendering {
			return true, nil
		}
	}
	return false, nil
}

// SeeOn adds to what an outbox message shows what one of its buttons names: a request, or a grant. What it names that
// is neither adds nothing.
func (w *Workflow) SeeOn(ctx context.Context, m *ViewModel, ref string) error {
	err := w.Store.View(ctx, func(r store.Reader) error {
		out := *m
		err := out.viewRequest(r, ref)
		if errors.Is(err, store.ErrNotFound) {
			err = out.viewGrant(w, r, ref)
		}
		*m = out
		return err
	})
	return ignoreNotFound(err)
}

// RequestsOf lists the requests that a person asked for or had a say in, newest first, starting before the given one.
func (w *Workflow) RequestsOf(ctx context.Context, who approvers.PersonID, before store.RequestCursor, limit int) (list []approvers.Request, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		list, err = r.RequestsOf(who, before, limit)
		for i := range list {
			mask(w.Policy(), &list[i], nil)
		}
		return err
	})
	return list, err
}

// Chain lists a request's records, oldest first.
func (w *Workflow) Chain(ctx context.Context, request string) (records []approvers.AuditRecord, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		records, err = r.Audit(request)
		return err
	})
	return records, err
}
