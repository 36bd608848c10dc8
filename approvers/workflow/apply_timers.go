package workflow

import (
	"time"

	"countersign/approvers"
	"countersign/store"
)

// updateTimers sets the request's timers. If the request is pending, every transition may change a deadline. So
// updateTimers sets all timers of a pending request after every transition.
func (t timersTx) updateTimers(r approvers.Request, events []approvers.Event) error {
	if err := t.setClocks(r, approvers.HasEvent[approvers.RequestOpened](events)); err != nil {
		return err
	}
	for _, e := range events {
		if err := t.updateTimersFor(r, e); err != nil {
			return err
		}
	}
	return nil
}

// setClocks sets the deadline, the next reminder and the next escalation of a pending request. If no tool preview is
// being made, setClocks also clears the preview's timer. If isNew is true, the request has no timers yet, so setClocks
// clears none.
func (t timersTx) setClocks(r approvers.Request, isNew bool) error {
	if r.State != approvers.Pending {
		return nil
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: r.ID, Due: r.ExpiresAt}); err != nil {
		return err
	}
	for kind, due := range map[store.TimerKind]time.Time{store.TimerRemind: r.RemindNext(), store.TimerEscalate: r.EscalateAt} {
		if isNew && due.IsZero() {
			continue
		}
		if err := t.setOrClear(kind, r.ID, due); err != nil {
			return err
		}
	}
	if isNew || r.ToolPreview.Making() {
		return nil
	}
	return t.ClearTimer(store.TimerPreview, r.ID)
}

// updateTimersFor sets the timers that follow from one event.
func (t timersTx) updateTimersFor(r approvers.Request, e approvers.Event) error {
	switch e := e.(type) {
	case approvers.RequestOpened, approvers.ArgsEdited, approvers.RequestReopened:
		if r.State == approvers.Pending && r.ToolPreview.Making() {
			return t.startPreview(r)
		}
	case approvers.StageStarted, approvers.LeadsLeft, approvers.DecisionMade: // now, perhaps nobody who may decide can be reached
		if r.State == approvers.Pending {
			return t.scheduleAvailability(r)
		}
	case approvers.Escalated:
		if !e.Again {
			return t.scheduleAvailability(r)
		}
	case approvers.AvailabilityResolved:
		if e.RecheckAt.IsZero() {
			return t.ClearTimer(store.TimerAvailability, r.ID)
		}
		return t.SetTimer(store.Timer{Kind: store.TimerAvailability, Ref: r.ID, Due: e.RecheckAt, PutOff: t.now})
	case approvers.RequestApproved:
		if err := t.clearPending(r.ID); err != nil {
			return err
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: r.ID, Due: r.RunBy}); err != nil {
			return err
		}
		if c := r.Facts.Caller; c.Begins() && (c.Decides() || !t.callers.isHeld(r)) {
			return nil // the caller claims the call, or asks for the call's result
		}
		return t.runSoon(r)
	case approvers.RequestConsumed, approvers.RequestClosed:
		if err := t.clearPending(r.ID); err != nil {
			return err
		}
		return t.ClearTimer(store.TimerExpire, r.ID)
	}
	return nil
}

// runSoon sets the timer of an approved call's run.
func (t timersTx) runSoon(r approvers.Request) error {
	return t.SetTimer(store.Timer{Kind: store.TimerRun, Ref: r.Execution, Due: t.now, Affinity: store.ToConversation + r.Conversation})
}

// resetTimers sets all timers of an open request to the times in the request. The timers can have other times after the
// request's deadline was moved, or after the clock was set back.
func (t timersTx) resetTimers(r approvers.Request) error {
	if r.State == approvers.Approved {
		return t.updateTimers(r, []approvers.Event{approvers.RequestApproved{}})
	}
	return t.updateTimers(r, []approvers.Event{approvers.RequestReopened{}, approvers.StageStarted{}})
}

// setOrClear sets a timer, or clears it if due is zero.
func (t timersTx) setOrClear(kind store.TimerKind, ref string, due time.Time) error {
	if due.IsZero() {
		return t.ClearTimer(kind, ref)
	}
	return t.SetTimer(store.Timer{Kind: kind, Ref: ref, Due: due})
}

// startPreview schedules a tool preview. If another preview is still being made, it shows the arguments before an edit,
// so startPreview interrupts it.
func (t timersTx) startPreview(r approvers.Request) error {
	t.interrupts[handled{store.TimerPreview, r.ID}] = true
	return t.SetTimer(store.Timer{Kind: store.TimerPreview, Ref: r.ID, Due: t.now})
}

// clearPending clears the timers that only a pending request has, and interrupts the making of the request's preview.
func (t timersTx) clearPending(request string) error {
	t.interrupts[handled{store.TimerPreview, request}] = true
	for _, kind := range []store.TimerKind{store.TimerEscalate, store.TimerRemind, store.TimerAvailability, store.TimerPreview} {
		if err := t.ClearTimer(kind, request); err != nil {
			return err
		}
	}
	return nil
}
