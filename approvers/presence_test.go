package approvers_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

// The function lists people who can be reached.
func here(people ...approvers.Identity) (out []approvers.Presence) {
	for _, who := range people {
		out = append(out, approvers.Presence{Who: who})
	}
	return out
}

func quiet(who approvers.Identity, until time.Time) approvers.Presence {
	return approvers.Presence{Who: who, QuietUntil: until}
}

func away(who approvers.Identity, standIn ...approvers.Presence) approvers.Presence {
	p := approvers.Presence{Who: who, Away: true}
	if len(standIn) > 0 {
		p.StandIn = &standIn[0]
	}
	return p
}

func TestResolveAvailability(t *testing.T) {
	second := person("U0005") // a deputy
	outsider := person("U0300")
	p := policyWith(func(p *approvers.Policy) {
		p.Approvers = append(p.Approvers, approvers.Role{Name: "deputies", Title: "Deputies", Members: users("U0005"), MaxRisk: approvers.High, CanApprove: []string{"*"}})
	})
	at := start.Add(time.Minute)
	tests := []struct {
		name    string
		people  []approvers.Presence
		invited []string
		up      bool // the lead is notified immediately
	}{
		{"everybody is here", here(onLead), nil, false},
		{"in do-not-disturb", []approvers.Presence{quiet(onLead, at.Add(hour))}, nil, true},
		{"do-not-disturb ends now", []approvers.Presence{quiet(onLead, at)}, nil, false},
		{"away without a stand-in", []approvers.Presence{away(onLead)}, nil, true},
		{"away with a peer", []approvers.Presence{away(onLead, here(second)[0])}, []string{"U0005 for U0002 by deputies"}, false},
		{"the peer is in do-not-disturb", []approvers.Presence{away(onLead, quiet(second, at.Add(hour)))}, []string{"U0005 for U0002 by deputies"}, true},
		{"the peer is away too", []approvers.Presence{away(onLead, away(second))}, nil, true},
		{"the peer is away too, and has a stand-in", []approvers.Presence{away(onLead, away(outsider, here(second)[0]))}, []string{"U0005 for U0002 by deputies"}, false},
		{"the stand-in has no such role", []approvers.Presence{away(onLead, here(onSupport)[0])}, nil, true},
		{"the stand-in asked for it", []approvers.Presence{away(onLead, here(asker)[0])}, nil, true},
		{"the stand-in is a guest", []approvers.Presence{away(onLead, approvers.Presence{Who: approvers.Identity{ID: second.ID, Guest: true}})}, nil, true},
		{"somebody who may not decide is away", []approvers.Presence{here(onLead)[0], away(outsider, here(second)[0])}, nil, false},
		{"nobody is in the role", nil, nil, true},
		{"only somebody of no role is here", here(outsider), nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := open(t, p, "issue_refund", `{"amount":1}`)
			after, m := r.ResolveAvailability(deciding(p, at), tt.people)
			var invited []string
			for _, i := range invites(m) {
				invited = append(invited, i.Name+" for "+i.ByName+" by "+i.Role)
				if !i.Away || !i.At.Equal(at) {
					t.Errorf("%+v", i)
				}
			}
			if !slices.Equal(invited, tt.invited) || len(after.Invited) != len(tt.invited) {
				t.Errorf("invited %v, stored %v; want %v", invited, after.Invited, tt.invited)
			}
			if up := after.EscalateAt.Equal(at); up != tt.up {
				t.Errorf("goes up immediately: %t; want %t", up, tt.up)
			}
			again, n := after.ResolveAvailability(deciding(p, at), append(tt.people, here(identities(after.Invited)...)...))
			if len(invites(n)) != 0 || len(again.Invited) != len(after.Invited) {
				t.Errorf("resolved once more, it invites %v", invites(n))
			}
		})
	}
}

func identities(invited []approvers.Invite) (out []approvers.Identity) {
	for _, i := range invited {
		out = append(out, approvers.Identity{ID: i.Who, Name: i.Name})
	}
	return out
}

// TestAStandInOfTheStage checks a stand-in who may already decide the stage. The stand-in is not invited, because one
// person counts only once.
func TestAStandInOfTheStage(t *testing.T) {
	p := policyWith()
	r := open(t, p, "cancel_account", `{}`)
	after, m := r.ResolveAvailability(deciding(p, start), []approvers.Presence{away(onFin1, here(onFin2)[0]), here(onFin2)[0]})
	if len(invites(m)) != 0 || after.EscalateAt.Equal(start) {
		t.Errorf("invited %v, escalates at %s", invites(m), after.EscalateAt)
	}
}

// TestAStandInHasToBeInTheGroup checks that a stand-in must be in the user group that the stage names.
func TestAStandInHasToBeInTheGroup(t *testing.T) {
	p := policyWith(func(p *approvers.Policy) {
		p.Tools[5].Rules = nil
		p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Group: "oncall", Quorum: 1}}
		p.Approvers = append(p.Approvers, approvers.Role{Name: "deputies", Members: users("U0005"), MaxRisk: approvers.High, CanApprove: []string{"*"}})
	})
	oncall := func(user string, groups ...string) approvers.Identity {
		who := person(user)
		who.Groups = groups
		return who
	}
	r := open(t, p, "issue_refund", `{"amount":1}`)
	if _, m := r.ResolveAvailability(deciding(p, start), []approvers.Presence{away(oncall("U0002", "oncall"), here(oncall("U0005"))[0])}); len(invites(m)) != 0 {
		t.Errorf("invited %v, who is not in the group", invites(m))
	}
	after, m := r.ResolveAvailability(deciding(p, start), []approvers.Presence{away(oncall("U0002", "oncall"), here(oncall("U0005", "oncall"))[0])})
	if len(invites(m)) != 1 {
		t.Fatal("a peer in the group was not invited")
	}
	at := start.Add(time.Minute)
	_, _, denied := after.Approve(deciding(p, at), actionBy(after, oncall("U0005"), at)) // the stand-in has left the group since
	wantDenied(t, denied, approvers.DeniedGroup)
}

// TestAvailabilityOutsideOfWorkingHours checks that outside of working hours, unreachable people do not cause an
// escalation. Availability is checked once more when the role starts work.
func TestAvailabilityOutsideOfWorkingHours(t *testing.T) {
	p := policyWith(works("support-agent", weekdays(t, "Europe/Berlin", 9*hour, 17*hour)))
	night, opens := moment(t, "2026-11-20T23:00:00+01:00"), moment(t, "2026-11-23T09:00:00+01:00")
	r := openAt(t, p, night)
	asleep := []approvers.Presence{quiet(onSupport, night.Add(9*hour))}
	after, m := r.ResolveAvailability(deciding(p, night), asleep)
	if !recheckAt(m).Equal(opens) || after.EscalateAt.Equal(night) {
		t.Errorf("checked again at %s, escalates at %s; want a check at %s, and no escalation sooner than the policy says", recheckAt(m), after.EscalateAt, opens)
	}
	after, m = after.ResolveAvailability(deciding(p, opens), []approvers.Presence{away(onSupport)})
	if !recheckAt(m).IsZero() || !after.EscalateAt.Equal(opens) {
		t.Errorf("in the morning nobody is here: checked again at %s, escalates at %s", recheckAt(m), after.EscalateAt)
	}
}

// TestAvailabilityWithoutALead checks a stage without a lead. If nobody can be reached, nobody is notified early, and
// this does not use up a repetition of the escalation chain.
func TestAvailabilityWithoutALead(t *testing.T) {
	p := policyWith(repeats(1))
	r := open(t, p, "cancel_account", `{}`)
	after, _ := r.ResolveAvailability(deciding(p, start), []approvers.Presence{away(onFin1), away(onFin2)})
	if !after.EscalateAt.Equal(r.EscalateAt) {
		t.Errorf("escalates at %s; was %s", after.EscalateAt, r.EscalateAt)
	}
}

// If nobody is left who may decide a stage, and no lead can be asked, the request records this until somebody may
// decide the stage again. People who are away count as people who may decide.
func TestNobodyLeft(t *testing.T) {
	p := policyWith(repeats(1))
	gone := func(who approvers.Identity) approvers.Presence {
		who.Deleted = true
		return here(who)[0]
	}
	r := open(t, p, "cancel_account", `{}`)
	check := func(what string, want bool, people ...approvers.Presence) {
		t.Helper()
		var events []approvers.Event
		r, events = r.ResolveAvailability(deciding(p, start.Add(time.Minute)), people)
		if approvers.HasNobodyLeft(r) != want || r.ReachesNobody() != want {
			t.Errorf("%s: nobody is left: %v, want %v", what, approvers.HasNobodyLeft(r), want)
		}
		if found, ok := approvers.FindEvent[approvers.AvailabilityResolved](events); !ok || found.RecheckAt.IsZero() == want {
			t.Errorf("%s: checked again at %s", what, found.RecheckAt)
		}
	}
	check("one account is deactivated", false, gone(onFin1), away(onFin2))
	check("both accounts are deactivated", true, gone(onFin1), gone(onFin2))
	refused := approvers.CardsRefused(deciding(p, start.Add(time.Minute)), r, "user_disabled", false)
	if !approvers.HasNobodyLeft(refused) {
		t.Error("a refused card hides that nobody is left")
	}
	check("one account is active again", false, here(onFin1)[0], gone(onFin2))
	check("the role has no members", true)
	lead := open(t, p, "issue_refund", `{"amount":1}`)
	if lead, _ = lead.ResolveAvailability(deciding(p, start.Add(time.Minute)), []approvers.Presence{gone(onLead)}); lead.ReachesNobody() {
		t.Error("a lead can be asked, and the request says that nobody is left")
	}
}

// If fewer people are left who may decide a stage than its quorum needs, the lead is asked at once. If there is no
// lead, the request records the problem until enough people may decide. A person with two roles or two ids counts once.
// An invited stand-in counts, too.
func TestTooFewLeft(t *testing.T) {
	two := func(p *approvers.Policy) {
		p.Tools[5].Rules = nil
		p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
		p.Approvers[1].Members = users("U0002", "U0005")
	}
	noLead := func(p *approvers.Policy) { p.Approvers[1].Lead = "" }
	other := person("U0005")
	gone := func(who approvers.Identity) approvers.Presence {
		who.Deleted = true
		return here(who)[0]
	}
	p := policyWith(two, noLead)
	r := open(t, p, "issue_refund", `{"amount":1}`)
	for i, tt := range []struct {
		what   string
		people []approvers.Presence
		lacks  string
		able   int
	}{
		{"both are here", here(onLead, other), "", 0},
		{"one is away", []approvers.Presence{here(onLead)[0], away(other)}, "", 0},
		{"one account is deactivated", []approvers.Presence{here(onLead)[0], gone(other)}, approvers.TooFew, 1},
		{"the same person twice", []approvers.Presence{here(onLead)[0], here(onLead)[0]}, approvers.TooFew, 1},
		{"nobody", []approvers.Presence{gone(onLead), gone(other)}, approvers.NobodyLeft, 0},
		{"one is back", []approvers.Presence{gone(onLead), here(other)[0]}, approvers.TooFew, 1},
		{"enough", here(onLead, other), "", 0},
	} {
		at := start.Add(time.Duration(i+1) * time.Minute)
		before := r
		var events []approvers.Event
		r, events = r.ResolveAvailability(deciding(p, at), tt.people)
		found, _ := approvers.FindEvent[approvers.AvailabilityResolved](events)
		switch {
		case approvers.LacksPeople(r) != tt.lacks || tt.lacks == approvers.TooFew && r.Unreached.Able != tt.able:
			t.Errorf("%s: %+v", tt.what, r.Unreached)
		case found.RecheckAt.IsZero() == (tt.lacks != ""):
			t.Errorf("%s: checked again at %s", tt.what, found.RecheckAt)
		case tt.lacks == approvers.TooFew && r.ReachesNobody():
			t.Errorf("%s: it says that nobody can see the card", tt.what)
		case tt.lacks != "" && approvers.LacksPeople(before) == tt.lacks && !r.Unreached.Since.Equal(before.Unreached.Since):
			t.Errorf("%s: the problem begins again at %s", tt.what, r.Unreached.Since)
		}
	}
	r = mustApprove(t, p, open(t, p, "issue_refund", `{"amount":1}`), onLead, start.Add(time.Minute))
	if r, _ = r.ResolveAvailability(deciding(p, start.Add(2*time.Minute)), here(onLead, other)); approvers.LacksPeople(r) != "" {
		t.Errorf("one has approved and one is left: %+v", r.Unreached)
	}
	p = policyWith(two)
	r = open(t, p, "issue_refund", `{"amount":1}`)
	at := start.Add(time.Minute)
	r, _ = r.ResolveAvailability(deciding(p, at), here(onLead))
	want := []approvers.LeadCall{{Lead: "finance-director", Others: true, TooFew: true}}
	if approvers.LacksPeople(r) != "" || !r.EscalateAt.Equal(at) || !reflect.DeepEqual(r.Calls, want) {
		t.Errorf("with a lead: escalates at %s, %+v, %+v", r.EscalateAt, r.Calls, r.Unreached)
	}
}

// TestTooFewLeftBehindARefusal checks a stage with too few people whose cards Slack refuses. When a card is shown, the
// stage still has too few people, unless enough people have been added since. It does not matter which problem began
// first.
func TestTooFewLeftBehindARefusal(t *testing.T) {
	p := policyWith(func(p *approvers.Policy) {
		p.Tools[5].Rules = nil
		p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
		p.Approvers[1].Members, p.Approvers[1].Lead = users("U0002", "U0005"), ""
	})
	in := deciding(p, start.Add(time.Minute))
	few := func(r approvers.Request) approvers.Request {
		r, _ = r.ResolveAvailability(in, here(onLead))
		return r
	}
	refuse := func(r approvers.Request) approvers.Request { return approvers.CardsRefused(in, r, "cannot_dm", true) }
	r := open(t, p, "issue_refund", `{"amount":1}`)
	for _, refused := range []approvers.Request{refuse(few(r)), few(refuse(r))} {
		if approvers.HasTooFew(refused) || !refused.ReachesNobody() {
			t.Errorf("refused: %+v", refused.Unreached)
		}
		if shown := approvers.CardShown(in, refused); !approvers.HasTooFew(shown) || shown.Unreached.Able != 1 {
			t.Errorf("shown: %+v", shown.Unreached)
		}
		enough, _ := refused.ResolveAvailability(in, here(onLead, person("U0005")))
		if shown := approvers.CardShown(in, enough); approvers.NeedsOperator(shown) {
			t.Errorf("shown with enough people: %+v", shown.Unreached)
		}
	}
}

// TestSomebodyWhoHasDecided checks that a person who has approved does not count as reachable. If one of two people
// has approved and the other person is away, the lead is notified.
func TestSomebodyWhoHasDecided(t *testing.T) {
	p := policyWith(func(p *approvers.Policy) {
		p.Approvers[1].Members = users("U0002", "U0005")
		p.Tools[5].Rules = nil
		p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	})
	r := open(t, p, "issue_refund", `{"amount":1}`)
	at := start.Add(time.Minute)
	r = mustApprove(t, p, r, onLead, at)
	if after, _ := r.ResolveAvailability(deciding(p, at), []approvers.Presence{here(onLead)[0], away(person("U0005"))}); !after.EscalateAt.Equal(at) {
		t.Errorf("escalates at %s; want immediately", after.EscalateAt)
	}
}
