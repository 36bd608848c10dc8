package desk_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// withDeputy is the policy with a second team lead, who has a role of their own, and U0006, who has none.
func withDeputy(p *approvers.Policy) {
	p.Approvers = append(p.Approvers, approvers.Role{
		Name: "deputy", Title: "Deputy", Members: users("U0005"), MaxRisk: approvers.High, CanApprove: []string{"*"},
	})
}

var deputy = person("U0005")

func newOfficeWith(t testing.TB, change ...func(*approvers.Policy)) *office {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", change...))
	return o
}

// TestWhoStandsInIsAsked: the card of somebody away goes to whoever stands in, who decides in their own name.
func TestWhoStandsInIsAsked(t *testing.T) {
	o := newOfficeWith(t, withDeputy)
	a := o.away(lead, 48*time.Hour, deputy)
	if len(a.Covers) != 1 || a.Covers[0].None || a.Version != 1 {
		t.Errorf("%+v", a)
	}
	told := o.surfacesOf(string(lead.ID))
	if len(told) != 1 || told[0].Kind != store.SurfaceStandIn || told[0].To != "user:U0005" {
		t.Errorf("whoever stands in is told by %+v", told)
	}
	r := o.ask(`issue_refund {"amount":1}`)
	o.due()
	if got, want := o.cardsOf(r.ID), []string{"role:team-lead", "user:U0005"}; !slices.Equal(got, want) {
		t.Errorf("cards at %v; want %v", got, want)
	}
	o.wantKinds(r.ID, "proposed invited")
	got := o.request(r.ID)
	if len(got.Joined) != 0 || !got.EscalateAt.Equal(r.EscalateAt) {
		t.Errorf("the lead was told too, although somebody is here: %v", got.Joined)
	}
	if out := o.approve(deputy, r.ID); out.State != approvers.Approved || out.ClosedBy != deputy.ID || out.ClosedRole != "deputy" {
		t.Errorf("%s by %s as %s", out.State, out.ClosedBy, out.ClosedRole)
	}
	if n := len(o.timers(store.TimerMuster)); n != 0 {
		t.Errorf("%d musters are left", n)
	}
}

// TestOnlyTheLastAbsenceIsShownAnew: what told of those before it says that they are over already.
func TestOnlyTheLastAbsenceIsShownAnew(t *testing.T) {
	o := newOfficeWith(t, withDeputy)
	for range 4 {
		o.away(lead, 48*time.Hour, deputy)
	}
	var wants []uint64
	for _, s := range o.surfacesOf(string(lead.ID)) {
		wants = append(wants, s.Want)
	}
	if want := []uint64{2, 2, 2, 1}; !slices.Equal(wants, want) {
		t.Errorf("what told whoever stands in is wanted in versions %v; want %v", wants, want)
	}
	_, err := o.Back(o.ctx(), "", lead)
	o.ok(err)
	if last := o.surfacesOf(string(lead.ID))[3]; last.Want != 2 {
		t.Errorf("the last one does not show that it is over")
	}
}

// TestNobodyIsHere: then the lead is told at once, and the lead's lead where that one can't be reached either.
func TestNobodyIsHere(t *testing.T) {
	o := newOffice(t)
	o.away(support, time.Hour)
	o.due() // the absence has begun: nothing but the request itself has its people looked up
	o.quiet["U0002"] = o.clock.Now().Add(time.Hour)
	r := o.ask(`apply_discount {}`)
	o.due()
	got := o.request(r.ID)
	if want := []string{"team-lead", "finance-director"}; !slices.Equal(got.Joined, want) {
		t.Fatalf("told %v; want %v at once", got.Joined, want)
	}
	o.wantKinds(r.ID, "proposed escalated escalated")
	if n := len(o.timers(store.TimerMuster)); n != 0 {
		t.Errorf("%d musters are left", n)
	}
	o.due()
	o.wantKinds(r.ID, "proposed escalated escalated")
}

// TestNobodyIsHereAtNight: the clock stands still, and it is looked at again in the morning.
func TestNobodyIsHereAtNight(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	hours := &approvers.Hours{Zone: zone, Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * time.Hour, To: 17 * time.Hour, Outside: approvers.OutsideWaits}
	o := newOfficeWith(t, func(p *approvers.Policy) { p.Approvers[0].Hours = hours })
	o.clock.pass(11 * time.Hour) // nine in the evening
	morning := time.Date(2026, 3, 3, 9, 0, 0, 0, zone)
	o.quiet["U0001"] = morning.Add(30 * time.Minute)
	r := o.ask(`apply_discount {}`)
	o.due()
	if again := o.timers(store.TimerMuster)[r.ID].Due; !again.Equal(morning) || len(o.request(r.ID).Joined) != 0 {
		t.Fatalf("looked at again at %s, told %v; want at %s, and nobody at night", again, o.request(r.ID).Joined, morning.UTC())
	}
	o.at(morning.Add(-time.Second))
	o.wantKinds(r.ID, "proposed")
	o.at(morning)
	o.wantKinds(r.ID, "proposed escalated") // Ada's do-not-disturb goes on
}

// TestAwayWhileItWaits: what waits for a role of the person is looked at when the absence begins, now or later; nothing else is.
func TestAwayWhileItWaits(t *testing.T) {
	for _, later := range []time.Duration{0, 2 * time.Minute} {
		o := newOfficeWith(t, withDeputy)
		r := o.ask(`issue_refund {"amount":1}`)
		other := o.propose(o.sayIn("101.1", alice, "please").Turn, `cancel_account {}`)[0].Request
		o.due()
		from := o.clock.Now().Add(later)
		_, err := o.SetAway(o.ctx(), desk.Departure{Inbox: o.command(), Who: lead, From: from, Until: from.Add(time.Hour), Delegate: &deputy})
		o.ok(err)
		if later > 0 {
			o.at(from.Add(-time.Second))
			o.wantKinds(r.ID, "proposed")
		}
		o.at(from)
		o.wantKinds(r.ID, "proposed invited")
		o.wantKinds(other, "proposed")
		o.wantKinds("absence:"+string(lead.ID), "away")
		if n := len(o.timers(store.TimerAway)); n != 0 {
			t.Errorf("%d departures are left", n)
		}
		o.reopen()
		o.due()
		o.wantKinds(r.ID, "proposed invited")
	}
}

// TestManyRequestsWait when somebody leaves: all of theirs are looked at, page by page.
func TestManyRequestsWait(t *testing.T) {
	o := newOfficeWith(t, withDeputy)
	turn := o.say(alice, "please").Turn
	var specs []string
	const n = 450
	for range n {
		specs = append(specs, `issue_refund {"amount":1}`)
	}
	calls := o.propose(turn, specs...)
	o.due()
	o.away(lead, time.Hour, deputy)
	o.due()
	for _, c := range calls {
		if got := o.request(c.Request).Invited; len(got) != 1 {
			t.Fatalf("request %s: invited %v", c.Request, got)
		}
	}
}

// TestBack ends an absence: what comes then is the person's again, and who stood in is told.
func TestBack(t *testing.T) {
	o := newOfficeWith(t, withDeputy)
	o.away(lead, time.Hour, deputy)
	inbox := o.command()
	a, err := o.Back(o.ctx(), inbox, lead)
	o.ok(err)
	if a.During(o.clock.Now()) || a.During(o.clock.Now().Add(time.Minute)) || a.Version != 2 {
		t.Errorf("%+v", a)
	}
	o.wantKinds("absence:"+string(lead.ID), "away away")
	if told := o.surfacesOf(string(lead.ID)); len(told) != 1 || told[0].Want != 2 {
		t.Errorf("whoever stood in is shown %+v", told)
	}
	r := o.ask(`issue_refund {"amount":1}`)
	o.due()
	o.wantKinds(r.ID, "proposed")
	_, err = o.Back(o.ctx(), o.command(), lead)
	wantDenied(t, err, approvers.DeniedNothing)
	_, err = o.Back(o.ctx(), o.command(), bob)
	wantDenied(t, err, approvers.DeniedNothing)
	if _, err = o.Back(o.ctx(), inbox, lead); err == nil || !contains(err.Error(), desk.ErrHandled.Error()) {
		t.Errorf("the same command again: %v", err)
	}
	if row := view(o, func(r store.Reader) (store.Inbox, error) { return r.Inbox(inbox) }); row.HandledAt.IsZero() {
		t.Error("the command stays in the inbox")
	}
}

// TestAnotherAbsence replaces the one before, and its timer.
func TestAnotherAbsence(t *testing.T) {
	o := newOfficeWith(t, withDeputy)
	from := o.clock.Now().Add(time.Hour)
	_, err := o.SetAway(o.ctx(), desk.Departure{Inbox: o.command(), Who: lead, From: from, Until: from.Add(time.Hour)})
	o.ok(err)
	_, err = o.SetAway(o.ctx(), desk.Departure{Inbox: o.command(), Who: lead, From: from.Add(time.Hour), Until: from.Add(2 * time.Hour), Delegate: &deputy})
	o.ok(err)
	if due := o.timers(store.TimerAway)[string(lead.ID)].Due; !due.Equal(from.Add(time.Hour)) {
		t.Errorf("departs at %s", due)
	}
	_, err = o.SetAway(o.ctx(), desk.Departure{Inbox: o.command(), Who: lead, Until: from, Delegate: &lead})
	if denied := wantDenied(t, err, approvers.DeniedStandIn); denied.Detail != string(approvers.DeniedSelf) {
		t.Errorf("because of %s", denied.Detail)
	}
	if a, err := o.Absence(o.ctx(), lead.ID); err != nil || a.Version != 2 || a.Delegate != deputy.ID {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = o.Back(o.ctx(), o.command(), lead)
	o.ok(err)
	if n := len(o.timers(store.TimerAway)); n != 0 {
		t.Errorf("%d departures are left", n)
	}
}

// TestCardsPassByWhoIsAway, unless that leaves nobody.
func TestCardsPassByWhoIsAway(t *testing.T) {
	tests := []struct {
		away []approvers.Identity
		want []string
	}{
		{nil, []string{"role:finance-director", "user:U0003", "user:U0004"}},
		{[]approvers.Identity{fin1}, []string{"role:finance-director", "user:U0004"}},
		{[]approvers.Identity{fin1, fin2}, []string{"role:finance-director", "user:U0003", "user:U0004"}},
	}
	for _, tt := range tests {
		o := newOffice(t)
		for _, who := range tt.away {
			o.away(who, time.Hour)
		}
		r := o.ask(`cancel_account {}`)
		o.ok(o.Expand(o.ctx(), o.only(r.ID, store.SurfaceCard).ID, []string{"U0003", "U0004"}))
		if got := o.cardsOf(r.ID); !slices.Equal(got, tt.want) {
			t.Errorf("with %d away, cards at %v; want %v", len(tt.away), got, tt.want)
		}
	}
}

// TestTheStageMovesOnWhileItsPeopleAreLookedUp: then what was found is not used, and they are looked up again.
func TestTheStageMovesOnWhileItsPeopleAreLookedUp(t *testing.T) {
	o := newOfficeWith(t, withDeputy)
	r := o.ask(`issue_refund {"amount":900}`)
	timer := o.timers(store.TimerMuster)[r.ID]
	roll, people, err := o.company(o.ctx(), r.ID)
	o.ok(err)
	o.approve(lead, r.ID)
	o.away(fin1, time.Hour)
	o.away(fin2, time.Hour)
	if err := o.Muster(o.ctx(), timer, roll, people); err == nil {
		t.Error("people of an earlier stage were taken for those of this one")
	}
	if _, waits := o.timers(store.TimerMuster)[r.ID]; !waits {
		t.Error("the new stage is not looked at")
	}
	o.due()
	o.withdraw(r.ID)
	o.ok(o.Muster(o.ctx(), timer, roll, people))
	o.ok(o.Remind(o.ctx(), store.Timer{Kind: store.TimerRemind, Ref: r.ID}, roll, people))
	o.ok(o.Muster(o.ctx(), store.Timer{Kind: store.TimerMuster, Ref: "req_none"}, roll, people))
}

func (o *office) withdraw(request string) {
	o.t.Helper()
	_, err := o.Withdraw(o.ctx(), o.clickOn(alice, "", request))
	o.ok(err)
}
