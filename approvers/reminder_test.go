package approvers_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

func names(events []approvers.Event) []string {
	out := []string{}
	for _, p := range reminded(events) {
		out = append(out, p.Name)
	}
	return out
}

func TestReminders(t *testing.T) {
	p := policyWith(remindsEvery(8*time.Minute, 3))
	r := open(t, p, "cancel_account", `{}`)
	people := append(here(onFin1, onFin2, bystander), away(person("U0001")))
	for i := range 3 {
		at := start.Add(time.Duration(i+1) * 8 * time.Minute)
		if !r.RemindNext().Equal(at) {
			t.Fatalf("reminder %d is due at %s; want %s", i+1, r.RemindNext(), at)
		}
		if _, _, due := r.Remind(deciding(p, at.Add(-time.Microsecond)), people); due {
			t.Fatal("reminded too early")
		}
		after, told, due := r.Remind(deciding(p, at), people)
		if !due || !slices.Equal(names(told), []string{"U0003", "U0004"}) || after.Reminded != i+1 {
			t.Fatalf("reminder %d: %t, %v, counted as %d", i+1, due, names(told), after.Reminded)
		}
		r = after
	}
	if !r.RemindNext().IsZero() {
		t.Errorf("one more reminder at %s than the policy says", r.RemindNext())
	}
}

// TestWhoHasDecidedIsNotReminded checks that people who approved get no reminder. If the stage needs more rejections,
// people who rejected also get no reminder.
func TestWhoHasDecidedIsNotReminded(t *testing.T) {
	p := policyWith(remindsEvery(8*time.Minute, 3), func(p *approvers.Policy) {
		p.Approvers[2].Members = users("U0003", "U0004", "U0006")
		p.Tools[6].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2, Rejects: 2}}
	})
	r := open(t, p, "cancel_account", `{}`)
	at := start.Add(8 * time.Minute)
	r = mustApprove(t, p, r, onFin1, at)
	r, _, denied := r.Reject(deciding(p, at), actionBy(r, onFin2, at))
	if denied != nil {
		t.Fatal(denied)
	}
	_, told, _ := r.Remind(deciding(p, at), here(onFin1, onFin2, person("U0006")))
	if !slices.Equal(names(told), []string{"U0006"}) {
		t.Errorf("reminded %v; want who has not decided", names(told))
	}
}

// TestReminderOfGap checks the reminder after a gap. Only people who could decide before the gap are reminded, because
// other people can't have clicked in the gap.
func TestReminderOfGap(t *testing.T) {
	p := policyWith(remindsEvery(8*time.Minute, 3))
	r := open(t, p, "issue_refund", `{"amount":900}`)
	gap := approvers.Gap{From: start.Add(time.Minute), To: start.Add(8 * time.Minute)}
	r = mustApprove(t, p, r, onLead, gap.To)
	after, ok := approvers.RemindOfGap(r, gap.To, gap, false)
	if !ok {
		t.Fatal("a request that waited in the gap is not reminded of")
	}
	if _, told, due := after.Remind(deciding(p, gap.To), here(onFin1, onFin2)); !due || len(names(told)) != 0 {
		t.Errorf("reminded %v, who were asked after the gap; due: %t", names(told), due)
	}
	gap = approvers.Gap{From: gap.To.Add(time.Minute), To: gap.To.Add(8 * time.Minute)}
	after, _ = approvers.RemindOfGap(r, gap.To, gap, false)
	if _, told, _ := after.Remind(deciding(p, gap.To), here(onFin1, onFin2)); !slices.Equal(names(told), []string{"U0003", "U0004"}) {
		t.Errorf("reminded %v, want everybody who was asked before the gap", names(told))
	}
	people := here(onFin1, onFin2)
	people[0].CardAt, people[1].CardAt = gap.From.Add(-time.Second), gap.From.Add(time.Second)
	if _, told, _ := after.Remind(deciding(p, gap.To), people); !slices.Equal(names(told), []string{"U0003"}) {
		t.Errorf("reminded %v, want only the person who got the card before the gap", names(told))
	}
}

// TestDoNotDisturb checks that the reminder comes after the end of do-not-disturb, if the request is still pending.
// If do-not-disturb was extended, the reminder waits for the later end.
func TestDoNotDisturb(t *testing.T) {
	p := policyWith(remindsEvery(8*time.Minute, 1))
	r := open(t, p, "cancel_account", `{}`)
	at, ends, later := start.Add(8*time.Minute), start.Add(12*time.Minute), start.Add(15*time.Minute)
	r, told, _ := r.Remind(deciding(p, at), []approvers.Presence{here(onFin1)[0], quiet(onFin2, ends)})
	if !slices.Equal(names(told), []string{"U0003"}) || !r.RemindNext().Equal(ends) {
		t.Fatalf("reminded %v, next at %s; want U0003, and the other at %s", names(told), r.RemindNext(), ends)
	}
	r, told, due := r.Remind(deciding(p, ends), []approvers.Presence{here(onFin1)[0], quiet(onFin2, later)})
	if !due || len(reminded(told)) != 0 || !r.RemindNext().Equal(later) {
		t.Fatalf("extended: reminded %v, next at %s", names(told), r.RemindNext())
	}
	end, told, due := r.Remind(deciding(p, later), here(onFin1, onFin2))
	if !due || !slices.Equal(names(told), []string{"U0004"}) || !end.RemindNext().IsZero() || end.Reminded != 1 {
		t.Errorf("reminded %v, next at %s, counted %d; want U0004 alone, once, as part of the first", names(told), end.RemindNext(), end.Reminded)
	}
	// A person who has decided in the meantime gets no reminder. An absent person also gets no reminder.
	for _, p2 := range [][]approvers.Presence{{away(onFin2)}, nil} {
		if end, told, _ := r.Remind(deciding(p, later), p2); len(reminded(told)) != 0 || !end.RemindNext().IsZero() {
			t.Errorf("reminded %v, next at %s", names(told), end.RemindNext())
		}
	}
	if done, _, denied := r.Withdraw(deciding(p, at), asker, false, ""); denied != nil || !done.RemindNext().IsZero() {
		t.Errorf("withdrawn, and %v are still owed a reminder", done.DeferredReminders)
	}
}

// TestNoReminderWithANewCard checks that a person who has just got the card is left out of each kind of reminder. If
// there is no later reminder, the person gets a reminder of their own when the person has had the card for
// remind_after.
func TestNoReminderWithANewCard(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*approvers.Policy)
		at     time.Duration
	}{
		{"the last reminder", func(p *approvers.Policy) { p.Defaults.RemindAfter, p.Defaults.Reminders = 8*time.Minute, 1 }, 8 * time.Minute},
		{"everybody once more", repeats(1), 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyWith(tt.change)
			r := open(t, p, "cancel_account", `{}`)
			now := start.Add(tt.at)
			if up, _, due := r.Escalate(deciding(p, now)); due {
				r = up
			}
			people := here(onFin1, onFin2)
			people[1].CardAt = now
			after, events, _ := r.Remind(deciding(p, now), people)
			due, _ := approvers.FindEvent[approvers.ReminderDue](events)
			if len(due.People) != 1 || due.People[0].ID != onFin1.ID {
				t.Errorf("reminded %v; want only the person who has the card for some time", due.People)
			}
			want := []approvers.DeferredReminder{{Who: onFin2.ID, At: now.Add(tt.at)}}
			if !reflect.DeepEqual(after.DeferredReminders, want) {
				t.Errorf("deferred %v; want %v", after.DeferredReminders, want)
			}
		})
	}
}

// TestADeferredReminderStays checks that a reminder that waits for one person is not lost if another person is reminded
// earlier, while the first person is away.
func TestADeferredReminderStays(t *testing.T) {
	p := policyWith(func(p *approvers.Policy) { p.Defaults.RemindAfter, p.Defaults.Reminders = 8*time.Minute, 1 })
	first, second := start.Add(12*time.Minute), start.Add(16*time.Minute)
	quiet := here(onFin1, onFin2)
	quiet[0].QuietUntil, quiet[1].QuietUntil = first, second
	r, _, due := open(t, p, "cancel_account", `{}`).Remind(deciding(p, start.Add(8*time.Minute)), quiet)
	if !due || len(r.DeferredReminders) != 2 {
		t.Fatalf("deferred %v", r.DeferredReminders)
	}
	gone := []approvers.Presence{here(onFin1)[0], away(onFin2)}
	r, _, _ = r.Remind(deciding(p, first), gone)
	if !r.RemindNext().Equal(second) {
		t.Fatalf("the person was away in between, and the next reminder is at %s; want %s", r.RemindNext(), second)
	}
	r, events, _ := r.Remind(deciding(p, second), here(onFin1, onFin2))
	if told, _ := approvers.FindEvent[approvers.ReminderDue](events); len(told.People) != 1 || told.People[0].ID != onFin2.ID {
		t.Errorf("reminded %v", told.People)
	}
}

// TestTwoAreOwed checks that each of two people gets the reminder when their own do-not-disturb ends.
func TestTwoAreOwed(t *testing.T) {
	p := policyWith(remindsEvery(8*time.Minute, 1))
	r := open(t, p, "cancel_account", `{}`)
	first, second := start.Add(10*time.Minute), start.Add(11*time.Minute)
	people := []approvers.Presence{quiet(onFin1, second), quiet(onFin2, first)}
	r, _, _ = r.Remind(deciding(p, start.Add(8*time.Minute)), people)
	r, told, _ := r.Remind(deciding(p, first), people)
	if !slices.Equal(names(told), []string{"U0004"}) || !r.RemindNext().Equal(second) {
		t.Fatalf("reminded %v, next at %s", names(told), r.RemindNext())
	}
	_, told, _ = r.Remind(deciding(p, second), people)
	if !slices.Equal(names(told), []string{"U0003"}) {
		t.Errorf("reminded %v", names(told))
	}
}

// TestARoundIsNoReminder checks that a repeated notification of all people (after the last lead) does not count as a
// reminder.
func TestARoundIsNoReminder(t *testing.T) {
	p := policyWith(repeats(1), remindsEvery(25*time.Minute, 1))
	r := open(t, p, "cancel_account", `{}`)
	at := start.Add(10 * time.Minute)
	r, e, _ := r.Escalate(deciding(p, at))
	if !escalation(e).Again {
		t.Fatal("not told again")
	}
	r, told, due := r.Remind(deciding(p, at), here(onFin1, onFin2))
	if !due || len(reminded(told)) != 2 || r.Reminded != 0 || !r.RemindAt.Equal(at.Add(25*time.Minute)) {
		t.Fatalf("told %v, %d reminders used up, next at %s", names(told), r.Reminded, r.RemindAt)
	}
	r, told, _ = r.Remind(deciding(p, r.RemindAt), here(onFin1))
	if len(reminded(told)) != 1 || r.Reminded != 1 || !r.RemindAt.IsZero() {
		t.Errorf("told %v, %d reminders, next at %s", names(told), r.Reminded, r.RemindAt)
	}
}

// TestLeadIsNotRemindedAtOnce checks that a lead who was just asked gets no reminder with the others. The lead gets the
// next reminder. If there is no next reminder, the lead gets one when remind_after has passed since the lead was asked.
func TestLeadIsNotRemindedAtOnce(t *testing.T) {
	for reminders, want := range map[int]time.Duration{1: 5*time.Minute + 6*time.Minute, 2: 2 * 6 * time.Minute} {
		p := policyWith(remindsEvery(6*time.Minute, reminders), func(p *approvers.Policy) { p.Defaults.EscalateAfter = 5 * time.Minute })
		r := open(t, p, "issue_refund", `{"order_id":"ORD-1","amount":300}`)
		r, events, _ := r.Escalate(deciding(p, r.EscalateAt))
		if e := escalation(events); e.Lead.Name == "" || !r.JoinedAt[0].Equal(start.Add(5*time.Minute)) {
			t.Fatalf("no lead was asked at %s: %+v", r.JoinedAt, events)
		}
		people := here(onLead, onFin1)
		r, told, _ := r.Remind(deciding(p, start.Add(6*time.Minute)), people)
		if !slices.Equal(names(told), []string{onLead.Name}) {
			t.Fatalf("reminded %v one minute after the lead was asked", names(told))
		}
		if at := start.Add(want); !r.RemindNext().Equal(at) {
			t.Fatalf("%d reminders: the next is at %s; want %s", reminders, r.RemindNext(), at)
		}
		_, told, _ = r.Remind(deciding(p, start.Add(want)), people)
		if !slices.Contains(names(told), onFin1.Name) {
			t.Errorf("%d reminders: reminded %v; want also the lead", reminders, names(told))
		}
	}
}
