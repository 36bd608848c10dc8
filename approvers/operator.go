package approvers

import "slices"

// An operator acts at the command line, without Slack. Operators hold no role and approve for no stage. Operators may
// stop any call before its run begins. Operators may allow a call only if the policy allows break glass for the call's
// tool. Records name an operator by login.

// Operates returns the identity of an operator. The name in the id shows people that this person is an operator.
func Operates(who PersonID) Identity { return Identity{ID: who, Name: "operator " + who.Login()} }

// BreakGlass records an operator's approval in place of all remaining stages. The current policy must allow break
// glass for the tool. The approval is bound to the arguments by the digest of the arguments. A reason is required.
// The reason is shown to the people whose approval was skipped.
func (r Request) BreakGlass(in DecisionContext, m Action) (Request, []Event, *Denied) {
	if m.Who.ID.Login() == "" {
		return r, nil, &Denied{Code: DeniedUnidentified}
	}
	if denied := r.ready(m); denied != nil {
		return r, nil, denied
	}
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	switch {
	case !t.BreakGlass:
		return r, nil, &Denied{Code: DeniedBreakGlass}
	case m.Reason == "":
		return r, nil, &Denied{Code: DeniedNoReason}
	}
	d := m.decision(Approve, Role{}, r, in.Now)
	d.BreakGlass = true
	r, decided := r.decide(d)
	r.Stage = len(r.Plan.Stages) - 1 // so that Recheck also looks at the skipped stages
	r, events := r.approved(in, m, Role{}, decided)
	return r, events, nil
}

// Overrule records that an operator stops a call before its run begins. The call may already be approved.
func (r Request) Overrule(in DecisionContext, m Action) (Request, []Event, *Denied) {
	switch {
	case m.Who.ID.Login() == "":
		return r, nil, &Denied{Code: DeniedUnidentified}
	case r.State == Consumed && !r.Damaged:
		return r, nil, &Denied{Code: DeniedStarted}
	case r.State == Approved && m.Reason != "":
		return r.end(Revoked, m.Who.ID, m.Who.Name, "", m.Reason, in.Now)
	case r.State != Approved:
		if denied := r.waits(m); denied != nil {
			return r, nil, denied
		}
	}
	if m.Reason == "" {
		return r, nil, &Denied{Code: DeniedNoReason}
	}
	m.Digest = r.Digest
	r, decided := r.decide(m.decision(Reject, Role{}, r, in.Now))
	r, events, denied := r.end(Rejected, m.Who.ID, m.Who.Name, "", m.Reason, in.Now)
	return r, append([]Event{decided}, events...), denied
}

// BrokenBy returns the operator's decision (break glass) that allowed the call with its current arguments. If there is
// no such decision, BrokenBy returns false.
func (r Request) BrokenBy() (Decision, bool) {
	for _, d := range r.ValidApprovals() {
		if d.BreakGlass {
			return d, true
		}
	}
	return Decision{}, false
}

// Concerned returns the roles whose people are notified about break glass, because an operator approved in place of
// these people. These are the roles of every stage, the leads added by escalation, and all leads above these roles.
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
