package workflow_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// The function reminding changes the policy so that people who have not decided get n reminders, with the duration d
// before each reminder.
func reminding(d time.Duration, n int) func(*approvers.Policy) {
	return func(p *approvers.Policy) { p.Defaults.RemindAfter, p.Defaults.Reminders = d, n }
}

func (h *harness) wantReminders(request string, want map[string]int) {
	h.t.Helper()
	if got := h.reminders(request); !maps.Equal(got, want) {
		h.t.Errorf("reminders %v; want %v", got, want)
	}
}

// TestRemindersComeAndEnd checks that each person who has not decided gets as many reminders as the policy says. After
// the end of the request, nobody gets a reminder.
func TestRemindersComeAndEnd(t *testing.T) {
	h := newHarnessWith(t, reminding(8*time.Minute, 2))
	start := h.clock.Now()
	r := h.ask(`issue_refund {"amount":900}`)
	h.at(start.Add(8 * time.Minute))
	h.wantReminders(r.ID, map[string]int{"user:U0002": 1})
	h.approve(lead, r.ID)
	stage2 := h.clock.Now()
	h.approve(fin1, r.ID)
	h.at(stage2.Add(7 * time.Minute))
	h.wantReminders(r.ID, map[string]int{"user:U0002": 1})
	h.at(stage2.Add(29 * time.Minute))
	h.wantReminders(r.ID, map[string]int{"user:U0002": 1, "user:U0004": 2})
	h.wantKinds(r.ID, "proposed reminded decided advanced decided reminded reminded")
	if got := h.request(r.ID); got.Reminded != 2 || !got.RemindNext().IsZero() {
		t.Errorf("%d reminders, next at %s", got.Reminded, got.RemindNext())
	}
	h.approve(fin2, r.ID)
	if n := len(h.timers(store.TimerRemind)); n != 0 {
		t.Errorf("%d reminders are left", n)
	}
	for _, s := range h.messagesOf(r.ID) {
		if s.Note == store.NoteReminder && s.Revision < 2 {
			t.Errorf("the reminder to %s does not show that it is settled", s.To)
		}
	}
}

// TestTooFewAreLeftAtAReminder checks that the bot notices at a reminder that too few people are left, although Slack's
// event about a deactivated account was lost.
func TestTooFewAreLeftAtAReminder(t *testing.T) {
	h := newHarnessWith(t, reminding(3*time.Minute, 3), noLead, func(p *approvers.Policy) {
		p.Tools[4].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
	})
	r := h.ask(`cancel_account {}`)
	h.due()
	h.gone["U0004"] = true
	h.at(h.clock.Now().Add(4 * time.Minute))
	if got := h.request(r.ID); !approvers.HasTooFew(got) || got.Unreached.Able != 1 {
		t.Errorf("%+v", got.Unreached)
	}
}

// TestARefusedNoticeComesOnce checks a person whose stage lacks people and is therefore checked again and again. Slack
// refuses the notice that the stage waits for the person, so the notice is not repeated with each check.
func TestARefusedNoticeComesOnce(t *testing.T) {
	h := newHarnessWith(t, twoStages, noLead, func(p *approvers.Policy) { p.Tools[3].Stages[1].Quorum = 2 })
	r := h.ask(`issue_refund {"amount":1}`)
	h.expandCards(r.ID)
	h.answerAt(r.ID, "user:U0005", true)
	h.due()
	h.gone["U0003"] = true
	h.clock.pass(time.Second)
	h.approve(lead, r.ID)
	for range 4 {
		h.due()
		for _, s := range h.messagesOf(r.ID) {
			if s.Note == store.NoteTurn && s.State == store.OutboxWanted {
				h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "cannot_dm", ""))
			}
		}
		h.clock.pass(5 * time.Minute)
	}
	if got := h.places(r.ID, store.OutboxNotice); got != "user:U0005" {
		t.Errorf("notices at %s", got)
	}
}

// TestRemindersPassBy checks that people who are away get no reminders. Stand-ins get reminders, and so do leads to
// whom the request escalated.
func TestRemindersPassBy(t *testing.T) {
	h := newHarnessWith(t, withDeputy, reminding(20*time.Minute, 1))
	start := h.clock.Now()
	h.away(lead, time.Hour, deputy)
	r := h.ask(`issue_refund {"amount":1}`)
	h.at(start.Add(20 * time.Minute))
	h.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1, "user:U0005": 1})
}

// TestNoReminderForWhoJustGotTheCard checks a person who is back from an absence when a reminder is due. The person
// gets the card, and no reminder together with it. This was the last reminder, so the person gets a reminder of their
// own later.
func TestNoReminderForWhoJustGotTheCard(t *testing.T) {
	h := newHarnessWith(t, reminding(8*time.Minute, 1))
	start := h.clock.Now()
	h.away(fin1, 8*time.Minute)
	r := h.ask(`cancel_account {}`)
	h.expandCards(r.ID)
	h.at(start.Add(8 * time.Minute))
	h.expandCards(r.ID)
	if got, want := h.cardsOf(r.ID), []string{"role:finance-director", "user:U0004", "user:U0003"}; !slices.Equal(got, want) {
		t.Errorf("cards at %v; want %v", got, want)
	}
	h.wantReminders(r.ID, map[string]int{"user:U0004": 1})
	h.at(start.Add(16 * time.Minute))
	h.wantReminders(r.ID, map[string]int{"user:U0004": 1, "user:U0003": 1})
}

// TestAReminderWaitsForTheEndOfDoNotDisturb checks that a person in do-not-disturb gets a reminder when do-not-disturb
// ends, even after a restart. If the request is decided earlier, the reminder is dropped.
func TestAReminderWaitsForTheEndOfDoNotDisturb(t *testing.T) {
	for _, decided := range []bool{false, true} {
		h := newHarnessWith(t, reminding(8*time.Minute, 1))
		start := h.clock.Now()
		r := h.ask(`cancel_account {}`)
		h.due()
		ends := start.Add(12 * time.Minute)
		h.quiet["U0004"] = ends
		h.at(start.Add(8 * time.Minute))
		h.wantReminders(r.ID, map[string]int{"user:U0003": 1})
		if due := h.timers(store.TimerRemind)[r.ID].Due; !due.Equal(ends) {
			t.Fatalf("the postponed reminder is due at %s; want %s", due, ends)
		}
		h.reopen()
		if decided {
			h.approve(fin1, r.ID)
		}
		h.at(ends.Add(time.Minute))
		if decided {
			h.wantReminders(r.ID, map[string]int{"user:U0003": 1})
			continue
		}
		h.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
		h.at(start.Add(29 * time.Minute))
		h.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
	}
}

// TestEverybodyIsToldAgain checks that all approvers get a reminder some time after the last lead was asked.
func TestEverybodyIsToldAgain(t *testing.T) {
	h := newHarnessWith(t, func(p *approvers.Policy) { p.Defaults.Repeat = 1 })
	start := h.clock.Now()
	r := h.ask(`cancel_account {}`)
	h.at(start.Add(escalateAfter))
	h.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
	h.at(start.Add(2*escalateAfter + time.Minute))
	h.wantReminders(r.ID, map[string]int{"user:U0003": 1, "user:U0004": 1})
	h.wantKinds(r.ID, "proposed escalated reminded")
}

// TestSilenceGoesUpToTheEnd checks a request that nobody decides. Each lead to whom it escalates has the stage's whole
// time. After the last lead's time, the request expires.
func TestSilenceGoesUpToTheEnd(t *testing.T) {
	h := newHarnessWith(t, func(p *approvers.Policy) {
		p.Defaults.OnExpiry, p.Defaults.EscalateAfter = approvers.ExpiryEscalates, time.Hour
	})
	start := h.clock.Now()
	r := h.ask(`apply_discount {}`)
	h.at(start.Add(2*expiresAfter - time.Second))
	if got := h.wantState(r.ID, approvers.Pending); len(got.Joined) != 1 {
		t.Errorf("told %v", got.Joined)
	}
	h.at(start.Add(3*expiresAfter - time.Second))
	h.wantState(r.ID, approvers.Pending)
	h.at(start.Add(3 * expiresAfter))
	h.wantState(r.ID, approvers.Expired)
	h.wantKinds(r.ID, "proposed escalated escalated closed returned")
	h.wantOutcome(r.Call, approvers.OutcomeExpired)
}

// TestJumpsOfTheClock checks reminders, escalations and the expiry when the clock jumps. No step happens twice. A step
// is skipped only if it is useless after the jump.
func TestJumpsOfTheClock(t *testing.T) {
	const day = 24 * time.Hour
	// If a reminder or an escalation is late, the next wait also begins late, so less time remains for later reminders.
	tests := []struct {
		name  string
		jumps []time.Duration // the jumps of the clock: the first after five minutes, then one every ten minutes
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
			h := newHarnessWith(t, reminding(9*time.Minute, 3))
			r := h.ask(`apply_discount {}`)
			h.at(h.clock.Now().Add(5 * time.Minute))
			for _, jump := range tt.jumps {
				h.clock.pass(jump)
				h.reopen()
				h.due()
				h.at(h.clock.Now().Add(10 * time.Minute))
				h.due()
			}
			h.wantState(r.ID, tt.state)
			h.wantKinds(r.ID, tt.audit)
		})
	}
}
