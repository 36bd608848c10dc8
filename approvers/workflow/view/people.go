package view

import (
	"context"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Absence returns a person's latest absence. If the person has had no absence, Absence returns the zero value.
func (v *Reader) Absence(ctx context.Context, who approvers.PersonID) (a approvers.Absence, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		a, err = r.Absence(who)
		return store.IgnoreNotFound(err)
	})
	return a, err
}

// StandsInFor lists the current and future absences whose stand-in is the given person.
func (v *Reader) StandsInFor(ctx context.Context, who approvers.PersonID) (list []approvers.Absence, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		list = nil
		all, err := r.Absences()
		for _, a := range all {
			if a.Delegate == who && !a.Over(v.now()) {
				list = append(list, a)
			}
		}
		return err
	})
	return list, err
}

// Away returns the absences of the people who are away now. The keys are Slack user ids.
func (v *Reader) Away(ctx context.Context) (away map[string]approvers.Absence, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		away, err = AwayAt(r, v.now())
		return err
	})
	return away, err
}

// AwayAt returns the absences of the people who are away at a given time. The keys are Slack user ids.
func AwayAt(r store.Reader, now time.Time) (map[string]approvers.Absence, error) {
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

// StageSnapshot has the data with which the bot looks up the approvers of a request's stage. Away has the absences of
// the people who are away. The keys are Slack user ids.
type StageSnapshot struct {
	Request approvers.Request
	Away    map[string]approvers.Absence
	Policy  *approvers.Policy
}

// StageSnapshot reads the StageSnapshot of a request. If the request is not pending, Away is nil.
func (v *Reader) StageSnapshot(ctx context.Context, request string) (StageSnapshot, error) {
	var out StageSnapshot
	err := v.store.View(ctx, func(r store.Reader) error {
		out = StageSnapshot{Policy: v.Policy()}
		var err error
		if out.Request, err = r.Request(request); err != nil || out.Request.State != approvers.Pending {
			return store.IgnoreNotFound(err)
		}
		out.Away, err = AwayAt(r, v.now())
		return err
	})
	return out, err
}
