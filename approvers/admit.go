package approvers

import (
	"encoding/json"
	"slices"
	"time"
)

// Admits says why a call may not run under the grant, or "". It looks at the policy as it is now: a grant stands for one person who would
// be asked, at the only stage, and reaches as far as its giver's role does. Whether the giver still holds that role Slack
// has to be asked: see Backs.
func (g Grant) Admits(in Deciding, c Call, toolHash string, args json.RawMessage, plan Plan) string {
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
		return "the call's risk is above what the role of whoever granted it may allow"
	case slices.Contains(plan.barred(), g.By):
		return "whoever granted it is among those who ask"
	}
	return g.within(t.Grants, args)
}

// Stalled says why no call at all can run under the grant as things are now, or "".
func (g Grant) Stalled(in Deciding, toolHash string) string {
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
		return "the role of whoever granted it may not allow this tool any more"
	}
	return g.exceeds(t.Grants, in.Now)
}

// exceeds says how the grant goes beyond what the policy allows now, or "". What was given under wider terms holds only as far as the narrower ones.
func (g Grant) exceeds(terms GrantTerms, now time.Time) string {
	switch {
	case g.Uses-g.Left >= terms.Uses:
		return "it was used as often as the policy allows now"
	case !now.Before(g.At.Add(terms.Within)):
		return "it has held as long as the policy allows now"
	}
	return g.bounded(terms)
}

// Backs says why the grant's giver, as Slack knows them now, does not stand behind a call any more, or "".
func (g Grant) Backs(in Deciding, plan Plan, giver Identity) string {
	role, ok := in.Policy.Role(g.Role)
	switch {
	case giver.ID != g.By || giver.trouble() != "":
		return "Slack does not know whoever granted it as somebody who may decide"
	case !ok || !role.Holds(giver):
		return "whoever granted it is not in that role any more"
	case len(plan.Stages) == 0:
		return "nobody would be asked"
	}
	stage := plan.Stages[0]
	if stage.Group != "" && slices.Contains(stage.Roles(), g.Role) && !slices.Contains(giver.Groups, stage.Group) {
		return "whoever granted it is not in the user group that is asked"
	}
	return ""
}

// grantable reports whether a grant could stand for what the plan asks for: one person's approval of what is not critical, of a tool that the policy
// knows.
func (plan Plan) grantable() bool {
	return plan.Known && plan.Risk < Critical && len(plan.Stages) == 1 && plan.Stages[0].Quorum == 1
}

// reach are the roles whose people may come to decide the only stage: its own, and the leads whom escalation would add.
func (plan Plan) reach(p *Policy, tool string) []string {
	r := Request{Tool: tool, Plan: plan}
	for lead, ok := r.nextLead(p); ok; lead, ok = r.nextLead(p) {
		r.Joined = append(r.Joined, lead.Name)
	}
	return r.Roles()
}
