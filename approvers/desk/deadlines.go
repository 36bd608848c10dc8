package desk

import (
	"context"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// clickGrace is how soon an expiry is tried again that waits for a click received before the deadline. It doubles up to maxGrace:
// a delivery that can't be handled for a long time must not keep the store busy.
const (
	clickGrace = 50 * time.Millisecond
	maxGrace   = 5 * time.Second
)

// Expire rejects a request whose deadline passed. Clicks that were received before the deadline are handled first.
func (d *Desk) Expire(ctx context.Context, timer store.Timer) error {
	return d.update(ctx, "expire", func(t *tx) error {
		r, err := t.openRequest(store.TimerExpire, timer.Ref)
		if err != nil || r.ID == "" {
			return err
		}
		after, expired := r.Expire(t.deciding())
		if !expired {
			return t.arm(approvers.Request{}, r) // the deadline was moved, or the clock was set back
		}
		if r.State == approvers.Pending {
			if early, err := t.handledFirst(timer, r.ExpiresAt); early || err != nil {
				return err
			}
		}
		if after.State == approvers.Pending {
			return t.escalated(r, after, approvers.Escalation{Lead: t.lastJoined(after)})
		}
		return t.follow(r, after)
	})
}

// handledFirst puts the end of something off while a click or a form that was received by its deadline is not handled yet. It reports whether it did.
// Nothing else that comes from Slack decides anything.
func (t *tx) handledFirst(timer store.Timer, deadline time.Time) (bool, error) {
	early, err := t.Unhandled(store.InboxInteraction, deadline)
	if err != nil || !early {
		return false, err
	}
	timer.Due = t.now.Add(min(clickGrace<<min(timer.Tries, 10), maxGrace))
	timer.Tries++
	return true, t.SetTimer(timer)
}

// openRequest reads the request that a timer names. It clears the timer and returns no request where there is nothing left to do.
func (t *tx) openRequest(kind store.TimerKind, id string) (approvers.Request, error) {
	r, err := t.Request(id)
	if errors.Is(err, store.ErrNotFound) || (err == nil && !r.State.Open()) {
		return approvers.Request{}, t.ClearTimer(kind, id)
	}
	return r, err
}

// Escalate tells the next lead up, whose members may decide the current stage from then on.
func (d *Desk) Escalate(ctx context.Context, timer store.Timer) error {
	return d.update(ctx, "escalate", func(t *tx) error {
		r, err := t.openRequest(store.TimerEscalate, timer.Ref)
		if err != nil || r.ID == "" {
			return err
		}
		after, told, due := r.Escalate(t.deciding())
		if !due {
			if after.State == approvers.Pending && after.EscalateAt.IsZero() && !r.EscalateAt.IsZero() {
				return t.follow(r, after) // the policy has no lead any more: the cards must not promise one
			}
			if after.EscalateAt.IsZero() || after.State != approvers.Pending {
				return t.ClearTimer(store.TimerEscalate, r.ID)
			}
			return t.SetTimer(store.Timer{Kind: store.TimerEscalate, Ref: r.ID, Due: t.notYet(after.EscalateAt)})
		}
		return t.escalated(r, after, told)
	})
}

// notYet is when to look again at what was not due: at its time, or, where that has passed and the deadline too, soon. It is the expiry's turn then.
func (t *tx) notYet(due time.Time) time.Time {
	if due.After(t.now) {
		return due
	}
	return t.now.Add(maxGrace)
}

// escalated writes an escalation, and has those who are told by it told.
func (t *tx) escalated(before, after approvers.Request, told approvers.Escalation) error {
	facts := map[string]string{"role": told.Lead.Name, "digest": after.Digest}
	if told.Again {
		facts["again"] = strconv.Itoa(after.Rounds)
	}
	if err := t.audit(after.ID, approvers.AuditEscalated, "", facts, nil); err != nil {
		return err
	}
	if err := t.follow(before, after); err != nil {
		return err
	}
	if err := t.cardsAgain(after); err != nil || told.Again {
		return err
	}
	return t.wantInLine(after, toRole+told.Lead.Name)
}

// lastJoined is the role that escalation added last.
func (t *tx) lastJoined(r approvers.Request) approvers.Role {
	role, _ := t.policy.Role(r.Joined[len(r.Joined)-1])
	return role
}
