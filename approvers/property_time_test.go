package approvers_test

import (
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

func (w *propertyFixture) pass(t *rapid.T) {
	w.now = w.now.Add(one(t, "pass", time.Minute, 3*time.Minute, 10*time.Minute, 20*time.Minute, time.Hour, 14*time.Hour))
}

// times returns the tool's times. If the current stage sets times, these replace the tool's times.
func (w *propertyFixture) times() approvers.ToolPolicy {
	t := settings(w.policy, w.call.Tool, w.call.Facts.Agent)
	if s := w.current(); s.ExpiresAfter > 0 {
		t.ExpiresAfter = s.ExpiresAfter
	}
	if s := w.current(); s.EscalateAfter > 0 {
		t.EscalateAfter = s.EscalateAfter
	}
	return t
}

// The method lists the stage's own roles, and the leads who were notified.
func (w *propertyFixture) asked() []string { return append(rolesOf(w.current()), w.leads...) }

// roles returns the existing roles with these names.
func (w *propertyFixture) roles(names []string) (out []approvers.Role) {
	for _, r := range w.policy.Approvers {
		if slices.Contains(names, r.Name) {
			out = append(out, r)
		}
	}
	return out
}

// atWork reports whether a role works at the given time. The function relies on hours that begin and end on the full
// hour.
func atWork(h *approvers.Hours, at time.Time) bool {
	if h == nil {
		return true
	}
	local := at.In(h.Zone)
	hour := time.Duration(local.Hour()) * time.Hour
	return h.Days[local.Weekday()] && !slices.Contains(h.Holidays, local.Format("2006-01-02")) && hour >= h.From && hour < h.To
}

// worksNow reports whether at least one of the roles works now. If there are no roles, worksNow returns true.
func (w *propertyFixture) worksNow(names []string) bool {
	roles := w.roles(names)
	return len(roles) == 0 || slices.ContainsFunc(roles, func(r approvers.Role) bool { return atWork(r.Hours, w.now) })
}

// worked adds up the working time between two times, hour by hour.
func worked(h *approvers.Hours, from, to time.Time) (sum time.Duration) {
	for from.Before(to) {
		end := from.Truncate(time.Hour).Add(time.Hour)
		if end.After(to) {
			end = to
		}
		if atWork(h, from) {
			sum += end.Sub(from)
		}
		from = end
	}
	return sum
}

// The method reports whether the given time is the first time at which one of the roles has worked for the duration
// d, counted from now.
func (w *propertyFixture) through(names []string, at time.Time, d time.Duration) bool {
	roles := w.roles(names)
	if len(roles) == 0 {
		return at.Equal(w.now.Add(d))
	}
	first := false
	for _, r := range roles {
		sum := worked(r.Hours, w.now, at)
		if sum > d {
			return false // the role had worked for d before that time
		}
		first = first || sum == d && atWork(r.Hours, at.Add(-time.Nanosecond))
	}
	return first
}

// checkBegun compares the deadlines of a new stage with the model.
func (w *propertyFixture) checkBegun(t *rapid.T) {
	times, r := w.times(), w.r
	if !r.StageAt.Equal(w.now) || !w.through(w.asked(), r.ExpiresAt, times.ExpiresAfter) {
		t.Fatalf("a stage of %v that began at %s (%s) with %s has its deadline at %s", w.asked(), w.now, r.StageAt, times.ExpiresAfter, r.ExpiresAt)
	}
	if at := r.RemindAt; !at.IsZero() && (times.RemindAfter <= 0 || times.Reminders <= 0 || !at.Before(r.ExpiresAt) || !w.through(w.asked(), at, times.RemindAfter)) {
		t.Fatalf("reminded at %s of what began at %s and ends at %s, every %s, %d times", at, w.now, r.ExpiresAt, times.RemindAfter, times.Reminders)
	}
	w.checkEscalation(t)
}

// checkEscalation compares the time of the next escalation with the model. The escalation is immediate if the people
// who were notified last don't work now, and their roles escalate outside working hours. If there is nobody left to
// notify, there is no escalation.
func (w *propertyFixture) checkEscalation(t *rapid.T) {
	times := w.times()
	at, up := w.r.EscalateAt, len(w.up(w.policy)) > 0
	told := rolesOf(w.current())
	if n := len(w.leads); n > 0 {
		told = w.leads[n-1:]
	}
	atOnce := up && !slices.ContainsFunc(w.roles(told), func(r approvers.Role) bool {
		return r.Hours == nil || r.Hours.Outside != approvers.OutsideEscalates || atWork(r.Hours, w.now)
	})
	switch left := up || w.r.Rounds < times.Repeat; {
	case !left && !at.IsZero():
		t.Fatalf("nobody is left to notify, and the escalation is due at %s", at)
	case atOnce && !at.Equal(w.now):
		t.Fatalf("%v don't work at %s, and the lead is told at %s", told, w.now, at)
	case left && !atOnce && !w.through(w.asked(), at, times.EscalateAfter):
		t.Fatalf("the next of %v is told at %s, %s after %s", w.asked(), at, times.EscalateAfter, w.now)
	}
}

func (w *propertyFixture) escalate(t *rapid.T) {
	due := w.state == approvers.Pending && !w.r.EscalateAt.IsZero() && !w.now.Before(w.r.EscalateAt) && w.now.Before(w.r.ExpiresAt)
	after, told, ok := w.r.Escalate(w.deciding())
	if !due {
		if ok || !reflect.DeepEqual(after, w.r) {
			t.Fatalf("escalated a %s request at %s, due at %s, over at %s", w.r.State, w.now, w.r.EscalateAt, w.r.ExpiresAt)
		}
		return
	}
	up := w.up(w.policy)
	again := len(up) == 0 && w.r.Rounds < w.times().Repeat
	if ok != (len(up) > 0 || again) || escalation(told).Again != again || len(up) > 0 && !slices.Contains(up, escalation(told).Lead.Name) {
		t.Fatalf("escalated %t to %q, again %t; the oracle says one of %v, again %t", ok, escalation(told).Lead.Name, escalation(told).Again, up, again)
	}
	w.decidedNothing(t, "escalation", after)
	if !after.ExpiresAt.Equal(w.r.ExpiresAt) {
		t.Fatal("escalation moved the deadline")
	}
	if len(up) > 0 {
		w.leads = append(w.leads, escalation(told).Lead.Name)
	}
	w.settle(t, after)
	w.checkEscalation(t)
}

// expire handles a deadline. If the policy escalates on expiry, the request goes to the next lead, who gets the stage's
// full time. When there are no more leads, the request expires.
func (w *propertyFixture) expire(t *rapid.T) {
	pending := w.state == approvers.Pending && !w.now.Before(w.r.ExpiresAt)
	due := pending || w.state == approvers.Approved && !w.now.Before(w.runBy)
	after, _, ok := w.r.Expire(w.deciding())
	if ok != due {
		t.Fatalf("expired %t at %s with deadlines %s and %s in state %s", ok, w.now, w.r.ExpiresAt, w.runBy, w.state)
	}
	if !due {
		return
	}
	if !pending || w.times().OnExpiry != approvers.ExpiryEscalates || len(w.up(w.policy)) == 0 {
		w.state = approvers.Expired
		w.settle(t, after)
		return
	}
	lead := after.Joined[len(after.Joined)-1]
	if !slices.Contains(w.up(w.policy), lead) || !w.through([]string{lead}, after.ExpiresAt, w.times().ExpiresAfter) {
		t.Fatalf("silence sent it up to %s, until %s; the oracle says to one of %v", lead, after.ExpiresAt, w.up(w.policy))
	}
	w.decidedNothing(t, "silence", after)
	w.leads = append(w.leads, lead)
	w.settle(t, after)
	w.checkEscalation(t)
}

// remind checks who gets reminders: only people who may decide, have not decided, are present, and may be disturbed. An
// ordinary reminder leaves out people who joined the stage less than half of remind_after ago.
func (w *propertyFixture) remind(t *rapid.T) {
	w.refresh(t)
	people, r := w.drawPresence(t), w.r
	due := w.state == approvers.Pending && !r.RemindNext().IsZero() && !w.now.Before(r.RemindNext()) && w.now.Before(r.ExpiresAt)
	after, told, ok := r.Remind(w.deciding(), people)
	if ok != due {
		t.Fatalf("reminded %t at %s, next at %s, of a %s request that is over at %s", ok, w.now, r.RemindNext(), r.State, r.ExpiresAt)
	}
	if !due {
		return
	}
	all := !r.RemindAt.IsZero() && !w.now.Before(r.RemindAt)
	for _, p := range people {
		since, _ := r.TurnOf(w.policy, p.Who)
		late := all && r.Told == r.Rounds && since.After(r.StageAt) && w.now.Sub(since) < w.times().RemindAfter/2
		i := slices.IndexFunc(r.DeferredReminders, func(o approvers.DeferredReminder) bool { return o.Who == p.Who.ID })
		want := w.awaited(p.Who) && !late && !p.Away && !p.QuietUntil.After(w.now) && (all || i >= 0 && !r.DeferredReminders[i].At.After(w.now))
		if got := slices.ContainsFunc(reminded(told), func(o approvers.Identity) bool { return o.ID == p.Who.ID }); got != want {
			t.Fatalf("%s was reminded: %t; the oracle says %t", p.Who.ID, got, want)
		}
	}
	if after.Reminded > max(0, w.times().Reminders) && after.Reminded > r.Reminded || after.Told > after.Rounds {
		t.Fatalf("reminded %d times and told of %d of %d rounds", after.Reminded, after.Told, after.Rounds)
	}
	if next := after.RemindNext(); !next.IsZero() && !next.After(w.now) {
		t.Fatalf("reminded at %s, and again at %s", w.now, next)
	}
	w.decidedNothing(t, "a reminder", after)
	if !after.ExpiresAt.Equal(r.ExpiresAt) || !after.EscalateAt.Equal(r.EscalateAt) {
		t.Fatal("a reminder moved a deadline")
	}
	w.settle(t, after)
}
