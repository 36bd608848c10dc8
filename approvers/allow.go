package approvers

import (
	"encoding/json"
	"slices"
	"time"
)

// Allowance is the permission that an approver adds to an approval: how many more calls like this one, for how long,
// and up to which numbers.
type Allowance struct {
	Uses   int
	Within time.Duration
	AtMost map[string]json.RawMessage // by argument name; arguments that are missing here keep the call's value
}

// Allow makes the grant that an approver gives on a pending request's card: for the same tool, agent and conversation,
// within the policy's terms and the approver's authority. It does not approve the request; Approve does.
func (r Request) Allow(in DecisionContext, m Action, a Allowance) (Grant, *Denied) {
	if denied := r.ready(m); denied != nil {
		return Grant{}, denied
	}
	role, denied := r.Authority(in.Policy, m.Who)
	if denied != nil {
		return Grant{}, denied
	}
	if !r.Grantable(in) || !slices.Contains(r.Plan.reach(in.Policy, r.Tool), role.Name) {
		return Grant{}, &Denied{Code: DeniedNoGrants}
	}
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	if a.Uses < 1 || a.Uses > t.Grants.Uses || a.Within <= 0 || a.Within > t.Grants.Within {
		return Grant{}, &Denied{Code: DeniedNoGrants, Detail: "it is more, or for longer, than the policy allows"}
	}
	values, _ := members(r.Args)
	bounds, why := t.Grants.bounds(values, a.AtMost)
	if why != "" {
		return Grant{}, &Denied{Code: DeniedNoGrants, Detail: why}
	}
	return Grant{
		State: GrantLive, Agent: r.Agent, Conversation: r.Conversation, Tool: r.Tool, ToolHash: r.ToolHash, Args: names(values), Bounds: bounds, Secrets: r.Secrets,
		Request: r.ID, By: m.Who.ID, Name: m.Who.Name, Role: role.Name, At: in.Now, Until: in.Now.Add(a.Within), Within: a.Within, Uses: a.Uses, Left: a.Uses,
	}, nil
}

// Grantable reports whether the policy allows an approver of the request to allow more calls like it. Calls whose
// approval takes more than a click are not grantable: critical calls, and calls beyond a cap.
func (r Request) Grantable(in DecisionContext) bool {
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	if r.State != Pending || r.Conversation == "" || !t.Grants.Allowed() || t.Risk >= Critical || !r.Plan.grantable() || r.WantsTyping() {
		return false
	}
	values, ok := members(r.Args)
	_, why := t.Grants.bounds(values, nil)
	return ok && why == ""
}

// Accept accepts an offer. People of the role that it was made to can, if their role may still allow the tool and the
// policy's terms still permit the offer.
func (g Grant) Accept(in DecisionContext, m Action, toolHash string) (Grant, *Denied) {
	if denied := g.answerable(in, m); denied != nil {
		return g, denied
	}
	role, _ := in.Policy.Role(g.OfferedTo)
	t, known := in.Policy.Tool(g.Tool, g.Agent)
	switch {
	case !role.Covers(g.Tool):
		return g, &Denied{Code: DeniedTool, Role: role.Name}
	case role.MaxRisk < t.Risk:
		return g, &Denied{Code: DeniedCeiling, Role: role.Name, Need: t.Risk}
	case g.ToolHash != toolHash:
		return g, &Denied{Code: DeniedNoGrants, Detail: "the definition of the tool changed since this was offered"}
	case !known || t.Risk >= Critical || g.Uses > t.Grants.Uses || g.Within > t.Grants.Within || g.bounded(t.Grants) != "":
		return g, &Denied{Code: DeniedNoGrants, Detail: "the policy changed since this was offered, and does not allow it any more"}
	}
	g.State, g.By, g.Name, g.Role, g.At = GrantLive, m.Who.ID, m.Who.Name, role.Name, in.Now
	g.Left, g.Until = g.Uses, in.Now.Add(g.Within)
	return g, nil
}

// Decline ends an offer.
func (g Grant) Decline(in DecisionContext, m Action) (Grant, *Denied) {
	if denied := g.answerable(in, m); denied != nil {
		return g, denied
	}
	return g.close(GrantDeclined, m.Who.ID, m.Who.Name, in.Now), nil
}

// answerable returns why a person can't answer an offer, or nil. The time of their click counts.
func (g Grant) answerable(in DecisionContext, m Action) *Denied {
	if g.State != GrantOffered || !m.At.Before(g.Until) {
		return g.ended()
	}
	if code := m.Who.trouble(); code != "" {
		return &Denied{Code: code}
	}
	if role, ok := in.Policy.Role(g.OfferedTo); !ok || !role.Holds(m.Who) {
		return &Denied{Code: DeniedNotMember, Role: g.OfferedTo}
	}
	return nil
}
