package approvers_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

// policyWith returns the example's policy with changes. Discounts go to support. The lead of support is team-lead,
// and the lead of team-lead is finance-director.
func policyWith(change ...func(*approvers.Policy)) *approvers.Policy {
	p := example()
	for _, c := range change {
		c(p)
	}
	return p
}

func repeats(n int) func(*approvers.Policy) {
	return func(p *approvers.Policy) { p.Defaults.Repeat, p.Defaults.ExpiresAfter = n, 4*hour }
}

func remindsEvery(d time.Duration, n int) func(*approvers.Policy) {
	return func(p *approvers.Policy) { p.Defaults.RemindAfter, p.Defaults.Reminders = d, n }
}

func silenceEscalates(p *approvers.Policy) { p.Defaults.OnExpiry = approvers.ExpiryEscalates }

// works gives a role working hours.
func works(role string, h *approvers.Hours) func(*approvers.Policy) {
	return func(p *approvers.Policy) {
		for i := range p.Approvers {
			if p.Approvers[i].Name == role {
				p.Approvers[i].Hours = h
			}
		}
	}
}

// TestTheChainIsGoneThroughAgain checks that all people are notified again when there are no more leads. This is
// repeated as often as the policy says.
func TestTheChainIsGoneThroughAgain(t *testing.T) {
	p := policyWith(repeats(2))
	r := open(t, p, "apply_discount", `{}`)
	var told []string
	for range 10 {
		if r.EscalateAt.IsZero() {
			break
		}
		at := r.EscalateAt
		after, e, due := r.Escalate(deciding(p, at))
		if !due {
			t.Fatalf("nothing was due at %s", at)
		}
		if _, _, again := after.Escalate(deciding(p, at)); again {
			t.Fatal("the same step is due twice")
		}
		if escalation(e).Again {
			told = append(told, "again")
			if !after.RemindAt.Equal(at) {
				t.Errorf("everybody is told at %s; want immediately", after.RemindAt)
			}
		} else {
			told = append(told, escalation(e).Lead.Name)
		}
		r = after
	}
	if want := []string{"team-lead", "finance-director", "again", "again"}; !slices.Equal(told, want) {
		t.Errorf("told %v; want %v", told, want)
	}
	if want := start.Add(40 * time.Minute); r.Rounds != 2 || !r.RemindAt.Equal(want) {
		t.Errorf("%d rounds, the last at %s; want 2, at %s", r.Rounds, r.RemindAt, want)
	}
	if r.Stage != 0 || r.Plan.Stages[0].Quorum != 1 || r.State != approvers.Pending {
		t.Errorf("escalation changed what has to be passed: %+v", r.Plan.Stages)
	}
}

// TestSilenceGoesUp checks that a request without a decision escalates to one lead after the other. Each lead gets
// the stage's whole time and may decide. When no lead is left, the request expires without an approval.
func TestSilenceGoesUp(t *testing.T) {
	p := policyWith(silenceEscalates, remindsEvery(20*time.Minute, 5), func(p *approvers.Policy) { p.Defaults.EscalateAfter = 2 * hour })
	r := open(t, p, "apply_discount", `{}`)
	for i, lead := range []string{"team-lead", "finance-director"} {
		if early, _, expired := r.Expire(deciding(p, r.ExpiresAt.Add(-time.Microsecond))); expired {
			t.Fatalf("expired early: %+v", early)
		}
		at := r.ExpiresAt
		if !at.Equal(start.Add(time.Duration(i+1) * 30 * time.Minute)) {
			t.Fatalf("the time ends at %s", at)
		}
		r, _, _ = r.Remind(deciding(p, r.RemindAt), nil)
		up, _, ok := r.Expire(deciding(p, at))
		if !ok || up.State != approvers.Pending || up.Joined[len(up.Joined)-1] != lead || !up.ExpiresAt.Equal(at.Add(30*time.Minute)) {
			t.Fatalf("step %d: %t, %s, joined by %v, until %s", i, ok, up.State, up.Joined, up.ExpiresAt)
		}
		if !up.RemindAt.Equal(at.Add(20 * time.Minute)) {
			t.Errorf("step %d: reminds at %s; want after its 20 minutes again", i, up.RemindAt)
		}
		r = up
	}
	if decided := mustApprove(t, p, r, onFin1, r.ExpiresAt.Add(-time.Minute)); decided.State != approvers.Approved {
		t.Errorf("a lead who was added could not decide: %s", decided.State)
	}
	if end, _, ok := r.Expire(deciding(p, r.ExpiresAt)); !ok || end.State != approvers.Expired {
		t.Errorf("after the last lead it is %s", end.State)
	}
}

// TestAfterTheDeadlineNobodyElseIsTold checks a request whose deadline passed during a long downtime. The request
// only expires: nobody else is notified.
func TestAfterTheDeadlineNobodyElseIsTold(t *testing.T) {
	p := policyWith(remindsEvery(5*time.Minute, 3))
	r := open(t, p, "apply_discount", `{}`)
	for _, late := range []time.Duration{30 * time.Minute, 31 * time.Minute, 7 * 24 * hour} {
		in := deciding(p, start.Add(late))
		if after, _, due := r.Escalate(in); due || after.EscalateAt.IsZero() {
			t.Errorf("%s on: escalated %t, next at %s", late, due, after.EscalateAt)
		}
		if after, told, due := r.Remind(in, here(onSupport)); due || len(told) > 0 || after.Reminded != 0 {
			t.Errorf("%s on: reminded %v", late, told)
		}
		if after, m := r.ResolveAvailability(in, nil); len(m) > 0 || !after.EscalateAt.Equal(r.EscalateAt) {
			t.Errorf("%s on: resolved %+v", late, m)
		}
		if after, _, ok := r.Expire(in); !ok || after.State != approvers.Expired {
			t.Errorf("%s on: %s", late, after.State)
		}
	}
}

// TestAClockThatIsSetBack checks that no step is repeated after the clock was set back. Each later step happens at
// its scheduled time.
func TestAClockThatIsSetBack(t *testing.T) {
	p := policyWith(remindsEvery(5*time.Minute, 3))
	r := open(t, p, "apply_discount", `{}`)
	r, told, due := r.Remind(deciding(p, start.Add(5*time.Minute)), here(onSupport))
	if !due || len(told) != 1 {
		t.Fatalf("reminded %v", told)
	}
	r, _, _ = r.Escalate(deciding(p, start.Add(10*time.Minute)))
	for _, back := range []time.Duration{-7 * 24 * hour, -hour, 0, 9 * time.Minute} {
		in := deciding(p, start.Add(back))
		_, _, escalated := r.Escalate(in)
		_, _, reminded := r.Remind(in, here(onSupport))
		_, _, expired := r.Expire(in)
		if escalated || reminded || expired {
			t.Errorf("at %s from the start: escalated %t, reminded %t, expired %t", back, escalated, reminded, expired)
		}
	}
	if _, _, due := r.Remind(deciding(p, start.Add(10*time.Minute)), here(onSupport)); !due {
		t.Error("the next reminder is lost")
	}
}

// TestHoursOfAStage checks that a stage's clocks stop outside the working hours of its role.
func TestHoursOfAStage(t *testing.T) {
	friday := moment(t, "2026-11-20T16:55:00+01:00")
	monday := moment(t, "2026-11-23T09:00:00+01:00")
	p := policyWith(works("support-agent", weekdays(t, "Europe/Berlin", 9*hour, 17*hour)), remindsEvery(10*time.Minute, 1))
	r := openAt(t, p, friday)
	if want := monday.Add(25 * time.Minute); !r.ExpiresAt.Equal(want) {
		t.Errorf("expires at %s; want %s", r.ExpiresAt, want)
	}
	if want := monday.Add(5 * time.Minute); !r.EscalateAt.Equal(want) || !r.RemindAt.Equal(want) {
		t.Errorf("escalates at %s, reminds at %s; want both at %s", r.EscalateAt, r.RemindAt, want)
	}
	// By default, a request that arrives at night also waits for the working hours.
	if r = openAt(t, p, friday.Add(8*hour)); !r.EscalateAt.Equal(monday.Add(10 * time.Minute)) {
		t.Errorf("escalates at %s", r.EscalateAt)
	}
}

// TestOutsideItGoesUpAtOnce checks a request outside working hours. If the role's working hours are set to escalate,
// the request escalates immediately. TestOutsideItGoesUpAtOnce also checks that the request immediately goes on from a
// lead whose working hours are over too.
func TestOutsideItGoesUpAtOnce(t *testing.T) {
	escalates := func() *approvers.Hours {
		h := weekdays(t, "Europe/Berlin", 9*hour, 17*hour)
		h.Outside = approvers.OutsideEscalates
		return h
	}
	night := moment(t, "2026-11-20T23:00:00+01:00")
	p := policyWith(works("support-agent", escalates()), works("team-lead", escalates()))
	r := openAt(t, p, night)
	for _, lead := range []string{"team-lead", "finance-director"} {
		after, e, due := r.Escalate(deciding(p, night))
		if !due || escalation(e).Lead.Name != lead {
			t.Fatalf("at once to %q (%t); want %s", escalation(e).Lead.Name, due, lead)
		}
		r = after
	}
	if !r.EscalateAt.IsZero() {
		t.Errorf("escalates again at %s", r.EscalateAt)
	}
	if r = openAt(t, p, night.Add(-8*hour)); r.EscalateAt.Equal(night.Add(-8 * hour)) {
		t.Error("it goes up at once during working hours")
	}
}

// TestAStageOfSeveralRoles checks a stage of several roles. The stage expires when the stage's time has passed in the
// working hours of one role.
func TestAStageOfSeveralRoles(t *testing.T) {
	berlin, tokyo := weekdays(t, "Europe/Berlin", 9*hour, 17*hour), weekdays(t, "Asia/Tokyo", 9*hour, 17*hour)
	p := policyWith(works("team-lead", berlin), works("finance-director", tokyo), func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}}
	})
	night := moment(t, "2026-11-23T23:00:00Z") // eight in the morning in Tokyo
	r := openAt(t, p, night)
	if want := night.Add(90 * time.Minute); !r.ExpiresAt.Equal(want) {
		t.Errorf("expires at %s; want half an hour into the day of Tokyo, %s", r.ExpiresAt, want)
	}
}

// TestAChangedPolicyLeavesRunningClocksAlone checks that a changed policy does not change running deadlines. Clocks
// that only the new policy has are started, and clocks that the new policy does not have are stopped.
func TestAChangedPolicyLeavesRunningClocksAlone(t *testing.T) {
	p := policyWith(remindsEvery(12*time.Minute, 3))
	r := open(t, p, "apply_discount", `{}`)
	again := func(r approvers.Request, hash string, at time.Duration, change ...func(*approvers.Policy)) approvers.Request {
		q := policyWith(change...)
		q.Hash = hash
		r, _ = r.Refresh(deciding(q, start.Add(at)), map[string]any{})
		return r
	}
	same := again(r, "policy-2", 8*time.Minute, remindsEvery(12*time.Minute, 3))
	if !same.RemindAt.Equal(r.RemindAt) || !same.EscalateAt.Equal(r.EscalateAt) || !same.ExpiresAt.Equal(r.ExpiresAt) {
		t.Errorf("the clocks moved: remind %s, escalate %s, expire %s", same.RemindAt, same.EscalateAt, same.ExpiresAt)
	}
	if never := again(r, "policy-3", 8*time.Minute); !never.RemindAt.IsZero() {
		t.Errorf("reminds at %s, which the policy does not ask for any more", never.RemindAt)
	}
	plain := open(t, policyWith(), "apply_discount", `{}`)
	if now := again(plain, "policy-4", 8*time.Minute, remindsEvery(12*time.Minute, 3)); !now.RemindAt.Equal(start.Add(20 * time.Minute)) {
		t.Errorf("reminds at %s; the policy asks for it now", now.RemindAt)
	}
}

// openAt opens a discount request at the given time.
func openAt(t testing.TB, p *approvers.Policy, at time.Time) approvers.Request {
	t.Helper()
	r, _ := approvers.Open(deciding(p, at), open(t, p, "apply_discount", `{}`))
	return r
}

// TestRefusalNamesTheLeads checks that the refusal of a person without authority names the leads who were asked.
func TestRefusalNamesTheLeads(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", `{"order_id":"ORD-1","amount":300}`)
	r, _, ok := r.Escalate(deciding(p, r.EscalateAt))
	if !ok {
		t.Fatal("not escalated")
	}
	for who, code := range map[string]approvers.Code{"U0200": approvers.DeniedNotMember, "U0100": approvers.DeniedSelf} {
		if _, denied := r.Authority(p, person(who)); denied == nil || denied.Code != code || denied.Role != "Team Lead or Finance Director" {
			t.Errorf("%s: %+v", who, denied)
		}
	}
}
