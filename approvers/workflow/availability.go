package workflow

import (
	"context"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// errMoved means that the request changed during the look-up of its people. The look-up is repeated soon; no warning is
// needed.
var errMoved error = movedError{}

type movedError struct{}

func (movedError) Error() string { return "the request changed while its people were looked up" }

func (movedError) After() time.Duration { return 100 * time.Millisecond }

// ResolveAvailability checks who of a stage can be reached. It invites stand-ins, and calls the lead if nobody can be
// reached. people are the stage's people as of roll.
func (w *People) ResolveAvailability(ctx context.Context, timer store.Timer, roll view.StageSnapshot, people []approvers.Presence) error {
	return w.update(ctx, "availability", func(t *tx) error {
		r, err := t.requests.pendingRequest(timer, roll)
		if err != nil || r.ID == "" {
			return err
		}
		after, events := r.ResolveAvailability(t.deciding(), people)
		if err := t.notices.tellTurns(after, people); err != nil {
			return err
		}
		if !approvers.HasEvent[approvers.PersonInvited](events) && !approvers.HasEvent[approvers.LeadCalled](events) {
			found, _ := approvers.FindEvent[approvers.AvailabilityResolved](events)
			return t.timers.updateTimersFor(r, found) // nothing else changed
		}
		return t.apply(after, events)
	})
}

// pendingRequest reads the request that a timer names, and checks that it is unchanged since the look-up of its people.
// If the request is not pending, it clears the timer and returns no request.
func (t requestsTx) pendingRequest(timer store.Timer, roll view.StageSnapshot) (approvers.Request, error) {
	r, err := t.Request(timer.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && r.State != approvers.Pending {
		return approvers.Request{}, t.ClearTimer(timer.Kind, timer.Ref)
	}
	if err == nil && r.Version != roll.Request.Version {
		err = errMoved
	}
	return r, err
}

// scheduleAvailability schedules a check of who can be reached.
func (t timersTx) scheduleAvailability(r approvers.Request) error {
	return t.SetTimer(store.Timer{Kind: store.TimerAvailability, Ref: r.ID, Due: t.now})
}
