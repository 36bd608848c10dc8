package desk

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// Showing finds the surface that a Slack message shows, and the version of it that was posted last.
func (d *Desk) Showing(ctx context.Context, channel, ts string) (s store.Surface, shown store.Rendering, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		if s, err = r.SurfaceAt(channel, ts); err != nil {
			return err
		}
		shown, err = r.Rendering(s.ID, s.Posts)
		return err
	})
	return s, shown, err
}

// Rendering reads one posted version of a surface.
func (d *Desk) Rendering(ctx context.Context, surface string, post uint64) (shown store.Rendering, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		shown, err = r.Rendering(surface, post)
		return err
	})
	return shown, err
}

// Request reads a request.
func (d *Desk) Request(ctx context.Context, id string) (req approvers.Request, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		req, err = r.Request(id)
		veil(d.Policy(), &req, nil)
		return err
	})
	return req, err
}

// Inbox reads a delivery that is due to be handled.
func (d *Desk) Inbox(ctx context.Context, id string) (row store.Inbox, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		row, err = r.Inbox(id)
		return err
	})
	return row, err
}

// Waiting reports whether any request is open.
func (d *Desk) Waiting(ctx context.Context) (waiting bool, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		open, err := r.OpenRequests(store.RequestCursor{}, 1)
		waiting = len(open) > 0
		return err
	})
	return waiting, err
}

// StepOf names the surface that shows the step of a call in the asker's thread; empty: nothing does.
func (d *Desk) StepOf(ctx context.Context, call string) (surface string, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		surface = ""
		c, err := r.Call(call)
		if err != nil {
			return err
		}
		of, err := r.SurfacesOf(c.Turn)
		for _, s := range of {
			if s.Kind == store.SurfaceStep && s.Step == c.Step && s.State == store.SurfaceShown {
				surface = s.ID
			}
		}
		return err
	})
	return surface, err
}

// Elicitation reads what a run asked.
func (d *Desk) Elicitation(ctx context.Context, id string) (q approvers.Elicitation, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		q, err = r.Elicitation(id)
		return err
	})
	return q, err
}
