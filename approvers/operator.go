package approvers

import "slices"

// An operator acts at the command line, without Slack. They hold no role and are nobody's approver, so they are counted for no stage: they may
// stop any call, and allow one only where the policy breaks the glass for its tool. They are recorded as themselves.

// Operates is an operator as they act on requests. Their name says what they are wherever people read it.
func Operates(who PersonID) Identity { return Identity{ID: who, Name: "operator " + who.Login()} }

// BreakGlass has an operator allow a call, in place of everybody whom the stages that remain would have asked. The policy in force has to
// allow it for the tool. The approval is bound to the arguments by their digest, and needs a reason, as those who were passed over will want one.
func (r Request) BreakGlass(in Deciding, m Move) (Request, *Denied) {
	if m.Who.ID.Login() == "" {
		return r, &Denied{Code: DeniedUnidentified}
	}
	if denied := r.ready(m); denied != nil {
		return r, denied
	}
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	switch {
	case !t.BreakGlass:
		return r, &Denied{Code: DeniedGlass}
	case m.Reason == "":
		return r, &Denied{Code: DeniedNoReason}
	}
	d := m.decision(Approve, Role{}, r, in.Now)
	d.BreakGlass = true
	r.Decisions = append(slices.Clone(r.Decisions), d)
	r.Stage = len(r.Plan.Stages) - 1 // what is asked at the stages passed over counts too, should the policy change before the run
	r = r.close(Approved, m.Who.ID, m.Who.Name, "", "", in.Now)
	r.RunBy = in.Now.Add(t.RunWithin)
	return r, nil
}

// Overrule has an operator stop a call, whoever has agreed to it, until its run begins.
func (r Request) Overrule(in Deciding, m Move) (Request, *Denied) {
	switch {
	case m.Who.ID.Login() == "":
		return r, &Denied{Code: DeniedUnidentified}
	case r.State == Consumed:
		return r, &Denied{Code: DeniedStarted}
	case r.State == Approved && m.Reason != "":
		return r.close(Revoked, m.Who.ID, m.Who.Name, "", m.Reason, in.Now), nil
	case r.State != Approved:
		if denied := r.waits(m); denied != nil {
			return r, denied
		}
	}
	if m.Reason == "" {
		return r, &Denied{Code: DeniedNoReason}
	}
	m.Digest = r.Digest
	r.Decisions = append(slices.Clone(r.Decisions), m.decision(Reject, Role{}, r, in.Now))
	return r.close(Rejected, m.Who.ID, m.Who.Name, "", m.Reason, in.Now), nil
}

// BrokenBy is the decision by which an operator allowed the call as it stands; false: people of the stages did, or nobody.
func (r Request) BrokenBy() (Decision, bool) {
	for _, d := range r.Standing() {
		if d.BreakGlass {
			return d, true
		}
	}
	return Decision{}, false
}

// Concerned are the roles whose people are told when the glass is broken: those of every stage, those who were told as leads, and every lead
// above them.
func (r Request) Concerned(p *Policy) []string {
	var out []string
	add := func(name string) {
		if _, known := p.Role(name); known && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	var named []string
	for _, s := range r.Plan.Stages {
		named = append(named, s.Roles()...)
	}
	for _, name := range append(named, r.Joined...) {
		add(name)
		for _, lead := range p.above(name) {
			add(lead.Name)
		}
	}
	return out
}
