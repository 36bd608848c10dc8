package approvers

import (
	"slices"
	"time"
)

// Open opens a request for a call that has to wait.
func Open(in Deciding, r Request) Request {
	r.State = Pending
	r.CreatedAt = in.Now
	if r.Plan.Verdict == Refuse {
		t, _ := in.Policy.Tool(r.Tool, r.Agent)
		r.ExpiresAt = in.Now.Add(t.ExpiresAfter)
		return r.close(Refused, "", "", "", r.Plan.Why[len(r.Plan.Why)-1], in.Now)
	}
	return r.begin(in)
}

// begin starts the clocks of the current stage. Nobody is added to it yet.
func (r Request) begin(in Deciding) Request {
	r.Joined, r.Owed, r.Reminded, r.Rounds, r.Told = nil, nil, 0, 0, 0
	r.Invited, r.JoinedAt = r.handedAt(r.Stage), nil
	r.StageAt = in.Now
	t := r.times(in)
	r.ExpiresAt = r.worked(in, r.stage().Roles(), t.ExpiresAfter)
	r.RemindAt = r.nextReminder(in)
	return r.armEscalation(in)
}

// times are the tool's policy with what the current stage says of its own time.
func (r Request) times(in Deciding) ToolPolicy {
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

// worked is when so much of the roles' working time will have passed from now on: of the one that is through first.
func (r Request) worked(in Deciding, roles []string, d time.Duration) time.Time {
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

// armEscalation sets when the next lead is told, or everybody once more, if there is anybody to tell.
func (r Request) armEscalation(in Deciding) Request {
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

// rearm sets the escalation and the reminders anew where a changed policy has others, and leaves a clock that is running alone.
func (r Request) rearm(in Deciding) Request {
	armed := r.armEscalation(in)
	if !armed.EscalateAt.IsZero() && !r.EscalateAt.IsZero() && r.EscalateAt.Before(armed.EscalateAt) {
		armed.EscalateAt = r.EscalateAt
	}
	if r.RemindAt.IsZero() || !r.reminds(in) && r.Told == r.Rounds {
		armed.RemindAt = r.nextReminder(in)
	}
	return armed
}

// goesUpAtOnce reports whether those who were told last don't work now, and their roles send what comes then to the lead.
func (r Request) goesUpAtOnce(in Deciding) bool {
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

// nextLead follows the leads of the stage's roles up to the first that may decide the stage and was not told yet.
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

// above are the leads of a role, from the nearest up.
func (p *Policy) above(name string) (leads []Role) {
	role, ok := p.Role(name)
	for ok && role.Lead != "" {
		if role, ok = p.Role(role.Lead); ok && (role.Name == name || slices.ContainsFunc(leads, func(l Role) bool { return l.Name == role.Name })) {
			break // they go round in a circle
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

// Escalation says who is told because nobody has decided.
type Escalation struct {
	Lead  Role // the lead who was added to the stage
	Again bool // nobody was left to add: everybody who was told is told once more
}

// late reports whether the stage's deadline has passed: then nobody else is told, and what becomes of it is Expire's.
func (r Request) late(now time.Time) bool { return !now.Before(r.ExpiresAt) }

// Escalate adds the next lead to the current stage, or has everybody told again as often as the policy says. It skips no stage and
// lowers no quorum. It reports false while it is not due or nobody is left to tell.
func (r Request) Escalate(in Deciding) (Request, Escalation, bool) {
	if r.State != Pending || r.EscalateAt.IsZero() || in.Now.Before(r.EscalateAt) || r.late(in.Now) {
		return r, Escalation{}, false
	}
	if up, lead, ok := r.join(in); ok {
		return up, Escalation{Lead: lead}, true
	}
	if r.Rounds < r.times(in).Repeat {
		r.Rounds++
		r.RemindAt = in.Now
		return r.armEscalation(in), Escalation{Again: true}, true
	}
	r.EscalateAt = time.Time{}
	return r, Escalation{}, false
}

// join adds the next lead to the stage.
func (r Request) join(in Deciding) (Request, Role, bool) {
	lead, ok := r.nextLead(in.Policy)
	if !ok {
		return r, Role{}, false
	}
	r.Joined, r.JoinedAt = append(slices.Clone(r.Joined), lead.Name), append(slices.Clone(r.JoinedAt), in.Now)
	return r.armEscalation(in), lead, true
}

// keepLeads leaves of those who were told as leads only those who still are.
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

// goUp gives a stage that nobody decided to the next lead with its time anew, where the policy has silence escalate.
func (r Request) goUp(in Deciding) (Request, bool) {
	t := r.times(in)
	if t.OnExpiry != ExpiryEscalates {
		return r, false
	}
	up, lead, ok := r.join(in)
	if !ok {
		return r, false
	}
	up.ExpiresAt = up.worked(in, []string{lead.Name}, t.ExpiresAfter)
	if up.RemindAt.IsZero() {
		up.RemindAt = up.nextReminder(in)
	}
	return up, true
}
