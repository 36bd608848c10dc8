package approvers

import (
	"slices"
	"time"
)

// Open opens a request for a call that needs approval. If the plan refuses the call, Open also ends the request.
func Open(in DecisionContext, r Request) (Request, []Event) {
	r.State = Pending
	r.CreatedAt = in.Now
	if r.Plan.Verdict == Refuse {
		t, _ := in.Policy.Tool(r.Tool, r.Agent)
		r.ExpiresAt = in.Now.Add(t.ExpiresAfter)
		r, closed, _ := r.end(Refused, "", "", "", r.Plan.Why[len(r.Plan.Why)-1], in.Now)
		return r, append([]Event{RequestOpened{}}, closed...)
	}
	r, started := r.begin(in, StageOpened, Request{})
	return r, []Event{RequestOpened{}, started}
}

// begin starts the clocks of the current stage. begin removes the leads and stand-ins of the previous stage. If
// colleagues handed on the current stage before, the people to whom they handed it on stay invited. The parameter "was"
// is the request before the transition.
func (r Request) begin(in DecisionContext, why StageReason, was Request) (Request, Event) {
	r.Joined, r.DeferredReminders, r.Reminded, r.Rounds, r.Told = nil, nil, 0, 0, 0
	r.Invited, r.JoinedAt, r.Calls, r.Unreached = r.handedAt(r.Stage), nil, nil, nil
	r.StageAt = in.Now
	t := r.times(in)
	r.ExpiresAt = r.worked(in, r.stage().Roles(), t.ExpiresAfter)
	r.RemindAt = r.nextReminder(in)
	return r.armEscalation(in), StageStarted{Why: why, From: was.Stage, After: was.stage(), Stage: r.Stage}
}

// times returns the tool's policy, with the times of the current stage. Times that the stage does not set are the
// tool's times.
func (r Request) times(in DecisionContext) ToolPolicy {
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	s := r.stage()
	if s.ExpiresAfter > 0 {
		t.ExpiresAfter = s.ExpiresAfter
	}
	if s.EscalateAfter > 0 {
		t.EscalateAfter = s.EscalateAfter
	}
	return t
}

// worked returns the time at which d of working time has passed since now. worked computes this time for each role,
// with the role's working hours, and returns the earliest time.
func (r Request) worked(in DecisionContext, roles []string, d time.Duration) time.Time {
	var at time.Time
	for _, name := range roles {
		role, ok := in.Policy.Role(name)
		if !ok {
			continue
		}
		if then := role.Hours.After(in.Now, d); at.IsZero() || then.Before(at) {
			at = then
		}
	}
	if at.IsZero() {
		return in.Now.Add(d)
	}
	return at
}

// armEscalation sets the time of the next escalation. At that time, the bot notifies the next lead. After the last
// lead, the bot notifies all people of the stage again, up to Repeat times. If nobody is left to notify, armEscalation
// clears the time.
func (r Request) armEscalation(in DecisionContext) Request {
	r.EscalateAt = time.Time{}
	if r.State != Pending {
		return r
	}
	t := r.times(in)
	if _, ok := r.nextLead(in.Policy); !ok {
		if r.Rounds < t.Repeat {
			r.EscalateAt = r.worked(in, r.Roles(), t.EscalateAfter)
		}
		return r
	}
	r.EscalateAt = r.worked(in, r.Roles(), t.EscalateAfter)
	if r.goesUpAtOnce(in) {
		r.EscalateAt = in.Now
	}
	return r
}

// rearm recomputes the time of the next escalation after a policy change. The escalation may become earlier, or be
// dropped, but it never becomes later. A scheduled reminder keeps its time if the policy still allows the reminder.
func (r Request) rearm(in DecisionContext) Request {
	armed := r.armEscalation(in)
	if !armed.EscalateAt.IsZero() && !r.EscalateAt.IsZero() && r.EscalateAt.Before(armed.EscalateAt) {
		armed.EscalateAt = r.EscalateAt
	}
	if r.RemindAt.IsZero() || !r.reminds(in) && r.Told == r.Rounds {
		armed.RemindAt = r.nextReminder(in)
	}
	return armed
}

// goesUpAtOnce reports whether the request goes to the lead immediately. This is the case if the roles that were
// notified last do not work now, and all of them are set to escalate outside working hours.
func (r Request) goesUpAtOnce(in DecisionContext) bool {
	told := r.stage().Roles()
	if n := len(r.Joined); n > 0 {
		told = r.Joined[n-1:]
	}
	for _, name := range told {
		role, ok := in.Policy.Role(name)
		if ok && (role.Hours == nil || role.Hours.Outside != OutsideEscalates || role.Hours.Open(in.Now)) {
			return false
		}
	}
	return true
}

// nextLead returns the nearest lead of the stage's roles. The lead must be allowed to decide the stage, and not
// notified yet.
func (r Request) nextLead(p *Policy) (Role, bool) {
	told := r.Roles()
	for _, from := range r.stage().Roles() {
		for _, role := range p.above(from) {
			if !slices.Contains(told, role.Name) && role.Covers(r.Tool) && (!r.last() || role.MaxRisk >= r.Plan.Risk) {
				return role, true
			}
		}
	}
	return Role{}, false
}

// above returns the leads of a role, nearest first.
func (p *Policy) above(name string) (leads []Role) {
	role, ok := p.Role(name)
	for ok && role.Lead != "" {
		if role, ok = p.Role(role.Lead); ok && (role.Name == name || slices.ContainsFunc(leads, func(l Role) bool { return l.Name == role.Name })) {
			break // the leads form a cycle
		}
		if ok {
			leads = append(leads, role)
		}
	}
	return leads
}

// leadsTo reports whether a role is above one of a stage's roles.
func (p *Policy) leadsTo(s Stage, name string) bool {
	return slices.ContainsFunc(s.Roles(), func(from string) bool {
		return slices.ContainsFunc(p.above(from), func(r Role) bool { return r.Name == name })
	})
}

// late reports whether the stage's deadline has passed. After the deadline, the bot notifies nobody else, and Expire
// ends the stage.
func (r Request) late(now time.Time) bool { return !now.Before(r.ExpiresAt) }

// Escalate adds the next lead to the current stage. When there are no more leads, Escalate makes the bot notify all
// people of the stage once more, as often as the policy says. Escalate never skips a stage or lowers a quorum.
// Escalate returns false if no escalation is due. If there is nobody left to notify, Escalate returns false and an
// EscalationEnded event.
func (r Request) Escalate(in DecisionContext) (Request, []Event, bool) {
	if r.State != Pending || r.EscalateAt.IsZero() || in.Now.Before(r.EscalateAt) || r.late(in.Now) {
		return r, nil, false
	}
	if up, lead, ok := r.join(in); ok {
		return up, []Event{Escalated{Lead: lead}}, true
	}
	if r.Rounds < r.times(in).Repeat {
		r.Rounds++
		r.RemindAt = in.Now
		return r.armEscalation(in), []Event{Escalated{Again: true}}, true
	}
	r.EscalateAt = time.Time{}
	return r, []Event{EscalationEnded{}}, false
}

// join adds the next lead to the stage.
func (r Request) join(in DecisionContext) (Request, Role, bool) {
	lead, ok := r.nextLead(in.Policy)
	if !ok {
		return r, Role{}, false
	}
	r.Joined, r.JoinedAt = append(slices.Clone(r.Joined), lead.Name), append(slices.Clone(r.JoinedAt), in.Now)
	return r.armEscalation(in), lead, true
}

// Escalation added the roles in Joined as leads. keepLeads removes those roles that are not leads of the stage's roles
// under the current policy.
func (r Request) keepLeads(p *Policy) Request {
	joined, at := r.Joined, r.JoinedAt
	r.Joined, r.JoinedAt = nil, nil
	for i, name := range joined {
		if !p.leadsTo(r.stage(), name) {
			continue
		}
		r.Joined = append(r.Joined, name)
		if i < len(at) {
			r.JoinedAt = append(r.JoinedAt, at[i])
		}
	}
	return r
}

// goUp passes an expired stage to the next lead, if the policy escalates on expiry. The lead gets the full time of the
// stage.
func (r Request) goUp(in DecisionContext) (Request, Role, bool) {
	t := r.times(in)
	if t.OnExpiry != ExpiryEscalates {
		return r, Role{}, false
	}
	up, lead, ok := r.join(in)
	if !ok {
		return r, Role{}, false
	}
	up.ExpiresAt = up.worked(in, []string{lead.Name}, t.ExpiresAfter)
	if up.RemindAt.IsZero() {
		up.RemindAt = up.nextReminder(in)
	}
	return up, lead, true
}
