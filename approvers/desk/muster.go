package desk

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// Roll is a request, and who is away now, by Slack's user id: from it the people of its stage are looked up.
type Roll struct {
	Request approvers.Request
	Away    map[string]approvers.Absence
	Policy  *approvers.Policy
}

// Roll reads what it takes to look up a stage's people. A request that does not wait any more has no people to look up.
func (d *Desk) Roll(ctx context.Context, request string) (Roll, error) {
	var out Roll
	err := d.Store.View(ctx, func(r store.Reader) error {
		out = Roll{Policy: d.Policy()}
		var err error
		if out.Request, err = r.Request(request); err != nil || out.Request.State != approvers.Pending {
			return ignoreNotFound(err)
		}
		out.Away, err = awayAt(r, d.now())
		return err
	})
	return out, err
}

// errMoved says that the request changed while its people were looked up: they may be others now. The timer is tried again.
var errMoved = errors.New("the request moved on while its people were looked up")

// Muster looks at who of a stage can be reached: it calls those who stand in, and the lead where nobody is here. people are the
// stage's, as the roll's request had them.
func (d *Desk) Muster(ctx context.Context, timer store.Timer, roll Roll, people []approvers.Presence) error {
	return d.update(ctx, "muster", func(t *tx) error {
		r, err := t.pendingRequest(timer, roll)
		if err != nil || r.ID == "" {
			return err
		}
		after, found := r.Muster(t.deciding(), people)
		if err := t.setOrClear(store.TimerMuster, r.ID, found.Again); err != nil {
			return err
		}
		if err := t.tellTurns(after, people); err != nil {
			return err
		}
		if len(found.Invited) == 0 && after.EscalateAt.Equal(r.EscalateAt) {
			return nil
		}
		if err := t.follow(r, after); err != nil {
			return err
		}
		for _, i := range found.Invited {
			if err := t.invited(after, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// pendingRequest reads the request that a timer names, as its people were looked up for. It clears the timer and returns no request where
// nothing waits any more.
func (t *tx) pendingRequest(timer store.Timer, roll Roll) (approvers.Request, error) {
	r, err := t.Request(timer.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && r.State != approvers.Pending {
		return approvers.Request{}, t.ClearTimer(timer.Kind, timer.Ref)
	}
	if err == nil && r.Version != roll.Request.Version {
		err = errMoved
	}
	return r, err
}

// musterNow has it looked at who of a request's stage can be reached.
func (t *tx) musterNow(r approvers.Request) error {
	return t.SetTimer(store.Timer{Kind: store.TimerMuster, Ref: r.ID, Due: t.now})
}

// newPeople reports whether a move gave a pending request another stage, or added a role to it.
func newPeople(before, r approvers.Request) bool {
	return !r.StageAt.Equal(before.StageAt) || len(r.Joined) != len(before.Joined)
}
