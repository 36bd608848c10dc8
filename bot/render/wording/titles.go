package wording

import (
	"countersign/approvers"
	"countersign/bot/render/block"
)

// Titles names roles and stages as the policy does.
type Titles struct{ Policy *approvers.Policy }

// Title returns a role's title.
func (t Titles) Title(role string) string { return block.Name(roleTitle(t.Policy, role)) }

// StageTitle names the approvers of a stage: its roles, and the user group that they must be in.
func (t Titles) StageTitle(st approvers.Stage) string {
	return block.Shorten(block.OneLine(st.Title(t.Policy)), block.MaxStageName)
}

// EscalatedRoles names the roles that escalation added to the stage.
func (t Titles) EscalatedRoles(r approvers.Request) string {
	out := ""
	for i, j := range r.Joined {
		if i == 2 {
			return out + " or " + block.Plural(len(r.Joined)-i, "other role")
		}
		out += " or " + t.Title(j)
	}
	return out
}

// WaitsFor names the people that a pending request waits for.
func (t Titles) WaitsFor(r approvers.Request) string {
	if r.State != approvers.Pending {
		return ""
	}
	return t.StageTitle(r.CurrentStage()) + t.EscalatedRoles(r)
}

// InRole names the role in which a person acted.
func (t Titles) InRole(role string) string {
	if role == "" {
		return ""
	}
	return " as " + t.Title(role)
}

// roleTitle returns a role's title in the current policy. If the policy has no such role, roleTitle returns the name
// unchanged.
func roleTitle(p *approvers.Policy, role string) string {
	if p == nil {
		return role
	}
	if r, ok := p.Role(role); ok {
		return r.Title
	}
	return role
}
