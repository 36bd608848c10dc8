package desk

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// Unsettled is one thing that waits for people: a request, a run of which nobody knows how it ended, or a question of the model's.
type Unsettled struct {
	Request   *approvers.Request   // the request, or the one that allowed the run
	Execution *approvers.Execution // the run; nil: it is none
	Call      *store.Call          // the run's call, or the question's; nil for a request
	Turn      approvers.Turn       // the call's
}

// mostUnsettled bounds how much of what waits is looked through for one person.
const mostUnsettled = 2000

// Unsettled lists what waits for people, oldest first of each sort. It reports whether there is more than it lists.
func (d *Desk) Unsettled(ctx context.Context) (list []Unsettled, more bool, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		list, more = nil, false
		open, err := r.OpenRequests(store.RequestCursor{}, mostUnsettled)
		if err != nil {
			return err
		}
		for _, req := range open {
			veil(d.Policy(), &req, nil)
			list = append(list, Unsettled{Request: &req})
		}
		more = len(open) == mostUnsettled
		for _, kind := range []store.TimerKind{store.TimerLeave, store.TimerInquiry} {
			timers, err := r.Timers(kind, mostUnsettled)
			if err != nil {
				return err
			}
			more = more || len(timers) == mostUnsettled
			for _, t := range timers {
				see := map[store.TimerKind]func(store.Reader, string) (Unsettled, error){store.TimerLeave: seeLost, store.TimerInquiry: seeAsked}[kind]
				w, err := see(r, t.Ref)
				if err != nil {
					return err
				}
				veil(d.Policy(), w.Request, w.Call)
				list = append(list, w)
			}
		}
		return nil
	})
	return list, more, err
}

func seeLost(r store.Reader, execution string) (w Unsettled, err error) {
	e, err := r.Execution(execution)
	if err != nil {
		return w, err
	}
	if w, err = seeAsked(r, e.Call); err != nil || e.Request == "" {
		w.Execution = &e
		return w, err
	}
	req, err := r.Request(e.Request)
	w.Execution, w.Request = &e, &req
	return w, err
}

func seeAsked(r store.Reader, id string) (w Unsettled, err error) {
	call, err := r.Call(id)
	if err != nil {
		return w, err
	}
	w.Call = &call
	w.Turn, err = r.Turn(call.Turn)
	return w, err
}

// Whereabouts are the conversation that something which waits belongs to, and the surfaces that show it.
func (d *Desk) Whereabouts(ctx context.Context, w Unsettled) (conv store.Conversation, surfaces []store.Surface, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		surfaces = nil
		ref, call := w.named()
		c, err := r.Call(call)
		if err != nil {
			return err
		}
		for _, ref := range []string{ref, c.Turn} {
			of, err := r.SurfacesOf(ref)
			if err != nil {
				return err
			}
			for _, s := range of {
				if ref == c.Turn && !showsCall(s, c, w.Request) || s.Kind == store.SurfaceNotice {
					continue
				}
				surfaces = append(surfaces, s)
			}
		}
		conv, err = r.Conversation(c.Conversation)
		return err
	})
	return conv, surfaces, err
}

// named is what the surfaces refer to that show it, and its call.
func (w Unsettled) named() (ref, call string) {
	switch {
	case w.Execution != nil:
		return w.Execution.ID, w.Execution.Call
	case w.Call != nil:
		return w.Call.ID, w.Call.ID
	}
	return w.Request.ID, w.Request.Call
}

// showsCall reports whether a surface of a turn shows a call: its step does, and the bundle that its request is in.
func showsCall(s store.Surface, c store.Call, r *approvers.Request) bool {
	return s.Step == c.Step && (s.Kind == store.SurfaceStep || s.Kind == store.SurfaceBundle && r != nil && r.Bundled() && s.Bundle == r.Bundle)
}

// PostAgain has surfaces posted again that vanished and still matter. It says how many.
func (d *Desk) PostAgain(ctx context.Context, surfaces []store.Surface) (n int, err error) {
	err = d.update(ctx, "post again", func(t *tx) error {
		n = 0
		for _, s := range surfaces {
			cur, err := t.Surface(s.ID)
			if err != nil {
				return err
			}
			back, err := t.bringBack(cur)
			if err != nil {
				return err
			}
			if back {
				n++
			}
		}
		return nil
	})
	return n, err
}
