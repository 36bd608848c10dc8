package render

import "countersign/approvers"

// titles names roles and stages as the policy does.
type titles struct{ policy *approvers.Policy }

// title returns a role's title.
func (t titles) title(role string) string { return Name(RoleTitle(t.policy, role)) }

// stageTitle names the approvers of a stage: its roles, and the user group that they must be in.
func (t titles) stageTitle(st approvers.Stage) string {
	return shorten(OneLine(st.Title(t.policy)), maxStageName)
}

// escalatedRoles names the roles that escalation added to the stage.
func (t titles) escalatedRoles(r approvers.Request) string {
	out := ""
	for i, j := range r.Joined {
		if i == 2 {
			return out + " or " + Plural(len(r.Joined)-i, "other role")
		}
		out += " or " + t.title(j)
	}
	return out
}

// waitsFor names the people that a pending request waits for.
func (t titles) waitsFor(r approvers.Request) string {
	if r.State != approvers.Pending {
		return ""
	}
	return t.stageTitle(r.CurrentStage()) + t.escalatedRoles(r)
}

// inRole names the role in which a person acted.
func (t titles) inRole(role string) string {
	if role == "" {
		return ""
	}
	return " as " + t.title(role)
}

// RoleTitle returns a role's title in the current policy. If the policy has no such role, RoleTitle returns the name
// unchanged.
func RoleTitle(p *approvers.Policy, role string) string {
	if p == nil {
		return role
	}
	if r, ok := p.Role(role); ok {
		return r.Title
	}
	return role
}
