package approvers

import (
	"encoding/json"
	"slices"
	"time"
)

// Admits returns why a call may not run under the grant, or "". It applies the current policy. A grant replaces the
// approval of one person at the only stage, and covers no more than its giver's role does. Backs checks whether the
// giver still holds that role, which takes a look-up in Slack.
func (g Grant) Admits(in DecisionContext, c Call, toolHash string, args json.RawMessage, plan Plan) string {
	if why := g.Stalled(in, toolHash); why != "" {
		return why
	}
	t, _ := in.Policy.Tool(g.Tool, g.Agent)
	role, _ := in.Policy.Role(g.Role)
	switch {
	case g.Tool != c.Tool || g.Agent != c.Facts.Agent || g.Conversation != "" && g.Conversation != c.Facts.Conversation.ID:
		return "it is for other calls"
	case plan.Verdict != Ask:
		return "nobody would be asked"
	case !plan.grantable():
		return "the call is critical, or needs more than one person"
	case !slices.Contains(plan.reach(in.Policy, c.Tool), g.Role):
		return "such calls wait for others now"
	case role.MaxRisk < plan.Risk:
		return "the call's risk is above what the role of the person who granted it may allow"
	case slices.Contains(plan.barred(), g.By):
		return "the person who granted it is among the people who ask"
	}
	return g.within(t.Grants, args)
}

// Stalled returns why the grant currently admits no call at all, or "".
func (g Grant) Stalled(in DecisionContext, toolHash string) string {
	t, known := in.Policy.Tool(g.Tool, g.Agent)
	role, ok := in.Policy.Role(g.Role)
	switch {
	case g.over(in.Now):
		return "it is over"
	case g.ToolHash != toolHash:
		return "the definition of the tool changed"
	case !known || !t.Grants.Allowed() || t.Risk >= Critical:
		return "the policy allows no grants for this tool any more"
	case !ok || !role.Covers(g.Tool) || role.MaxRisk < t.Risk:
		return "the role of the person who granted it may not allow this tool any more"
	}
	return g.exceeds(t.Grants, in.Now)
}

// exceeds returns how the grant goes beyond the policy's current terms, or "". If the terms have become narrower since
// the grant was given, the narrower terms apply.
func (g Grant) exceeds(terms GrantTerms, now time.Time) string {
	switch {
	case g.Uses-g.Left >= terms.Uses:
		return "it was used as often as the policy allows now"
	case !now.Before(g.At.Add(terms.Within)):
		return "it has held as long as the policy allows now"
	}
	return g.bounded(terms)
}

// Backs returns why the grant's giver, according to Slack now, no longer has authority for a call, or "".
func (g Grant) Backs(in DecisionContext, plan Plan, giver Identity) string {
	role, ok := in.Policy.Role(g.Role)
	switch {
	case giver.ID != g.By || giver.trouble() != "":
		return "Slack does not confirm that the person who granted it may decide"
	case !ok || !role.Holds(giver):
		return "the person who granted it is not in that role any more"
	case len(plan.Stages) == 0:
		return "nobody would be asked"
	}
	stage := plan.Stages[0]
	if stage.Group != "" && slices.Contains(stage.Roles(), g.Role) && !slices.Contains(giver.Groups, stage.Group) {
		return "the person who granted it is not in the user group that is asked"
	}
	return ""
}

// grantable reports whether a grant can replace the approval that the plan asks for: one person's approval of a call
// that is not critical, of a tool named in the policy.
func (plan Plan) grantable() bool {
	return plan.Known && plan.Risk < Critical && len(plan.Stages) == 1 && plan.Stages[0].Quorum == 1
}

// reach returns the roles whose people can come to decide the only stage: its own roles, and the leads that escalation
// would add.
func (plan Plan) reach(p *Policy, tool string) []string {
	r := Request{Tool: tool, Plan: plan}
	for lead, ok := r.nextLead(p); ok; lead, ok = r.nextLead(p) {
		r.Joined = append(r.Joined, lead.Name)
	}
	return r.Roles()
}
