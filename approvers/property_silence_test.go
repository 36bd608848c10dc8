package approvers_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// TestSilenceEndsEveryRequest brings a request into a random state, and then lets nothing happen but time: each timer
// is handled when it is due, in any order. Every request ends, within a time and a number of steps that follow from the
// policy, and none is approved by silence. That no timer is left in the past by its own handling is looked at where it
// is handled. -rapid.checks=N runs N times twenty.
func TestSilenceEndsEveryRequest(t *testing.T) {
	ends := &census{}
	often(t, func(t *rapid.T) {
		w := newPropertyFixture(t)
		events := []func(*rapid.T){w.approve, w.approve, w.reject, w.modify, w.handOn, w.muster, w.remind, w.escalate, w.expire, w.pass, w.changePolicy}
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

// silence lets time pass until nothing is due any more.
func (w *propertyFixture) silence(t *rapid.T) {
	if !w.open() {
		return
	}
	again := w.now // when it is looked at who can be reached
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
			again = w.musterAgain(t)
		}
		for _, handle := range rapid.Permutation([]func(*rapid.T){w.escalate, w.remind, w.expire}).Draw(t, "order") {
			handle(t)
		}
		w.check(t)
		if w.state == approvers.Pending && len(w.leads) > asked { // others are asked: can they be reached?
			again = w.now
		}
	}
}

// nextDue is when the next timer is due; zero: never.
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

// musterAgain looks at who can be reached, and says when to look again.
func (w *propertyFixture) musterAgain(t *rapid.T) time.Time {
	_, found := w.r.ResolveAvailability(w.deciding(), nil)
	w.muster(t)
	return recheckAt(found)
}

// longest bounds how long a request can wait that nobody does anything about. Silence passes no stage; it gives each
// lead the stage's time anew.
func (w *propertyFixture) longest() time.Duration {
	if w.state != approvers.Pending {
		return w.runBy.Sub(w.now) + time.Second
	}
	d := w.times().ExpiresAfter
	slowest := d
	for _, r := range w.policy.Approvers {
		if h := r.Hours; h != nil { // at least one working day a week, of which holidays take some away
			days := int(d/(h.To-h.From)) + 1 + len(h.Holidays)
			slowest = max(slowest, time.Duration(days+1)*7*24*time.Hour)
		}
	}
	return time.Duration(1+len(w.policy.Approvers))*slowest + max(0, w.r.ExpiresAt.Sub(w.now))
}

// steps bounds how often anything is due until then: each lead once, each round and reminder once, whoever is in
// do-not-disturb once for each of these, and when people come to work.
func (w *propertyFixture) steps() int {
	times := w.times()
	told := len(w.policy.Approvers) + max(0, times.Repeat) + max(0, times.Reminders)
	return 3 + 2*told + told*len(w.people) + len(w.policy.Approvers)
}
