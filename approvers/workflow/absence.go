package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
	"countersign/store/jobs"
)

// Departure is a person's notice that they are away, with an optional stand-in.
type Departure struct {
	Inbox    string // the id of the delivery from Slack, which SetAway closes
	Who      approvers.Identity
	From     time.Time // zero: now
	Until    time.Time
	Delegate *approvers.Identity // nil: no stand-in
}

// SetAway records a person's absence, and notifies the stand-in. The new absence replaces an earlier absence of the
// person. When the absence begins, and when it ends, the handler of its timer calls AbsenceChanged.
func (w *People) SetAway(ctx context.Context, m Departure) (approvers.Absence, error) {
	var out approvers.Absence
	err := w.click(ctx, "away", Click{Inbox: m.Inbox}, func(t *tx) (*approvers.Denied, error) {
		if m.From.IsZero() {
			m.From = t.now
		}
		a, denied := approvers.Leave(t.deciding(), m.Who, m.From, m.Until, m.Delegate)
		if denied != nil {
			return denied, nil
		}
		if often, err := t.people.awayOften(a.Who); often || err != nil {
			return &approvers.Denied{Code: approvers.DeniedOften}, err
		}
		before, err := t.Absence(a.Who)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		a.Version = before.Version
		if out, err = t.people.putAbsence(a); err != nil {
			return nil, err
		}
		begins := a.From
		if begins.Before(t.now) {
			begins = t.now
		}
		if before.During(t.now) && begins.After(t.now) {
			begins = t.now // the person is back until the new absence begins
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerAway, Ref: string(a.Who), Due: begins}); err != nil || a.Delegate == "" {
			return nil, err
		}
		return nil, t.outbox.add(store.OutboxMessage{Kind: store.OutboxStandIn, Ref: string(a.Who), Step: int(out.Version), To: store.ToUser + a.Delegate.User()})
	})
	return out, err
}

// mostDepartures is the maximum number of absences that a person can set and end in 24 hours. There is a limit, because
// each absence adds audit records and notifies the stand-in.
const mostDepartures = 20

// awayOften reports whether a person has reached mostDepartures. Only SetAway checks this limit, so the person can
// still end the current absence.
func (t peopleTx) awayOften(who approvers.PersonID) (bool, error) {
	records, err := t.Audit(approvers.AbsenceChain(who))
	n := 0
	for _, a := range records {
		if a.Kind == approvers.AuditAway && a.At.After(t.now.Add(-24*time.Hour)) {
			n++
		}
	}
	return n >= 2*mostDepartures, err // each absence has two records: its start and its end
}

// Back handles a person's return. Back ends the person's absence, or cancels an absence that has not begun. Requests
// that went to other people during the absence stay with those people, and the person who is back gets their cards too.
func (w *People) Back(ctx context.Context, inbox string, who approvers.Identity) (approvers.Absence, error) {
	var out approvers.Absence
	err := w.click(ctx, "back", Click{Inbox: inbox}, func(t *tx) (*approvers.Denied, error) {
		a, err := t.Absence(who.ID)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil || a.Over(t.now) {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		if out, err = t.people.putAbsence(a.Back(t.now)); err != nil {
			return nil, err
		}
		if !a.During(t.now) {
			return nil, t.ClearTimer(store.TimerAway, string(who.ID))
		}
		return nil, t.SetTimer(store.Timer{Kind: store.TimerAway, Ref: string(who.ID), Due: t.now})
	})
	return out, err
}

// putAbsence writes an absence and its audit record. putAbsence also updates the notices about the person's previous
// absence.
func (t peopleTx) putAbsence(a approvers.Absence) (approvers.Absence, error) {
	if err := t.PutAbsence(a); err != nil {
		return a, err
	}
	a.Version++
	facts := map[string]string{
		"from": a.From.Format(time.RFC3339), "until": a.Until.Format(time.RFC3339), "delegate": string(a.Delegate), "version": strconv.FormatUint(a.Version, 10),
	}
	if err := t.audit(approvers.AbsenceChain(a.Who), approvers.AuditAway, a.Who, facts, nil); err != nil {
		return a, err
	}
	told, err := t.OutboxMessagesOf(string(a.Who))
	if err != nil {
		return a, err
	}
	for _, s := range told {
		if s.Step != int(a.Version)-1 { // notices about older absences are up to date
			continue
		}
		if err := t.outbox.changed(s); err != nil {
			return a, err
		}
	}
	return a, nil
}

// t.present returns the people who are not away. If all people are away, present returns all of them.
func (t peopleTx) present(people []approvers.Identity) ([]approvers.Identity, error) {
	away, err := view.AwayAt(t, t.now)
	if err != nil || len(away) == 0 {
		return people, err
	}
	here := slices.DeleteFunc(slices.Clone(people), func(who approvers.Identity) bool {
		_, gone := away[who.ID.User()]
		return gone
	})
	if len(here) == 0 {
		return people, nil
	}
	return here, nil
}

// recoverAbsences sets the missing timers of absences that are not over. Programs of earlier versions set no timer for
// the end of an absence.
func (t peopleTx) recoverAbsences(shares store.Shares) error {
	absences, err := t.Absences()
	if err != nil {
		return err
	}
	for _, a := range absences {
		timer := store.Timer{Kind: store.TimerAway, Ref: string(a.Who), Due: a.Until}
		if a.From.After(t.now) {
			timer.Due = a.From
		}
		if a.Over(t.now) || !shares.Has(timer.Share()) {
			continue
		}
		_, err := t.Timer(timer.Kind, timer.Ref)
		if errors.Is(err, store.ErrNotFound) {
			err = t.SetTimer(timer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AbsenceChanged handles the start and the end of a person's absence, for each request that waits for the person. At
// the start, AbsenceChanged schedules an availability check. At the end, AbsenceChanged only shows the card to the
// person. An availability check at this time could ask the lead without need, for example because the other people are
// in do-not-disturb at midnight.
func (w *People) AbsenceChanged(ctx context.Context, timer store.Timer, who approvers.Identity) error {
	now := w.Now()
	var a approvers.Absence
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		a, err = r.Absence(approvers.PersonID(timer.Ref))
		return store.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	var roles []string
	for _, role := range w.Policy().Approvers {
		if role.Holds(who) {
			roles = append(roles, role.Name)
		}
	}
	change := scheduleCheck
	if !a.During(now) {
		change = func(t *tx, r approvers.Request) error {
			back := []approvers.Presence{{Who: who}}
			return errors.Join(t.notices.tellTurns(r, back), t.cards.showJoined(r, back))
		}
	}
	if err := w.eachPending(ctx, waitsFor(approvers.PersonID(timer.Ref), roles), change); err != nil {
		return err
	}
	return w.update(ctx, "absence changed", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err // the absence was replaced or ended meanwhile
		}
		switch {
		case a.Over(now):
			return t.ClearTimer(store.TimerAway, timer.Ref)
		case a.During(now):
			return t.SetTimer(store.Timer{Kind: store.TimerAway, Ref: timer.Ref, Due: a.Until})
		}
		return t.SetTimer(store.Timer{Kind: store.TimerAway, Ref: timer.Ref, Due: a.From})
	})
}

// AccountChanged handles the deactivation or reactivation of a person's account, and the change of the account to or
// from a guest's account. For each request that waits for the person, AccountChanged schedules an availability check.
// roles are the person's current roles, and earlier roles that the person may have had.
func (w *People) AccountChanged(ctx context.Context, inbox string, who approvers.PersonID, roles []string) error {
	if err := w.eachPending(ctx, waitsFor(who, roles), scheduleCheck); err != nil {
		return err
	}
	return w.update(ctx, "account changed", func(t *tx) error { return t.settle(inbox, "") })
}

// GroupChanged handles a change of a user group. For each request whose stage asks for the group, or for a role with
// members of the group, GroupChanged schedules an availability check. roles are the roles with members of the group. A
// stage names a user group by handle or id. The callback "is" reports whether such a name means this group.
func (w *People) GroupChanged(ctx context.Context, inbox string, roles []string, is func(group string) bool) error {
	ofRoles := waitsFor("", roles)
	err := w.eachPending(ctx, func(r approvers.Request) bool {
		stage := r.CurrentStage()
		return ofRoles(r) || stage.Group != "" && is(stage.Group)
	}, scheduleCheck)
	if err != nil {
		return err
	}
	return w.update(ctx, "group changed", func(t *tx) error { return t.settle(inbox, "") })
}

// waitsFor returns a function that reports whether a request waits for one of the roles, or whether the person was
// added to the request's stage.
func waitsFor(who approvers.PersonID, roles []string) func(approvers.Request) bool {
	return func(r approvers.Request) bool {
		return slices.ContainsFunc(r.Roles(), func(role string) bool { return slices.Contains(roles, role) }) ||
			slices.ContainsFunc(r.Invited, func(i approvers.Invite) bool { return i.Who == who })
	}
}

// eachPending calls "change" for each pending request for which the callback "concerned" returns true.
func (w *People) eachPending(ctx context.Context, concerned func(approvers.Request) bool, change func(*tx, approvers.Request) error) error {
	for after, more := (store.RequestCursor{}), true; more; {
		var page []approvers.Request
		err := w.Store.View(ctx, func(r store.Reader) (err error) {
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
		page = slices.DeleteFunc(page, func(r approvers.Request) bool { return r.State != approvers.Pending || !concerned(r) })
		if len(page) == 0 {
			continue
		}
		if err := w.update(ctx, "people changed", func(t *tx) error { return t.changePending(page, change) }); err != nil {
			return err
		}
	}
	return nil
}

// changePending calls "change" for each of the requests that is still pending.
func (t *tx) changePending(requests []approvers.Request, change func(*tx, approvers.Request) error) error {
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
		if err := change(t, r); err != nil {
			return err
		}
	}
	return nil
}

// scheduleCheck schedules an availability check of a request.
func scheduleCheck(t *tx, r approvers.Request) error { return t.timers.scheduleAvailability(r) }

// errRequestChanged means that a request changed while the bot looked up the request's approvers in Slack. The worker
// soon repeats the look-up, so the worker logs no warning.
var errRequestChanged error = requestChangedError{}

type requestChangedError struct{}

func (requestChangedError) Error() string {
	return "the request changed while its people were looked up"
}

func (requestChangedError) After() time.Duration { return 100 * time.Millisecond }

// ResolveAvailability handles the result of an availability check. ResolveAvailability adds stand-ins to the stage, and
// shows the card to people who joined a role or a user group of the stage. If nobody can be reached, or if too few
// people are left who may decide, ResolveAvailability asks the lead. people are the stage's approvers at the time of
// snapshot.
func (w *People) ResolveAvailability(ctx context.Context, timer store.Timer, snapshot view.StageSnapshot, people []approvers.Presence) error {
	return w.update(ctx, "availability", func(t *tx) error {
		r, err := t.requests.pendingRequest(timer, snapshot)
		if err != nil || r.ID == "" {
			return err
		}
		after, events := r.ResolveAvailability(t.deciding(), people)
		if err := errors.Join(t.notices.tellTurns(after, people), t.cards.showJoined(after, people)); err != nil {
			return err
		}
		t.notePeople(r, after)
		found, _ := approvers.FindEvent[approvers.AvailabilityResolved](events)
		if len(events) <= 1 && sameUnreached(r.Unreached, after.Unreached) {
			return t.timers.updateTimersFor(r, found) // only the timers change
		}
		if err := t.apply(after, events); err != nil || !approvers.HasNobodyLeft(r) || approvers.HasNobodyLeft(after) {
			return err
		}
		return t.cards.retryCardsOf(after)
	})
}

// notePeople logs that a request has too few people who may decide it, or that it has enough people again.
func (t *tx) notePeople(r, after approvers.Request) {
	const advice = ": add people to its roles, or reject it. countersign pending lists the request"
	was, lacks := approvers.LacksPeople(r), approvers.LacksPeople(after)
	switch {
	case was == lacks, lacks == approvers.NobodyLeft && r.ReachesNobody() && r.Unreached.Cause == approvers.NobodyThere: // logged already
	case lacks == approvers.NobodyLeft:
		t.note(slog.LevelError, "nobody is left who may decide a request"+advice, "request", r.ID, "conversation", r.Conversation, "tool", r.Tool)
	case lacks == approvers.TooFew:
		t.note(slog.LevelError, "too few people are left who may decide a request"+advice,
			"request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "needed", after.CurrentStage().Quorum, "able", after.Unreached.Able)
	default:
		t.note(slog.LevelInfo, "enough people may decide a request again", "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "since", after.Unreached.Since)
	}
}

// sameUnreached reports whether two requests have the same problem in Unreached, or both have no problem.
func sameUnreached(a, b *approvers.Unreached) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// pendingRequest reads the request that a timer names. If the request or the policy has changed since snapshot was
// read, pendingRequest returns errRequestChanged. If the request is not pending, pendingRequest clears the timer and
// returns an empty request. If the timer was set again after snapshot was read, for example by a person's absence,
// pendingRequest also returns an empty request. The new timer then starts a new look-up of the people.
func (t requestsTx) pendingRequest(timer store.Timer, snapshot view.StageSnapshot) (approvers.Request, error) {
	if _, still, err := jobs.Reread(t, timer); err != nil || !still {
		return approvers.Request{}, err
	}
	r, err := t.Request(timer.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && r.State != approvers.Pending {
		return approvers.Request{}, t.ClearTimer(timer.Kind, timer.Ref)
	}
	if err == nil && (r.Version != snapshot.Request.Version || t.policy.Hash != snapshot.Policy.Hash) {
		err = errRequestChanged
	}
	return r, err
}

// scheduleAvailability schedules an availability check: the bot looks up, in Slack, which of the request's approvers
// can be reached.
func (t timersTx) scheduleAvailability(r approvers.Request) error {
	return t.SetTimer(store.Timer{Kind: store.TimerAvailability, Ref: r.ID, Due: t.now})
}
