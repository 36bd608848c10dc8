package approvers_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// TestSilenceEndsEveryRequest brings a request into a random state. Then the test only lets time pass. Each timer is
// handled when it is due, in any order. Every request must end. The policy limits the time and the number of steps
// until the end. No request may be approved. After a timer was handled, the timer's next time must not be in the
// past. With -rapid.checks=N, the test runs 20·N cases.
func TestSilenceEndsEveryRequest(t *testing.T) {
	ends := &census{}
	often(t, func(t *rapid.T) {
		w := newPropertyFixture(t)
		events := []func(*rapid.T){w.approve, w.approve, w.reject, w.modify, w.handOn, w.resolveAvailability, w.remind, w.escalate, w.expire, w.pass, w.changePolicy}
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			if w.over() {
				break
			}
			one(t, "event", events...)(t)
			w.check(t)
		}
		w.refresh(t)
		before := w.state
		w.silence(t)
		if before == approvers.Pending && w.state != approvers.Expired || w.open() {
			t.Fatalf("silence made a %s request %s", before, w.state)
		}
		ends.count(w)
	})
	t.Log(ends)
}

// silence lets time pass until no timer is left.
func (w *propertyFixture) silence(t *rapid.T) {
	if !w.open() {
		return
	}
	again := w.now // when availability is checked next
	latest, most := w.now.Add(w.longest()), w.steps()
	for step := 0; w.open(); step++ {
		due := w.nextDue(again)
		if due.IsZero() || due.After(latest) || step > most {
			t.Fatalf("%s at %s after %d of %d steps, due next at %s; it has to be over at %s", w.r.State, w.now, step, most, due, latest)
		}
		if due.After(w.now) {
			w.now = due
		}
		asked := len(w.leads)
		if !again.IsZero() && !again.After(w.now) {
			again = w.resolveAgain(t)
		}
		for _, handle := range rapid.Permutation([]func(*rapid.T){w.escalate, w.remind, w.expire}).Draw(t, "order") {
			handle(t)
		}
		w.check(t)
		if w.state == approvers.Pending && len(w.leads) > asked { // other people may decide now, so check whether they can be reached
			again = w.now
		}
	}
}

// nextDue returns the time when the next timer is due. If there is no timer, nextDue is zero.
func (w *propertyFixture) nextDue(again time.Time) (due time.Time) {
	timers := []time.Time{w.runBy}
	if w.state == approvers.Pending {
		timers = []time.Time{w.r.ExpiresAt, w.r.EscalateAt, w.r.RemindNext(), again}
	}
	for _, at := range timers {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// resolveAgain checks who can be reached, and returns the time of the next check. The frequent checks of a stage that
// nobody may decide are left out, because a request must end without them.
func (w *propertyFixture) resolveAgain(t *rapid.T) time.Time {
	_, found := w.r.ResolveAvailability(w.deciding(), nil)
	w.resolveAvailability(t)
	if again := recheckAt(found); again.Sub(w.now) > 5*time.Minute {
		return again
	}
	return time.Time{}
}

// longest limits how long a request can wait if nobody acts on it. If nobody decides, the request remains at its
// stage, and each lead who is added gets the stage's full time.
func (w *propertyFixture) longest() time.Duration {
	if w.state != approvers.Pending {
		return w.runBy.Sub(w.now) + time.Second
	}
	d := w.times().ExpiresAfter
	slowest := d
	for _, r := range w.policy.Approvers {
		if h := r.Hours; h != nil { // the role works on at least one day a week, and each holiday may take one of these days
			days := int(d/(h.To-h.From)) + 1 + len(h.Holidays)
			slowest = max(slowest, time.Duration(days+1)*7*24*time.Hour)
		}
	}
	return time.Duration(1+len(w.policy.Approvers))*slowest + max(0, w.r.ExpiresAt.Sub(w.now))
}

// steps limits how many timers can be due while the request waits. There is one timer for each lead, each repetition of
// the escalation chain and each reminder. For each of these timers, there may be one more timer for each person in
// do-not-disturb. There is also one timer for each role that starts work.
func (w *propertyFixture) steps() int {
	times := w.times()
	told := len(w.policy.Approvers) + max(0, times.Repeat) + max(0, times.Reminders)
	return 3 + 2*told + told*len(w.people) + len(w.policy.Approvers)
}
