package approvers_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
)

// peers returns the example with three more people. Each has a separate role: a lead, a person with a low ceiling, and
// a person with another tool.
func peers() *approvers.Policy {
	p := example()
	p.Approvers = append(p.Approvers,
		approvers.Role{Name: "night-lead", Title: "Night Lead", Members: users("U0005"), MaxRisk: approvers.High, CanApprove: []string{"issue_refund"}},
		approvers.Role{Name: "trainee", Title: "Trainee", Members: users("U0006"), MaxRisk: approvers.Medium, CanApprove: []string{"*"}},
		approvers.Role{Name: "mail-lead", Title: "Mail Lead", Members: users("U0007"), MaxRisk: approvers.Critical, CanApprove: []string{"send_email"}},
	)
	return p
}

var (
	onNight   = person("U0005")
	onTrainee = person("U0006")
	onMail    = person("U0007")
)

func handOn(t testing.TB, p *approvers.Policy, r approvers.Request, by, to approvers.Identity) approvers.Request {
	t.Helper()
	out, _, denied := r.HandOn(deciding(p, start), actionBy(r, by, start), to)
	if denied != nil {
		t.Fatalf("%s could not hand it on to %s: %v (%s)", by.Name, to.Name, denied, denied.Detail)
	}
	return out
}

// If a request is handed on to a person, this person decides in the person's own name and role. The person who handed
// the request on can still decide.
func TestHandOn(t *testing.T) {
	p := peers()
	r := open(t, p, "issue_refund", small)
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onNight, start))
	wantDenied(t, denied, approvers.DeniedNotMember)
	handed := handOn(t, p, r, onLead, onNight)
	want := approvers.Invite{Who: onNight.ID, Name: onNight.Name, Role: "night-lead", By: onLead.ID, ByName: onLead.Name, At: start}
	if len(handed.Invited) != 1 || handed.Invited[0] != want || len(r.Invited) != 0 {
		t.Fatalf("%+v, and %d in the request that it came from", handed.Invited, len(r.Invited))
	}
	approved := mustApprove(t, p, handed, onNight, start)
	if approved.State != approvers.Approved || approved.ClosedBy != onNight.ID || approved.ClosedRole != "night-lead" {
		t.Errorf("%s by %s as %s", approved.State, approved.ClosedBy, approved.ClosedRole)
	}
	if own := mustApprove(t, p, handed, onLead, start); own.State != approvers.Approved || own.ClosedRole != "team-lead" {
		t.Errorf("the person who handed on: %s as %s", own.State, own.ClosedRole)
	}
	// The authority is checked once more at the click.
	p.Approvers[3].MaxRisk = approvers.Medium
	_, _, denied = handed.Approve(deciding(p, start), actionBy(handed, onNight, start))
	wantDenied(t, denied, approvers.DeniedNotPeer)
}

func TestHandOnIsRefused(t *testing.T) {
	p := peers()
	r := open(t, p, "issue_refund", small)
	guest, bot := onNight, onNight
	guest.Guest, bot.Bot = true, true
	invited := handOn(t, p, r, onLead, onNight)
	two := open(t, twoLeads(), "issue_refund", small)
	agreed := mustApprove(t, twoLeads(), two, onFin1, start)
	late := actionBy(r, onLead, r.ExpiresAt.Add(time.Second))
	over := mustApprove(t, p, r, onLead, start)
	tests := []struct {
		name   string
		p      *approvers.Policy
		r      approvers.Request
		m      approvers.Action
		to     approvers.Identity
		code   approvers.Code
		detail approvers.Code
	}{
		{"by somebody who may not decide", p, r, actionBy(r, bystander, start), onNight, approvers.DeniedNotMember, ""},
		{"by the requester", p, r, actionBy(r, asker, start), onNight, approvers.DeniedSelf, ""},
		{"to the requester", p, r, actionBy(r, onLead, start), asker, approvers.DeniedNotPeer, approvers.DeniedSelf},
		{"below the ceiling of the stage", p, r, actionBy(r, onLead, start), onTrainee, approvers.DeniedNotPeer, approvers.DeniedNotPeer},
		{"to a role without the tool", p, r, actionBy(r, onLead, start), onMail, approvers.DeniedNotPeer, approvers.DeniedNotPeer},
		{"to nobody's member", p, r, actionBy(r, onLead, start), bystander, approvers.DeniedNotPeer, approvers.DeniedNotPeer},
		{"to a guest", p, r, actionBy(r, onLead, start), guest, approvers.DeniedNotPeer, approvers.DeniedGuest},
		{"to a bot", p, r, actionBy(r, onLead, start), bot, approvers.DeniedNotPeer, approvers.DeniedBot},
		{"to nobody", p, r, actionBy(r, onLead, start), approvers.Identity{}, approvers.DeniedNotPeer, approvers.DeniedUnidentified},
		{"to oneself", p, r, actionBy(r, onLead, start), onLead, approvers.DeniedAsked, ""},
		{"twice to the same person", p, invited, actionBy(invited, onLead, start), onNight, approvers.DeniedAsked, ""},
		{"to somebody who has agreed", twoLeads(), agreed, actionBy(agreed, onLead, start), onFin1, approvers.DeniedAsked, ""},
		{"after the deadline", p, r, late, onNight, approvers.DeniedLate, ""},
		{"once it is decided", p, over, actionBy(over, onLead, start), onNight, approvers.DeniedResolved, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, _, denied := tt.r.HandOn(deciding(tt.p, start), tt.m, tt.to)
			wantDenied(t, denied, tt.code)
			if approvers.Code(denied.Detail) != tt.detail {
				t.Errorf("because %q; want %q", denied.Detail, tt.detail)
			}
			if len(after.Invited) != len(tt.r.Invited) {
				t.Error("invited all the same")
			}
		})
	}
}

// twoLeads returns a policy with a stage that needs two people, of two roles.
func twoLeads() *approvers.Policy {
	p := peers()
	p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2}}
	return p
}

// If a person is invited, one more person may decide. The stage still needs the same number of distinct people, and
// the next stage begins without the invited person.
func TestHandOnLowersNoQuorum(t *testing.T) {
	p := peers()
	p.Tools[5].Rules[0].Stages[0].Quorum = 2
	p.Approvers[1].Members = users("U0002", "U0008")
	r := handOn(t, p, open(t, p, "issue_refund", large), onLead, onNight)
	if r = mustApprove(t, p, r, onNight, start); r.Stage != 0 {
		t.Fatalf("at stage %d after one of two", r.Stage)
	}
	if r = mustApprove(t, p, r, onLead, start); r.Stage != 1 || len(r.Invited) != 0 {
		t.Fatalf("at stage %d with %d invited; want the second with nobody", r.Stage, len(r.Invited))
	}
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onNight, start))
	wantDenied(t, denied, approvers.DeniedNotMember)
	// The last stage needs a ceiling that covers the call's risk. So a director can't hand the request on to a
	// trainee with a low ceiling.
	_, _, denied = r.HandOn(deciding(p, start), actionBy(r, onFin1, start), onTrainee)
	wantDenied(t, denied, approvers.DeniedNotPeer)
	if denied.Need != approvers.Critical {
		t.Errorf("needs %s; want critical", denied.Need)
	}
}

// If the stage names a user group, the request can be handed on only to members of the group.
func TestHandOnStaysInTheGroup(t *testing.T) {
	p := peers()
	p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Group: "emea", Quorum: 1}}
	emea := onLead
	emea.Groups = []string{"emea"}
	r := open(t, p, "issue_refund", small)
	_, _, denied := r.HandOn(deciding(p, start), actionBy(r, emea, start), onNight)
	wantDenied(t, denied, approvers.DeniedNotPeer)
	if denied.Detail != string(approvers.DeniedGroup) {
		t.Errorf("because %q", denied.Detail)
	}
	night := onNight
	night.Groups = []string{"emea"}
	r = handOn(t, p, r, emea, night)
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, onNight, start)) // the person has left the group since
	wantDenied(t, denied, approvers.DeniedGroup)
	if r = mustApprove(t, p, r, night, start); r.State != approvers.Approved {
		t.Errorf("%s", r.State)
	}
}

// At the last stage, a request can be handed on only to a colleague whose ceiling covers the call's risk. This
// applies even if the ceiling of one of the stage's roles is below that risk.
func TestHandOnIsBoundByTheRisk(t *testing.T) {
	p := twoLeads()
	p.Tools[5].Risk, p.Tools[5].Stages[0].Quorum = approvers.Critical, 1
	r := open(t, p, "issue_refund", small)
	_, _, denied := r.HandOn(deciding(p, start), actionBy(r, onFin1, start), onNight)
	wantDenied(t, denied, approvers.DeniedNotPeer)
	if denied.Need != approvers.Critical {
		t.Errorf("needs %s; want critical", denied.Need)
	}
}

func TestHandOnHasAnEnd(t *testing.T) {
	p := peers()
	for i := range 30 {
		p.Approvers[3].Members = append(p.Approvers[3].Members, users(fmt.Sprintf("U1%03d", i))...)
	}
	r := open(t, p, "issue_refund", small)
	for i := range 30 {
		var denied *approvers.Denied
		if r, _, denied = r.HandOn(deciding(p, start), actionBy(r, onLead, start), person(fmt.Sprintf("U1%03d", i))); denied != nil {
			wantDenied(t, denied, approvers.DeniedFull)
			if len(r.Invited) != i || i < 10 {
				t.Errorf("full after %d with %d invited", i, len(r.Invited))
			}
			return
		}
	}
	t.Error("30 people were added to one stage")
}
