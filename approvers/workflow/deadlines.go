package workflow

import (
	"context"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// clickGrace is the delay before an expiry that waits for an earlier click is tried again. It doubles up to maxGrace,
// so that a delivery that can't be handled does not keep the store busy.
const (
	clickGrace = 50 * time.Millisecond
	maxGrace   = 5 * time.Second
)

// Expire rejects a request whose deadline passed. Clicks that were received before the deadline are handled first.
func (w *Requests) Expire(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "expire", func(t *tx) error {
		r, err := t.requests.openRequest(store.TimerExpire, timer.Ref)
		if err != nil || r.ID == "" {
			return err
		}
		return t.expire(timer, r)
	})
}

func (t *tx) expire(timer store.Timer, r approvers.Request) error {
	after, events, expired := r.Expire(t.deciding())
	if !expired {
		return t.timers.resetTimers(r)
	}
	if r.State == approvers.Pending {
		if early, err := t.handledFirst(timer, r.ExpiresAt); early || err != nil {
			return err
		}
	}
	return t.apply(after, events)
}

// handledFirst postpones an expiry while a click or a form received before the deadline is unhandled. It reports
// whether it did. Other deliveries from Slack decide nothing.
func (t *tx) handledFirst(timer store.Timer, deadline time.Time) (bool, error) {
	early, err := t.Unhandled(store.InboxInteraction, deadline)
	if err != nil || !early {
		return false, err
	}
	timer.Due = t.now.Add(min(clickGrace<<min(timer.Tries, 10), maxGrace))
	timer.Tries++
	return true, t.SetTimer(timer)
}

// openRequest reads the request that a timer names. If nothing is left to do, it clears the timer and returns no
// request.
func (t requestsTx) openRequest(kind store.TimerKind, id string) (approvers.Request, error) {
	r, err := t.Request(id)
	if errors.Is(err, store.ErrNotFound) || (err == nil && !r.State.Open()) {
		return approvers.Request{}, t.ClearTimer(kind, id)
	}
	return r, err
}

// Escalate notifies the next lead, whose members may decide the current stage from then on.
func (w *Requests) Escalate(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "escalate", func(t *tx) error {
		r, err := t.requests.openRequest(store.TimerEscalate, timer.Ref)
		if err != nil || r.ID == "" {
			return err
		}
		after, events, due := r.Escalate(t.deciding())
		if !due && len(events) == 0 {
			if after.EscalateAt.IsZero() || after.State != approvers.Pending {
				return t.ClearTimer(store.TimerEscalate, r.ID)
			}
			return t.SetTimer(store.Timer{Kind: store.TimerEscalate, Ref: r.ID, Due: t.notYet(after.EscalateAt)})
		}
		return t.apply(after, events) // also if nobody is left to notify: the cards must no longer announce the escalation
	})
}

// notYet returns when a timer that is not due yet must be checked again: at its new time, or after maxGrace if that
// time has passed. In the latter case the expiry ends the request meanwhile.
func (t *tx) notYet(due time.Time) time.Time {
	if due.After(t.now) {
		return due
	}
	return t.now.Add(maxGrace)
}
