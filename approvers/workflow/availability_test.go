package workflow_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// withDeputy adds the role deputy to the policy. Its only member, U0005, may approve calls to all tools, up to high
// risk.
func withDeputy(p *approvers.Policy) {
	p.Approvers = append(p.Approvers, approvers.Role{
		Name: "deputy", Title: "Deputy", Members: users("U0005"), MaxRisk: approvers.High, CanApprove: []string{"*"},
	})
}

var deputy = person("U0005")

func newHarnessWith(t testing.TB, change ...func(*approvers.Policy)) *harness {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", change...))
	return h
}

// TestWhoStandsInIsAsked checks that the card of an absent person goes to the stand-in, who decides in their own name.
func TestWhoStandsInIsAsked(t *testing.T) {
	h := newHarnessWith(t, withDeputy)
	a := h.away(lead, 48*time.Hour, deputy)
	if len(a.Covers) != 1 || a.Covers[0].None || a.Version != 1 {
		t.Errorf("%+v", a)
	}
	told := h.messagesOf(string(lead.ID))
	if len(told) != 1 || told[0].Kind != store.OutboxStandIn || told[0].To != "user:U0005" {
		t.Errorf("the stand-in is told by %+v", told)
	}
	r := h.ask(`issue_refund {"amount":1}`)
	h.due()
	if got, want := h.cardsOf(r.ID), []string{"role:team-lead", "user:U0005"}; !slices.Equal(got, want) {
		t.Errorf("cards at %v; want %v", got, want)
	}
	h.wantKinds(r.ID, "proposed invited")
	got := h.request(r.ID)
	if len(got.Joined) != 0 || !got.EscalateAt.Equal(r.EscalateAt) {
		t.Errorf("the lead was told too, although somebody is here: %v", got.Joined)
	}
	if out := h.approve(deputy, r.ID); out.State != approvers.Approved || out.ClosedBy != deputy.ID || out.ClosedRole != "deputy" {
		t.Errorf("%s by %s as %s", out.State, out.ClosedBy, out.ClosedRole)
	}
	if n := len(h.timers(store.TimerAvailability)); n != 0 {
		t.Errorf("%d availability timers are left", n)
	}
}

// TestOnlyTheLastAbsenceIsShownAnew checks that the message about an absence is updated only once: when another absence
// replaces this absence, or when it ends.
func TestOnlyTheLastAbsenceIsShownAnew(t *testing.T) {
	h := newHarnessWith(t, withDeputy)
	for range 4 {
		h.away(lead, 48*time.Hour, deputy)
	}
	var wants []uint64
	for _, s := range h.messagesOf(string(lead.ID)) {
		wants = append(wants, s.Revision)
	}
	if want := []uint64{2, 2, 2, 1}; !slices.Equal(wants, want) {
		t.Errorf("the stand-in's message is wanted in versions %v; want %v", wants, want)
	}
	_, err := h.People.Back(h.ctx(), "", lead)
	h.ok(err)
	if last := h.messagesOf(string(lead.ID))[3]; last.Revision != 2 {
		t.Errorf("the message about the last absence does not show that the absence is over")
	}
}

// TestNobodyIsHere checks that the lead is asked immediately if no approver can be reached. If the lead can't be
// reached, the lead's own lead is asked.
func TestNobodyIsHere(t *testing.T) {
	h := newHarness(t)
	h.away(support, time.Hour)
	h.due() // the absence has begun, so only the new request causes a look-up of people
	h.quiet["U0002"] = h.clock.Now().Add(time.Hour)
	r := h.ask(`apply_discount {}`)
	h.due()
	got := h.request(r.ID)
	if want := []string{"team-lead", "finance-director"}; !slices.Equal(got.Joined, want) {
		t.Fatalf("told %v; want %v immediately", got.Joined, want)
	}
	h.wantKinds(r.ID, "proposed escalated escalated")
	if n := len(h.timers(store.TimerAvailability)); n != 0 {
		t.Errorf("%d availability timers are left", n)
	}
	h.due()
	h.wantKinds(r.ID, "proposed escalated escalated")
}

// TestNobodyIsHereAtNight checks that no lead is asked at night, and that availability is checked again in the morning.
func TestNobodyIsHereAtNight(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	hours := &approvers.Hours{Zone: zone, Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * time.Hour, To: 17 * time.Hour, Outside: approvers.OutsideWaits}
	h := newHarnessWith(t, func(p *approvers.Policy) { p.Approvers[0].Hours = hours })
	h.clock.pass(11 * time.Hour) // nine in the evening
	morning := time.Date(2026, 3, 3, 9, 0, 0, 0, zone)
	h.quiet["U0001"] = morning.Add(30 * time.Minute)
	r := h.ask(`apply_discount {}`)
	h.due()
	if again := h.timers(store.TimerAvailability)[r.ID].Due; !again.Equal(morning) || len(h.request(r.ID).Joined) != 0 {
		t.Fatalf("checked again at %s, told %v; want %s, and nobody told at night", again, h.request(r.ID).Joined, morning.UTC())
	}
	h.at(morning.Add(-time.Second))
	h.wantKinds(r.ID, "proposed")
	h.at(morning)
	h.wantKinds(r.ID, "proposed escalated") // the only approver is still in do-not-disturb
}

// TestAwayWhileItWaits checks a request that waits for a role whose only member becomes absent. When the absence
// begins, the workflow checks which approvers of the request can be reached. The workflow does not check other
// requests.
func TestAwayWhileItWaits(t *testing.T) {
	for _, later := range []time.Duration{0, 2 * time.Minute} {
		h := newHarnessWith(t, withDeputy)
		r := h.ask(`issue_refund {"amount":1}`)
		other := h.propose(h.sayIn("101.1", alice, "please").Turn, `cancel_account {}`)[0].Request
		h.due()
		from := h.clock.Now().Add(later)
		_, err := h.People.SetAway(h.ctx(), workflow.Departure{Inbox: h.command(), Who: lead, From: from, Until: from.Add(time.Hour), Delegate: &deputy})
		h.ok(err)
		if later > 0 {
			h.at(from.Add(-time.Second))
			h.wantKinds(r.ID, "proposed")
		}
		h.at(from)
		h.wantKinds(r.ID, "proposed invited")
		h.wantKinds(other, "proposed")
		h.wantKinds("absence:"+string(lead.ID), "away")
		if due := h.timers(store.TimerAway)[string(lead.ID)].Due; !due.Equal(from.Add(time.Hour)) {
			t.Errorf("the stage is checked again at %s; want the end of the absence", due)
		}
		h.reopen()
		h.due()
		h.wantKinds(r.ID, "proposed invited")
	}
}

// TestManyRequestsWait checks many requests that wait for a person whose absence begins. The workflow checks the
// approvers of all these requests, with several requests in each transaction.
func TestManyRequestsWait(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := newHarnessWith(t, withDeputy)
	turn := h.say(alice, "please").Turn
	var specs []string
	const n = 450
	for range n {
		specs = append(specs, `issue_refund {"amount":1}`)
	}
	calls := h.propose(turn, specs...)
	h.due()
	h.away(lead, time.Hour, deputy)
	h.due()
	for _, c := range calls {
		if got := h.request(c.Request).Invited; len(got) != 1 {
			t.Fatalf("request %s: invited %v", c.Request, got)
		}
	}
}

// TestDeactivatedWhileItWaits checks a stage with a single approver. If the approver's account is deactivated, the lead
// is asked immediately and is told the reason. If Slack's event about the deactivation is lost, the next reminder
// detects the deactivation. Requests that wait for other people do not change.
func TestDeactivatedWhileItWaits(t *testing.T) {
	for _, lost := range []bool{false, true} {
		h := newHarnessWith(t, reminding(3*time.Minute, 2))
		r := h.ask(`issue_refund {"amount":1}`)
		other := h.propose(h.sayIn("101.1", alice, "please").Turn, `cancel_account {}`)[0].Request
		h.due()
		h.gone["U0002"] = true
		if lost {
			h.clock.pass(3 * time.Minute)
		} else {
			inbox := h.command()
			h.ok(h.People.AccountChanged(h.ctx(), inbox, lead.ID, []string{"team-lead"}))
			if err := h.People.AccountChanged(h.ctx(), inbox, lead.ID, []string{"team-lead"}); !errors.Is(err, workflow.ErrHandled) {
				t.Errorf("the same event again: %v", err)
			}
			if _, looked := h.timers(store.TimerAvailability)[other]; looked {
				t.Error("a request that waits for other people is checked")
			}
		}
		h.due()
		got := h.request(r.ID)
		want := []approvers.LeadCall{{Lead: "finance-director", Deactivated: []approvers.Deactivated{{Who: lead.ID, Name: "U0002"}}}}
		if !reflect.DeepEqual(got.Calls, want) || !slices.Equal(got.Joined, []string{"finance-director"}) {
			t.Errorf("lost %t: joined %v because of %+v", lost, got.Joined, got.Calls)
		}
		h.wantKinds(r.ID, "proposed escalated")
		record := readStore(h, func(s store.Reader) ([]approvers.AuditRecord, error) { return s.Audit(r.ID) })[1]
		if record.Facts["why"] != "deactivated" || record.Facts["person"] != string(lead.ID) {
			t.Errorf("recorded: %v", record.Facts)
		}
		if joined := h.request(other).Joined; len(joined) > 0 {
			t.Errorf("others' leads were asked: %v", joined)
		}
		delete(h.gone, "U0002")
		h.ok(h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"}))
		h.due()
		h.wantKinds(r.ID, "proposed escalated")
		h.approve(lead, r.ID)
	}
}

// TestDeactivatedWithOthers checks a stage with several approvers, one of whom has a deactivated account. The lead is
// asked only if none of the other approvers can be reached. The request's LeadCall then names the deactivated account.
func TestDeactivatedWithOthers(t *testing.T) {
	h := newHarnessWith(t, func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0005") })
	r := h.ask(`issue_refund {"amount":1}`)
	h.due()
	h.gone["U0002"] = true
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"}))
	h.due()
	if got := h.request(r.ID); len(got.Joined) > 0 || len(got.Calls) > 0 {
		t.Errorf("a colleague is here, and joined is %v because of %+v", got.Joined, got.Calls)
	}
	h.quiet["U0005"] = h.clock.Now().Add(time.Hour)
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"}))
	h.due()
	if got := h.request(r.ID); len(got.Calls) != 1 || !got.Calls[0].Others || len(got.Calls[0].Deactivated) != 1 {
		t.Errorf("the colleague can't be reached: %+v", got.Calls)
	}
	h.quiet["U0002"] = h.quiet["U0005"]
	delete(h.gone, "U0002")
	quiet := h.propose(h.sayIn("101.1", alice, "please").Turn, `issue_refund {"amount":2}`)[0].Request
	h.due()
	if got := h.request(quiet); len(got.Joined) != 1 || len(got.Calls) > 0 {
		t.Errorf("both are only in do-not-disturb: joined %v because of %+v", got.Joined, got.Calls)
	}
}

// TestBack checks that new requests go to a person after the person's absence ends. The stand-in is told that the
// absence has ended.
func TestBack(t *testing.T) {
	h := newHarnessWith(t, withDeputy)
	h.away(lead, time.Hour, deputy)
	inbox := h.command()
	a, err := h.People.Back(h.ctx(), inbox, lead)
	h.ok(err)
	if a.During(h.clock.Now()) || a.During(h.clock.Now().Add(time.Minute)) || a.Version != 2 {
		t.Errorf("%+v", a)
	}
	h.wantKinds("absence:"+string(lead.ID), "away away")
	if told := h.messagesOf(string(lead.ID)); len(told) != 1 || told[0].Revision != 2 {
		t.Errorf("the stand-in is shown %+v", told)
	}
	r := h.ask(`issue_refund {"amount":1}`)
	h.due()
	h.wantKinds(r.ID, "proposed")
	_, err = h.People.Back(h.ctx(), h.command(), lead)
	wantDenied(t, err, approvers.DeniedNothing)
	_, err = h.People.Back(h.ctx(), h.command(), bob)
	wantDenied(t, err, approvers.DeniedNothing)
	if _, err = h.People.Back(h.ctx(), inbox, lead); err == nil || !contains(err.Error(), workflow.ErrHandled.Error()) {
		t.Errorf("the same command again: %v", err)
	}
	if row := readStore(h, func(r store.Reader) (store.Inbox, error) { return r.Inbox(inbox) }); row.HandledAt.IsZero() {
		t.Error("the command stays in the inbox")
	}
}

// TestBackWhileItWaits checks a request whose card went to the members of a role who were not away. When a member is
// back, the member gets one card. An absence ends when the person says so, at its planned end, or because another
// absence that begins later replaces it.
func TestBackWhileItWaits(t *testing.T) {
	for name, back := range map[string]func(h *harness, until time.Time){
		"a command": func(h *harness, _ time.Time) {
			_, err := h.People.Back(h.ctx(), h.command(), fin1)
			h.ok(err)
		},
		"the planned end": func(h *harness, until time.Time) { h.at(until) },
		"a later absence": func(h *harness, until time.Time) {
			_, err := h.People.SetAway(h.ctx(), workflow.Departure{Inbox: h.command(), Who: fin1, From: until.Add(time.Hour), Until: until.Add(2 * time.Hour)})
			h.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			until := h.clock.Now().Add(5 * time.Minute)
			h.away(fin1, 5*time.Minute)
			r := h.ask(`cancel_account {}`)
			h.expandCards(r.ID)
			h.due()
			if got, want := h.cardsOf(r.ID), []string{"role:finance-director", "user:U0004"}; !slices.Equal(got, want) {
				t.Fatalf("cards at %v; want %v", got, want)
			}
			back(h, until)
			for range 2 {
				h.due()
				h.expandCards(r.ID)
				if got, want := h.cardsOf(r.ID), []string{"role:finance-director", "user:U0004", "user:U0003"}; !slices.Equal(got, want) {
					t.Errorf("cards at %v; want %v", got, want)
				}
				h.clock.pass(time.Minute)
			}
			_, looked := h.timers(store.TimerAway)[string(fin1.ID)]
			if later := name == "a later absence"; looked != later {
				t.Errorf("the absence has a timer: %t; want %t", looked, later)
			}
		})
	}
}

// TestAnAbsenceWithoutTimer checks an absence that began under an earlier version of the program, which sets no timer
// for the end. The next start of the bot sets the timer.
func TestAnAbsenceWithoutTimer(t *testing.T) {
	h := newHarness(t)
	a := h.away(fin1, 5*time.Minute)
	h.due()
	h.ok(h.store.Update(h.ctx(), func(t store.Tx) error { return t.ClearTimer(store.TimerAway, string(fin1.ID)) }))
	h.reopen()
	if timer := h.timers(store.TimerAway)[string(fin1.ID)]; !timer.Due.Equal(a.Until) {
		t.Errorf("due at %s; want %s", timer.Due, a.Until)
	}
}

// TestBackAtNight checks that the end of an absence asks no lead, although everybody is in do-not-disturb. The person
// who is back gets the card.
func TestBackAtNight(t *testing.T) {
	h := newHarnessWith(t, func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0005") })
	h.away(lead, 4*time.Minute)
	r := h.ask(`issue_refund {"amount":1}`)
	h.expandCards(r.ID)
	h.due()
	morning := h.clock.Now().Add(8 * time.Hour)
	h.quiet["U0002"], h.quiet["U0005"] = morning, morning
	h.at(h.clock.Now().Add(5 * time.Minute))
	h.expandCards(r.ID)
	if got := h.request(r.ID).Joined; len(got) > 0 {
		t.Errorf("told %v", got)
	}
	if got, want := h.cardsOf(r.ID), []string{"role:team-lead", "user:U0005", "user:U0002"}; !slices.Equal(got, want) {
		t.Errorf("cards at %v; want %v", got, want)
	}
}

// TestOneCardForAPerson checks that a person gets one card of a request, whatever makes the person an approver: several
// roles, an escalation, a changed policy, a card in a bundle, or a colleague who hands the request on.
func TestOneCardForAPerson(t *testing.T) {
	both := func(p *approvers.Policy) {
		p.Approvers[1].Members = users("U0002", "U0005")
		p.Approvers[2].Members = users("U0003", "U0005")
	}
	cards := func(h *harness, r approvers.Request) (n int) {
		h.expandCards(r.ID)
		h.expandCards(r.Turn)
		for _, s := range append(h.messagesOf(r.ID), h.messagesOf(r.Turn)...) {
			if s.To == "user:U0005" && (s.Kind == store.OutboxCard || s.Kind == store.OutboxEscalation || s.Kind == store.OutboxBundle) {
				n++
			}
		}
		return n
	}
	for name, again := range map[string]func(h *harness, r approvers.Request){
		"an escalation": func(h *harness, r approvers.Request) { h.at(h.clock.Now().Add(escalateAfter)) },
		"a changed policy": func(h *harness, r approvers.Request) {
			h.clock.pass(time.Second)
			h.policy.Store(policy("policy-2", both, func(p *approvers.Policy) {
				p.Tools[3].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 1}}
			}))
			h.ok(h.Requests.Reevaluate(h.ctx()))
		},
		"the second stage": func(h *harness, r approvers.Request) {
			h.clock.pass(time.Second)
			h.approve(lead, r.ID)
		},
		"a colleague": func(h *harness, r approvers.Request) {
			_, err := h.Requests.HandOn(h.ctx(), h.words(lead, r.ID, ""), deputy)
			h.ok(err)
		},
	} {
		for _, bundled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, bundled %t", name, bundled), func(t *testing.T) {
				args := `issue_refund {"amount":1}`
				if name == "the second stage" {
					args = `issue_refund {"amount":900}`
				}
				h := newHarnessWith(t, both)
				r := h.bundled(args)[0]
				if bundled {
					h = newHarnessWith(t, both)
					r = h.bundled(args, args)[0]
				}
				if got := cards(h, r); got != 1 {
					t.Fatalf("%d cards at first", got)
				}
				again(h, r)
				h.due()
				want := 1
				if left := h.request(r.ID); bundled && left.Apart {
					want = 2 // the bundle's card does not show the request any more
				}
				if got := cards(h, r); got != want {
					t.Errorf("%d cards; want %d", got, want)
				}
			})
		}
	}
}

// TestTheStandInKeepsACard checks a stand-in who has only the card of a bundle. When a request leaves the bundle, the
// stand-in gets the request's own card, as the people of the role do.
func TestTheStandInKeepsACard(t *testing.T) {
	h := newHarnessWith(t, withDeputy, func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0006") })
	h.away(lead, 48*time.Hour, deputy)
	r := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`)[0]
	h.expandCards(r.Turn)
	h.due()
	_, err := h.Requests.Unbundle(h.ctx(), h.clickOn(person("U0006"), approvers.Approve, r.ID))
	h.ok(err)
	h.expandCards(r.ID)
	if got := h.cardsOf(r.ID); !slices.Contains(got, "user:U0005") || !slices.Contains(got, "user:U0006") {
		t.Errorf("cards at %v", got)
	}
}

// TestOnePersonWithTwoIDs checks that a card at a person's id in the workspace counts as the person's card, although
// the person's own id is that of the enterprise.
func TestOnePersonWithTwoIDs(t *testing.T) {
	h := newHarness(t)
	both := fin1
	both.Local = "U0300"
	h.known = map[approvers.PersonID]approvers.Identity{fin1.ID: both}
	r := h.ask(`cancel_account {}`)
	h.ok(h.Outbox.Expand(h.ctx(), h.only(r.ID, store.OutboxCard).ID, persons("U0300")))
	h.due()
	if got, want := h.wanted(r.ID), "card role:finance-director, card user:U0300"; got != want {
		t.Errorf("wanted %q; want %q: fin2 has no card yet", got, want)
	}
	h.ok(h.Outbox.Expand(h.ctx(), h.messagesOf(r.ID)[0].ID, []approvers.Identity{both, fin2}))
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), fin1.ID, []string{"finance-director"}))
	h.due()
	if s := h.messagesOf(r.ID)[0]; s.State != store.OutboxExpanded {
		t.Errorf("the role's card is sent again although all have a card: %s", s.State)
	}
	if got, want := h.cardsOf(r.ID), []string{"role:finance-director", "user:U0300", "user:U0004"}; !slices.Equal(got, want) {
		t.Errorf("cards at %v; want %v", got, want)
	}
}

// TestAnotherAbsence checks that a new absence replaces the previous absence and its timer.
func TestAnotherAbsence(t *testing.T) {
	h := newHarnessWith(t, withDeputy)
	from := h.clock.Now().Add(time.Hour)
	_, err := h.People.SetAway(h.ctx(), workflow.Departure{Inbox: h.command(), Who: lead, From: from, Until: from.Add(time.Hour)})
	h.ok(err)
	_, err = h.People.SetAway(h.ctx(), workflow.Departure{Inbox: h.command(), Who: lead, From: from.Add(time.Hour), Until: from.Add(2 * time.Hour), Delegate: &deputy})
	h.ok(err)
	if due := h.timers(store.TimerAway)[string(lead.ID)].Due; !due.Equal(from.Add(time.Hour)) {
		t.Errorf("departs at %s", due)
	}
	_, err = h.People.SetAway(h.ctx(), workflow.Departure{Inbox: h.command(), Who: lead, Until: from, Delegate: &lead})
	if denied := wantDenied(t, err, approvers.DeniedStandIn); denied.Detail != string(approvers.DeniedSelf) {
		t.Errorf("because of %s", denied.Detail)
	}
	if a, err := h.Views.Absence(h.ctx(), lead.ID); err != nil || a.Version != 2 || a.Delegate != deputy.ID {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = h.People.Back(h.ctx(), h.command(), lead)
	h.ok(err)
	if n := len(h.timers(store.TimerAway)); n != 0 {
		t.Errorf("%d timers of departures are left", n)
	}
}

// TestCardsPassByWhoIsAway checks that absent people get no card. If all members of a role are absent, all members get
// the card.
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
		h := newHarness(t)
		for _, who := range tt.away {
			h.away(who, time.Hour)
		}
		r := h.ask(`cancel_account {}`)
		h.ok(h.Outbox.Expand(h.ctx(), h.only(r.ID, store.OutboxCard).ID, persons("U0003", "U0004")))
		if got := h.cardsOf(r.ID); !slices.Equal(got, tt.want) {
			t.Errorf("with %d away, cards at %v; want %v", len(tt.away), got, tt.want)
		}
	}
}

// TestTheStageMovesOnWhileItsPeopleAreLookedUp checks a request that moves to the next stage while Slack is asked about
// its approvers. The result is discarded, and the approvers of the new stage are looked up.
func TestTheStageMovesOnWhileItsPeopleAreLookedUp(t *testing.T) {
	h := newHarnessWith(t, withDeputy)
	r := h.ask(`issue_refund {"amount":900}`)
	timer := h.timers(store.TimerAvailability)[r.ID]
	snapshot, people, err := h.company(h.ctx(), r.ID)
	h.ok(err)
	h.approve(lead, r.ID)
	h.away(fin1, time.Hour)
	h.away(fin2, time.Hour)
	if err := h.People.ResolveAvailability(h.ctx(), timer, snapshot, people); err == nil {
		t.Error("people of an earlier stage were taken for those of this one")
	}
	if _, waits := h.timers(store.TimerAvailability)[r.ID]; !waits {
		t.Error("the people of the new stage are not looked up")
	}
	h.due()
	h.withdraw(r.ID)
	h.ok(h.People.ResolveAvailability(h.ctx(), timer, snapshot, people))
	h.ok(h.People.Remind(h.ctx(), store.Timer{Kind: store.TimerRemind, Ref: r.ID}, snapshot, people))
	h.ok(h.People.ResolveAvailability(h.ctx(), store.Timer{Kind: store.TimerAvailability, Ref: "req_none"}, snapshot, people))
}

// TestSomebodyLeavesWhileThePeopleAreLookedUp checks an absence that begins while a request's approvers are looked up.
// The absence schedules a second look-up. The result of the first look-up does not cancel the second look-up.
func TestSomebodyLeavesWhileThePeopleAreLookedUp(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":40}`)
	timer := h.timers(store.TimerAvailability)[r.ID]
	snapshot, people, err := h.company(h.ctx(), r.ID)
	h.ok(err)
	h.clock.pass(time.Millisecond)
	h.away(lead, time.Hour)
	h.ok(h.absenceChanged(h.ctx(), h.timers(store.TimerAway)[string(lead.ID)]))
	h.ok(h.People.ResolveAvailability(h.ctx(), timer, snapshot, people))
	if now := h.timers(store.TimerAvailability)[r.ID]; !now.Due.After(timer.Due) {
		t.Errorf("the look-up is not repeated: %+v, was %+v", now, timer)
	}
}

func (h *harness) withdraw(request string) {
	h.t.Helper()
	_, err := h.Requests.Withdraw(h.ctx(), h.clickOn(alice, "", request))
	h.ok(err)
}
