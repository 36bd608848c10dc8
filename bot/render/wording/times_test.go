package wording

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
)

// otherwiseOf returns the part of a card's text that says what happens if nobody decides.
func otherwiseOf(t testing.TB, p *approvers.Policy, now time.Time, r approvers.Request) string {
	t.Helper()
	var out []string
	for _, line := range Under(p).IfNobodyActs(r, now) {
		if !line.Empty() {
			out = append(out, line.Mrkdwn())
		}
	}
	return strings.Join(out, " | ")
}

func TestOtherwise(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	weekdays := &approvers.Hours{Zone: berlin, Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * time.Hour, To: 17 * time.Hour}
	policy := func(change func(*approvers.Policy)) *approvers.Policy {
		p := bottest.Policy()
		change(p)
		return p
	}
	escalates := func(p *approvers.Policy) { p.Defaults.OnExpiry = approvers.ExpiryEscalates }
	const by = " at <!date^1772454600^{time}|2 Mar 2026 12:30 UTC> (30 minutes after it was asked) unless decided."
	const rejected = "⏳ Rejected" + by
	const told = " at <!date^1772453400^{time}|2 Mar 2026 12:10 UTC>. Rejected" + by
	const lead = "⏳ Finance Director is asked too" + told
	for _, tt := range []struct {
		name   string
		policy *approvers.Policy
		now    time.Time
		change func(*approvers.Request)
		want   string
	}{
		{"plain", bottest.Policy(), bottest.Noon, func(*approvers.Request) {}, lead},
		{"nobody is left to tell", bottest.Policy(), bottest.Noon, func(r *approvers.Request) { r.EscalateAt = time.Time{} }, rejected},
		{"the escalation would come after the end", bottest.Policy(), bottest.Noon, func(r *approvers.Request) { r.EscalateAt = r.ExpiresAt }, rejected},
		{"silence goes up", policy(escalates), bottest.Noon, func(r *approvers.Request) { r.EscalateAt = r.ExpiresAt.Add(time.Hour) }, "⏳ Goes to Finance Director" + by},
		// The lead is told before the deadline, and there is no higher lead.
		{"silence can't go up any more", policy(escalates), bottest.Noon, func(*approvers.Request) {}, lead},
		{"everybody again", policy(func(p *approvers.Policy) { p.Defaults.Repeat = 1 }), bottest.Noon, func(r *approvers.Request) { r.Joined = []string{"finance-director"} },
			"⏳ Everybody is asked once more" + told},
		{"reminded", bottest.Policy(), bottest.Noon, func(r *approvers.Request) { r.Reminded, r.Told = 1, 1 }, lead},
		{"at work", policy(func(p *approvers.Policy) { p.Approvers[1].Hours = weekdays }), bottest.Noon, func(*approvers.Request) {}, lead},
		{"at night", policy(func(p *approvers.Policy) { p.Approvers[1].Hours = weekdays }), bottest.Noon.Add(-12 * time.Hour), func(*approvers.Request) {}, lead +
			" | 🕘 Outside working hours of Team Lead (Mon–Fri 09:00–17:00 Europe/Berlin): the clock stands still until <!date^1772438400^{date_short_pretty} at {time}|2 Mar 2026 08:00 UTC>."},
		{"at night, and the lead who was told always works", policy(func(p *approvers.Policy) { p.Approvers[1].Hours = weekdays }), bottest.Noon.Add(-12 * time.Hour),
			func(r *approvers.Request) { r.Joined, r.EscalateAt = []string{"finance-director"}, time.Time{} }, rejected},
		{"a deadline on another day", bottest.Policy(), bottest.Noon, func(r *approvers.Request) { r.EscalateAt, r.ExpiresAt = time.Time{}, r.CreatedAt.Add(50*time.Hour) },
			"⏳ Rejected at <!date^1772632800^{date_short_pretty} at {time}|4 Mar 2026 14:00 UTC> (50 hours after it was asked) unless decided."},
		{"one of two agreed", bottest.Policy(), bottest.Noon, func(r *approvers.Request) {
			r.Plan.Stages[0].Quorum, r.EscalateAt = 2, time.Time{}
			*r = bottest.ApprovedBy(*r, "U0002", "Teo", "team-lead", 0)
		}, strings.ReplaceAll(rejected, "unless decided", "unless one more agrees")},
		{"one of three agreed", bottest.Policy(), bottest.Noon, func(r *approvers.Request) {
			r.Plan.Stages[0].Quorum, r.EscalateAt = 3, time.Time{}
			*r = bottest.ApprovedBy(*r, "U0002", "Teo", "team-lead", 0)
		}, strings.ReplaceAll(rejected, "unless decided", "unless 2 more agree")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := bottest.Request(bottest.RefundArgs)
			tt.change(&r)
			if got := otherwiseOf(t, tt.policy, tt.now, r); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestHoursInWords(t *testing.T) {
	const sun, mon, tue, wed, thu, fri, sat = 0, 1, 2, 3, 4, 5, 6
	for want, days := range map[string][]int{
		"Mon–Fri": {mon, tue, wed, thu, fri}, "every day": {sun, mon, tue, wed, thu, fri, sat}, "Sat, Sun": {sat, sun}, "Mon, Wed, Fri": {mon, wed, fri},
		"Mon–Wed, Fri–Sun": {mon, tue, wed, fri, sat, sun}, "Sun": {sun}, "Mon, Tue": {mon, tue},
	} {
		var worked [7]bool
		for _, d := range days {
			worked[d] = true
		}
		if got := workdays(worked); got != want {
			t.Errorf("%v is %q; want %q", days, got, want)
		}
	}
	h := approvers.Hours{Zone: time.UTC, Days: [7]bool{true}, From: 22*time.Hour + 30*time.Minute, To: 24 * time.Hour}
	if got := hours(h); got != "Sun 22:30–24:00 UTC" {
		t.Error(got)
	}
}
