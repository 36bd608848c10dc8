package desk

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Departure is a person's word that they are away, and who stands in.
type Departure struct {
	Inbox    string // the delivery that it came in; closed in the same transaction
	Who      approvers.Identity
	From     time.Time // zero: now
	Until    time.Time
	Delegate *approvers.Identity // nil: nobody stands in
}

// SetAway notes that a person is away, in place of what they said before. Whoever stands in is told, and what waits for the person is looked
// at anew when the absence begins.
func (d *Desk) SetAway(ctx context.Context, m Departure) (approvers.Absence, error) {
	var out approvers.Absence
	err := d.click(ctx, "away", Click{Inbox: m.Inbox}, func(t *tx) (*approvers.Denied, error) {
		if m.From.IsZero() {
			m.From = t.now
		}
		a, denied := approvers.Leave(t.deciding(), m.Who, m.From, m.Until, m.Delegate)
		if denied != nil {
			return denied, nil
		}
		before, err := t.Absence(a.Who)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		a.Version = before.Version
		if out, err = t.putAbsence(a); err != nil {
			return nil, err
		}
		begins := a.From
		if begins.Before(t.now) {
			begins = t.now
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerAway, Ref: string(a.Who), Due: begins}); err != nil || a.Delegate == "" {
			return nil, err
		}
		return nil, t.want(store.Surface{Kind: store.SurfaceStandIn, Ref: string(a.Who), Step: int(out.Version), To: toUser + a.Delegate.User()})
	})
	return out, err
}

// Back notes that a person is back, or stays after all. What they were asked meanwhile is where it was.
func (d *Desk) Back(ctx context.Context, inbox string, who approvers.Identity) (approvers.Absence, error) {
	var out approvers.Absence
	err := d.click(ctx, "back", Click{Inbox: inbox}, func(t *tx) (*approvers.Denied, error) {
		a, err := t.Absence(who.ID)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil || a.Over(t.now) {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		if out, err = t.putAbsence(a.Back(t.now)); err != nil {
			return nil, err
		}
		return nil, t.ClearTimer(store.TimerAway, string(who.ID))
	})
	return out, err
}

// putAbsence writes an absence and its record. What told somebody of the one before shows that it is over.
func (t *tx) putAbsence(a approvers.Absence) (approvers.Absence, error) {
	if err := t.PutAbsence(a); err != nil {
		return a, err
	}
	a.Version++
	facts := map[string]string{
		"from": a.From.Format(time.RFC3339), "until": a.Until.Format(time.RFC3339), "delegate": string(a.Delegate), "version": strconv.FormatUint(a.Version, 10),
	}
	if err := t.audit(absenceChain(a.Who), approvers.AuditAway, a.Who, facts, nil); err != nil {
		return a, err
	}
	told, err := t.SurfacesOf(string(a.Who))
	if err != nil {
		return a, err
	}
	for _, s := range told {
		if s.Step != int(a.Version)-1 { // those of still earlier ones show it already
			continue
		}
		if err := t.changed(s); err != nil {
			return a, err
		}
	}
	return a, nil
}

// absenceChain names the audit chain of a person's absences.
func absenceChain(who approvers.PersonID) string { return "absence:" + string(who) }

// Absence reads when a person is away; zero where they never were.
func (d *Desk) Absence(ctx context.Context, who approvers.PersonID) (a approvers.Absence, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		a, err = r.Absence(who)
		return ignoreNotFound(err)
	})
	return a, err
}

// StandsInFor lists the absences of now and of days to come for which somebody stands in.
func (d *Desk) StandsInFor(ctx context.Context, who approvers.PersonID) (list []approvers.Absence, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		list = nil
		all, err := r.Absences()
		for _, a := range all {
			if a.Delegate == who && !a.Over(d.now()) {
				list = append(list, a)
			}
		}
		return err
	})
	return list, err
}

// Away lists who is away now, by Slack's user id.
func (d *Desk) Away(ctx context.Context) (away map[string]approvers.Absence, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		away, err = awayAt(r, d.now())
		return err
	})
	return away, err
}

func awayAt(r store.Reader, now time.Time) (map[string]approvers.Absence, error) {
	all, err := r.Absences()
	if err != nil {
		return nil, err
	}
	away := map[string]approvers.Absence{}
	for _, a := range all {
		if a.During(now) {
			away[a.Who.User()] = a
		}
	}
	return away, nil
}

// present leaves out who is away, unless that leaves nobody.
func (t *tx) present(users []string) ([]string, error) {
	away, err := awayAt(t, t.now)
	if err != nil || len(away) == 0 {
		return users, err
	}
	here := slices.DeleteFunc(slices.Clone(users), func(user string) bool {
		_, gone := away[user]
		return gone
	})
	if len(here) == 0 {
		return users, nil
	}
	return here, nil
}

// Depart begins an absence: whatever waits for one of the person's roles, or for them by name, is looked at anew. roles are those that the
// person holds now.
func (d *Desk) Depart(ctx context.Context, timer store.Timer, roles []string) error {
	who := approvers.PersonID(timer.Ref)
	concerned := func(r approvers.Request) bool {
		return r.State == approvers.Pending && (slices.ContainsFunc(r.Roles(), func(role string) bool { return slices.Contains(roles, role) }) ||
			slices.ContainsFunc(r.Invited, func(i approvers.Invite) bool { return i.Who == who }))
	}
	for after, more := (store.RequestCursor{}), true; more; {
		var page []approvers.Request
		err := d.Store.View(ctx, func(r store.Reader) (err error) {
			page, err = r.OpenRequests(after, pageOfRequests)
			return err
		})
		if err != nil {
			return err
		}
		more = len(page) == pageOfRequests
		if more {
			last := page[len(page)-1]
			after = store.RequestCursor{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		page = slices.DeleteFunc(page, func(r approvers.Request) bool { return !concerned(r) })
		if len(page) == 0 {
			continue
		}
		if err := d.update(ctx, "depart", func(t *tx) error { return t.musterAll(page) }); err != nil {
			return err
		}
	}
	return d.update(ctx, "depart", func(t *tx) error {
		if _, still, err := asRead(t, timer); err != nil || !still {
			return err // it was set anew meanwhile
		}
		return t.ClearTimer(store.TimerAway, timer.Ref)
	})
}

// musterAll has requests looked at that are still open.
func (t *tx) musterAll(requests []approvers.Request) error {
	for _, read := range requests {
		r, err := t.Request(read.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if r.State != approvers.Pending {
			continue
		}
		if err := t.musterNow(r); err != nil {
			return err
		}
	}
	return nil
}
