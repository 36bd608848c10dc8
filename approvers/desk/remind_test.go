package desk_test

import (
	"maps"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// reminding has those who have not decided reminded every d, n times.
func reminding(d time.Duration, n int) func(*approvers.Policy) {
	return func(p *approvers.Policy) { p.Defaults.RemindAfter, p.Defaults.Reminders = d, n }
}

func (o *office) wantReminders(request string, want map[string]int) {
	o.t.Helper()
	if got := o.reminders(request); !maps.Equal(got, want) {
		o.t.Errorf("reminders %v; want %v", got, want)
	}
}

// TestRemindersComeAndEnd: each person who has not decided is told as often as the policy says, and nobody after it is decided.
func TestRemindersComeAndEnd(t *testing.T) {
	o := newOfficeWith(t, reminding(8*time.Minute, 2))
	start := o.clock.Now()
	r := o.ask(`issue_refund {"amount":900}`)
	o.at(start.Add(8 * time.Minute))
	o.wantReminders(r.ID, map[string]int{"user:U0002": 1})
	o.approve(lead, r.ID)
	stage2 := o.clock.Now()
	o.approve(fin1, r.ID)
	o.at(stage2.Add(7 * time.Minute))
	o.wantReminders(r.ID, map[string]int{"user:U0002": 1})
	o.at(stage2.Add(29 * time.Minute))
	o.wantReminders(r.ID, map[string]int{"user:U0002": 1, "user:U0004": 2})
	o.wantKinds(r.ID, "proposed reminded decided advanced decided reminded reminded")
	if got := o.request(r.ID); got.Reminded != 2 || !got.RemindNext().IsZero() {
		t.Errorf("%d reminders, next at %s", got.Reminded, got.RemindNext())
	}
	o.approve(fin2, r.ID)
	if n := len(o.timers(store.TimerRemind)); n != 0 {
		t.Errorf("%d reminders are left", n)
	}
	for _, s := range o.surfacesOf(r.ID) {
		if s.Note == store.NoteReminder && s.Want < 2 {
			t.Errorf("the reminder to %s does not show that it is settled", s.To)
		}
	}
}

// TestRemindersPassBy who is away, but not who stands in, nor the lead who was told.
func TestRemindersPassBy(t *testing.T) {
	o := newOfficeWith(t, withDeputy, reminding(20*time.Minute, 1))
	start := o.clock.Now()
	o.away(lead, time.Hour, deputy)
	r := o.ask(`issue_refund {"amount":1}`)
	o.at(start.Add(20 * time.Minute))
	o.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1, "user:U0005": 1})
}

// TestAReminderWaitsForTheEndOfDoNotDisturb, over a restart, and is dropped when it is decided before.
func TestAReminderWaitsForTheEndOfDoNotDisturb(t *testing.T) {
	for _, decided := range []bool{false, true} {
		o := newOfficeWith(t, reminding(8*time.Minute, 1))
		start := o.clock.Now()
		r := o.ask(`cancel_account {}`)
		o.due()
		ends := start.Add(12 * time.Minute)
		o.quiet["U0004"] = ends
		o.at(start.Add(8 * time.Minute))
		o.wantReminders(r.ID, map[string]int{"user:U0003": 1})
		if due := o.timers(store.TimerRemind)[r.ID].Due; !due.Equal(ends) {
			t.Fatalf("the reminder that is owed is due at %s; want %s", due, ends)
		}
		o.reopen()
		if decided {
			o.approve(fin1, r.ID)
		}
		o.at(ends.Add(time.Minute))
		if decided {
			o.wantReminders(r.ID, map[string]int{"user:U0003": 1})
			continue
		}
		o.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
		o.at(start.Add(29 * time.Minute))
		o.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
	}
}

// TestEverybodyIsToldAgain when the chain has ended and the policy has it gone through once more.
func TestEverybodyIsToldAgain(t *testing.T) {
	o := newOfficeWith(t, func(p *approvers.Policy) { p.Defaults.Repeat = 1 })
	start := o.clock.Now()
	r := o.ask(`cancel_account {}`)
	o.at(start.Add(escalateAfter))
	o.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
	o.at(start.Add(2*escalateAfter + time.Minute))
	o.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
	o.wantKinds(r.ID, "proposed escalated reminded")
}

// TestSilenceGoesUpToTheEnd: each lead gets the stage's whole time, then it is rejected.
func TestSilenceGoesUpToTheEnd(t *testing.T) {
	o := newOfficeWith(t, func(p *approvers.Policy) {
		p.Defaults.OnExpiry, p.Defaults.EscalateAfter = approvers.ExpiryEscalates, time.Hour
	})
	start := o.clock.Now()
	r := o.ask(`apply_discount {}`)
	o.at(start.Add(2*expiresAfter - time.Second))
	if got := o.wantState(r.ID, approvers.Pending); len(got.Joined) != 1 {
		t.Errorf("told %v", got.Joined)
	}
	o.at(start.Add(3*expiresAfter - time.Second))
	o.wantState(r.ID, approvers.Pending)
	o.at(start.Add(3 * expiresAfter))
	o.wantState(r.ID, approvers.Expired)
	o.wantKinds(r.ID, "proposed escalated escalated closed returned")
	o.wantOutcome(r.Call, approvers.OutcomeExpired)
}

// TestJumpsOfTheClock: whatever the clock does, no step is done twice, and none that still makes sense is lost.
func TestJumpsOfTheClock(t *testing.T) {
	const day = 24 * time.Hour
	// What came late begins its next wait late, so there is less time for reminders.
	tests := []struct {
		name  string
		jumps []time.Duration // each at ten minutes' distance, from five minutes on
		state approvers.State
		audit string
	}{
		{"steadily", []time.Duration{0, 0, 0}, approvers.Expired, "proposed reminded escalated reminded escalated reminded closed returned"},
		{"an hour back", []time.Duration{-time.Hour, 0, 0}, approvers.Pending, "proposed"},
		{"an hour back and on again", []time.Duration{-time.Hour, time.Hour, 0}, approvers.Expired, "proposed reminded escalated reminded escalated closed returned"},
		{"an hour on", []time.Duration{time.Hour}, approvers.Expired, "proposed closed returned"},
		{"an hour on and back", []time.Duration{time.Hour, -time.Hour}, approvers.Expired, "proposed closed returned"},
		{"a week on", []time.Duration{7 * day}, approvers.Expired, "proposed closed returned"},
		{"a week back", []time.Duration{-7 * day}, approvers.Pending, "proposed"},
		{"a week back and on again", []time.Duration{-7 * day, 7 * day, 0}, approvers.Expired, "proposed reminded escalated reminded escalated closed returned"},
		{"back after the first steps", []time.Duration{0, -time.Hour, time.Hour, 0}, approvers.Expired, "proposed reminded escalated reminded escalated closed returned"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newOfficeWith(t, reminding(9*time.Minute, 3))
			r := o.ask(`apply_discount {}`)
			o.at(o.clock.Now().Add(5 * time.Minute))
			for _, jump := range tt.jumps {
				o.clock.pass(jump)
				o.reopen()
				o.due()
				o.at(o.clock.Now().Add(10 * time.Minute))
				o.due()
			}
			o.wantState(r.ID, tt.state)
			o.wantKinds(r.ID, tt.audit)
		})
	}
}
