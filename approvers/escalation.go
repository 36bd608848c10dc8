package approvers

import (
	"slices"
	"time"
)

// Open opens a request for a call that has to wait.
func Open(in Deciding, r Request) Request {
	r.State = Pending
	r.CreatedAt = in.Now
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	r.ExpiresAt = in.Now.Add(t.ExpiresAfter)
	if r.Plan.Verdict == Refuse {
		return r.close(Refused, "", "", "", r.Plan.Why[len(r.Plan.Why)-1], in.Now)
	}
	return r.armEscalation(in)
}

// armEscalation sets when the stage's lead is told, if there is a lead who may decide.
func (r Request) armEscalation(in Deciding) Request {
	r.EscalateAt = time.Time{}
	if _, ok := r.nextLead(in.Policy); ok && r.State == Pending {
		t, _ := in.Policy.Tool(r.Tool, r.Agent)
		r.EscalateAt = in.Now.Add(t.EscalateAfter)
	}
	return r
}

// nextLead follows the leads of the stage's roles up to the first that may decide the stage and was not told yet.
func (r Request) nextLead(p *Policy) (Role, bool) {
	roles := r.Roles()
	if len(roles) == 0 {
		return Role{}, false
	}
	last := r.Stage == len(r.Plan.Stages)-1
	role, ok := p.Role(roles[len(roles)-1])
	seen := slices.Clone(roles)
	for ok && role.Lead != "" {
		role, ok = p.Role(role.Lead)
		if !ok || slices.Contains(seen, role.Name) {
			return Role{}, false
		}
		seen = append(seen, role.Name)
		if role.Covers(r.Tool) && (!last || role.MaxRisk >= r.Plan.Risk) {
			return role, true
		}
	}
	return Role{}, false
}

// Escalate adds the next lead to the current stage. It skips no stage and lowers no quorum. It
// reports false while it is not due or nobody is left to tell.
func (r Request) Escalate(in Deciding) (Request, Role, bool) {
	if r.State != Pending || r.EscalateAt.IsZero() || in.Now.Before(r.EscalateAt) {
		return r, Role{}, false
	}
	lead, ok := r.nextLead(in.Policy)
	if !ok {
		r.EscalateAt = time.Time{}
		return r, Role{}, false
	}
	r.Joined = append(slices.Clone(r.Joined), lead.Name)
	return r.armEscalation(in), lead, true
}
