package approvers_test

import (
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// decidedNothing fails the test if adding people, or writing a remark, changed a decision or the stages.
func (w *propertyFixture) decidedNothing(t *rapid.T, what string, after approvers.Request) {
	if after.State != w.r.State || after.Stage != w.r.Stage || after.Digest != w.r.Digest ||
		!reflect.DeepEqual(after.Plan, w.r.Plan) || !reflect.DeepEqual(after.Decisions, w.r.Decisions) {
		t.Fatalf("%s changed the stage, the plan or the decisions:\n%+v\n%+v", what, w.r, after)
	}
}

// sameClocks fails the test if a clock changed.
func (w *propertyFixture) sameClocks(t *rapid.T, what string, after approvers.Request) {
	if !after.ExpiresAt.Equal(w.r.ExpiresAt) || !after.EscalateAt.Equal(w.r.EscalateAt) || !after.RemindNext().Equal(w.r.RemindNext()) {
		t.Fatalf("%s moved a clock:\n%+v\n%+v", what, w.r, after)
	}
}

// handOn hands the request on to a colleague. The colleague may then decide the stage.
func (w *propertyFixture) handOn(t *rapid.T) {
	w.refresh(t)
	who, m, valid, _ := w.drawAction(t)
	to := one(t, "to", w.people...)
	after, _, denied := w.r.HandOn(w.deciding(), m, to)
	if !valid {
		agree(t, "hand on", who, denied, false)
		return
	}
	agree(t, "hand on", who, denied, len(w.may(w.policy, who)) > 0 && to.ID != who.ID && !w.counted(to.ID) &&
		!slices.Contains(w.invited, to.ID) && len(w.peer(w.policy, to)) > 0)
	w.decidedNothing(t, "handing on", after)
	w.sameClocks(t, "handing on", after)
	if denied == nil {
		w.invited, w.handed[w.stage] = append(w.invited, to.ID), append(w.handed[w.stage], to.ID)
	}
	w.settle(t, after)
}

// The method lets an approver ask or comment. An approver is a person who may decide now, or who has approved a
// stage.
func (w *propertyFixture) say(t *rapid.T) {
	w.refresh(t)
	who, m, valid, _ := w.drawAction(t)
	kind := one(t, "kind", approvers.Question, approvers.Comment)
	after, _, denied := w.r.Say(w.deciding(), m, kind)
	want := valid && (len(w.may(w.policy, who)) > 0 || full(who) && w.counted(who.ID))
	if denied == nil || denied.Code != approvers.DeniedFull { // how many remarks fit on a card is tested elsewhere
		agree(t, "say", who, denied, want)
	}
	w.decidedNothing(t, "saying something", after)
	w.sameClocks(t, "saying something", after)
	w.settle(t, after)
}

// reply lets a requester answer a question, once.
func (w *propertyFixture) reply(t *rapid.T) {
	w.refresh(t)
	who, m, valid, _ := w.drawAction(t)
	question := rapid.IntRange(0, 3).Draw(t, "question")
	open := question < len(w.r.Remarks) && w.r.Remarks[question].Kind == approvers.Question &&
		!slices.ContainsFunc(w.r.Remarks, func(m approvers.Remark) bool { return m.Kind == approvers.Answer && m.To == question })
	after, _, denied := w.r.Reply(w.deciding(), m, question)
	agree(t, "reply", who, denied, valid && open && who.ID != "" && !who.Deleted && slices.Contains(w.call.Requesters, who.ID))
	w.decidedNothing(t, "replying", after)
	w.sameClocks(t, "replying", after)
	w.settle(t, after)
}

// For each person, drawPresence draws an absence, a stand-in, and a time of do-not-disturb.
func (w *propertyFixture) drawPresence(t *rapid.T) (out []approvers.Presence) {
	seen := map[approvers.PersonID]bool{}
	for _, who := range w.people {
		if seen[who.ID] || who.ID == "" {
			continue
		}
		seen[who.ID] = true
		p := w.drawHere(t, who)
		if p.Away && oneIn(t, 2, "stand-in") {
			other := w.drawHere(t, one(t, "by", w.people...))
			p.StandIn = &other
		}
		out = append(out, p)
	}
	return out
}

func (w *propertyFixture) drawHere(t *rapid.T, who approvers.Identity) approvers.Presence {
	p := approvers.Presence{Who: who}
	switch rapid.IntRange(0, 3).Draw(t, "presence") {
	case 1:
		p.Away = true
	case 2:
		p.QuietUntil = w.now.Add(time.Duration(rapid.IntRange(-1, 40).Draw(t, "quiet")) * time.Minute)
	}
	return p
}

// awaited reports whether a person may decide the stage and has not decided it yet.
func (w *propertyFixture) awaited(who approvers.Identity) bool {
	return len(w.may(w.policy, who)) > 0 && !w.counted(who.ID) && !w.rejected(who.ID)
}

// resolveAvailability checks who can be reached. A stand-in joins the stage under one of the stand-in's own roles. If
// nobody can be reached, the lead is notified immediately. Outside of working hours, availability is checked once
// more when somebody starts work.
func (w *propertyFixture) resolveAvailability(t *rapid.T) {
	w.refresh(t)
	people := w.drawPresence(t)
	late := !w.now.Before(w.r.ExpiresAt)
	after, found := w.r.ResolveAvailability(w.deciding(), people)
	if w.state != approvers.Pending || late {
		if len(invites(found)) > 0 || !recheckAt(found).IsZero() || !reflect.DeepEqual(after, w.r) {
			t.Fatalf("resolved a %s request, late %t: %+v", w.state, late, found)
		}
		return
	}
	var invited []approvers.PersonID
	reached, all := false, people
	for _, p := range people {
		if !w.awaited(p.Who) {
			continue
		}
		here := &p
		if here.Away {
			here = here.StandIn
		}
		if here == nil || here.Away {
			continue
		}
		if by := here.Who; by.ID != p.Who.ID && !w.counted(by.ID) && len(w.may(w.policy, by)) == 0 && len(w.peer(w.policy, by)) > 0 && !slices.Contains(w.invited, by.ID) {
			w.invited, invited = append(w.invited, by.ID), append(invited, by.ID)
			all = append(slices.Clone(all), *here)
		}
		reached = reached || !here.QuietUntil.After(w.now) && w.awaited(here.Who)
	}
	if len(invites(found)) != len(invited) {
		t.Fatalf("invited %+v; the oracle says %v", invites(found), invited)
	}
	w.decidedNothing(t, "resolving availability", after)
	works := w.worksNow(w.asked())
	able := map[approvers.PersonID]bool{}
	for _, p := range all {
		if len(w.may(w.policy, p.Who)) > 0 && !w.counted(p.Who.ID) {
			able[p.Who.ID] = true
		}
	}
	lacks := ""
	switch {
	case len(able) == 0:
		lacks = approvers.NobodyLeft
	case len(able)+w.r.At(w.r.Stage) < w.r.CurrentStage().Quorum:
		lacks = approvers.TooFew
	}
	atOnce := (!reached || lacks != "") && works && len(w.up(w.policy)) > 0
	told := ""
	if len(w.up(w.policy)) == 0 || approvers.LacksPeople(w.r) != "" {
		told = lacks
	}
	switch {
	case approvers.LacksPeople(after) != told:
		t.Fatalf("%d people may decide, leads %v, and it says %q", len(able), w.up(w.policy), approvers.LacksPeople(after))
	case atOnce != (!after.EscalateAt.Equal(w.r.EscalateAt) || atOnce && !w.r.EscalateAt.After(w.now)):
		t.Fatalf("reached %t, at work %t, leads %v: the escalation went from %s to %s", reached, works, w.up(w.policy), w.r.EscalateAt, after.EscalateAt)
	case atOnce && after.EscalateAt.After(w.now):
		t.Fatalf("nobody can be reached, and the lead is told at %s", after.EscalateAt)
	case ((!reached || lacks != "") && (!works || told != "")) != recheckAt(found).After(w.now) || !recheckAt(found).IsZero() && !recheckAt(found).After(w.now):
		t.Fatalf("reached %t, at work %t, and it is looked at again at %s", reached, works, recheckAt(found))
	}
	w.r.EscalateAt = after.EscalateAt
	w.sameClocks(t, "resolving availability", after)
	w.settle(t, after)
}
