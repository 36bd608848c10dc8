package approvers

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Grant is an approver's permission for later calls of a tool, limited in time, count and arguments. It can be seen and
// taken back at any time, and is used up in the executor.
type Grant struct {
	ID           string        `json:"id"`
	Version      uint64        `json:"version"`
	State        GrantState    `json:"state"`
	Agent        string        `json:"agent"`
	Conversation string        `json:"conversation,omitempty"` // empty: all of the agent's
	Tool         string        `json:"tool"`
	ToolHash     string        `json:"tool_hash"` // of the definition that it was given for
	Bounds       []Bound       `json:"bounds,omitempty"`
	Request      string        `json:"request,omitempty"`    // the request on whose card it was given
	OfferedTo    string        `json:"offered_to,omitempty"` // the role whose people may take up an offer
	Streak       int           `json:"streak,omitempty"`     // for an offer: how many calls were approved as they were
	By           PersonID      `json:"by,omitempty"`         // who granted it
	Name         string        `json:"name,omitempty"`
	Role         string        `json:"role,omitempty"` // the role that gave the authority
	At           time.Time     `json:"at"`
	Until        time.Time     `json:"until"`
	Within       time.Duration `json:"within"` // how long it holds once it is taken up
	Uses         int           `json:"uses"`
	Left         int           `json:"left"`
	ClosedBy     PersonID      `json:"closed_by,omitempty"` // who revoked or declined it
	ClosedName   string        `json:"closed_name,omitempty"`
	ClosedAt     time.Time     `json:"closed_at,omitzero"`
}

// GrantState is where a grant stands.
type GrantState string

// The states of a grant.
const (
	GrantOffered  GrantState = "offered" // proposed by the bot; nobody has taken it up
	GrantLive     GrantState = "live"
	GrantUsed     GrantState = "used_up"
	GrantExpired  GrantState = "expired"
	GrantRevoked  GrantState = "revoked"
	GrantDeclined GrantState = "declined"
)

// Open reports whether the grant can still come to use.
func (s GrantState) Open() bool { return s == GrantOffered || s == GrantLive }

// Bound is what a grant asks of one argument: a greatest number, or a value.
type Bound struct {
	Arg    string          `json:"arg"`
	AtMost json.RawMessage `json:"at_most,omitempty"` // a number; the argument is between 0 and it
	Equal  json.RawMessage `json:"equal,omitempty"`
}

// ErrGrant says that a grant can't be used or changed as it is.
var ErrGrant = errors.New("the grant is not in force")

// Admits says why a call may not run under the grant, or "". It looks at the policy as it is now: a grant reaches as far as its
// giver's role does, and stands for one person at one stage, never for more.
func (g Grant) Admits(in Deciding, c Call, toolHash string, args json.RawMessage, plan Plan) string {
	role, ok := in.Policy.Role(g.Role)
	t, _ := in.Policy.Tool(c.Tool, c.Facts.Agent)
	switch {
	case g.State != GrantLive || g.Left < 1 || !in.Now.Before(g.Until):
		return "it is over"
	case g.Tool != c.Tool || g.Agent != c.Facts.Agent || g.Conversation != "" && g.Conversation != c.Facts.Conversation.ID:
		return "it is for other calls"
	case g.ToolHash != toolHash:
		return "the definition of the tool changed"
	case !t.Grants.Allowed():
		return "the policy allows no grants for this tool"
	case plan.Verdict != Ask || plan.Risk >= Critical:
		return "critical calls always ask"
	case len(plan.Stages) != 1 || plan.Stages[0].Quorum > 1:
		return "the call needs more than one person"
	case !ok || !role.Covers(c.Tool) || role.MaxRisk < plan.Risk:
		return "the role that granted it may not allow this call"
	case plan.Stages[0].Group != "" && !slices.Contains(plan.Stages[0].Roles(), g.Role):
		return "the stage is for a user group"
	case slices.Contains(plan.barred(), g.By):
		return "whoever granted it is among those who ask"
	}
	return g.within(t.Grants, args)
}

// within holds arguments against the bounds, which have to be those that the policy asks for now.
func (g Grant) within(terms GrantTerms, args json.RawMessage) string {
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(args, &values); err != nil {
		return "the arguments can't be read"
	}
	for _, name := range terms.AtMost {
		if !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == name && b.AtMost != nil }) {
			return fmt.Sprintf("it does not bound %s", name)
		}
	}
	for _, name := range terms.Same {
		if !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == name && b.AtMost == nil }) {
			return fmt.Sprintf("it does not fix %s", name)
		}
	}
	for _, b := range g.Bounds {
		if !b.holds(values[b.Arg]) {
			return fmt.Sprintf("%s is beyond it", b.Arg)
		}
	}
	return ""
}

// holds reports whether an argument keeps within the bound. Numbers are compared exactly, as they are written. An argument that is
// not there is only the same as one that was not there.
func (b Bound) holds(value json.RawMessage) bool {
	if b.AtMost == nil {
		return len(value) == 0 && len(b.Equal) == 0 || len(value) > 0 && len(b.Equal) > 0 && EqualArgs(value, b.Equal)
	}
	most, ok := number(b.AtMost)
	got, ok2 := number(value)
	return ok && ok2 && got.Sign() >= 0 && got.Cmp(most) <= 0
}

// number reads a JSON number. One that is too long to be written by a person is none.
func number(raw json.RawMessage) (*big.Rat, bool) {
	const longest = 40
	if len(raw) == 0 || len(raw) > longest || raw[0] == '"' || slices.Contains(raw, 'e') || slices.Contains(raw, 'E') {
		return nil, false
	}
	return new(big.Rat).SetString(string(raw))
}

// Grants makes the grant that an approver gives on a request's card: within the terms of the policy, and within their authority.
func (r Request) Grants(in Deciding, m Move, g Grant) (Grant, *Denied) {
	if denied := r.grantable(in, m); denied != nil {
		return g, denied
	}
	role, denied := r.grantor(in, m.Who)
	if denied != nil {
		return g, denied
	}
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	g.State, g.Agent, g.Tool, g.ToolHash, g.Request = GrantLive, r.Agent, r.Tool, r.ToolHash, r.ID
	g.By, g.Name, g.Role, g.At = m.Who.ID, m.Who.Name, role.Name, in.Now
	g.Uses, g.Within = min(g.Uses, t.Grants.Uses), min(g.Within, t.Grants.Within)
	g.Left, g.Until = g.Uses, in.Now.Add(g.Within)
	if g.Uses < 1 || g.Within <= 0 {
		return g, &Denied{Code: DeniedNoGrants}
	}
	if why := g.within(t.Grants, r.Args); why != "" {
		return g, &Denied{Code: DeniedNoGrants, Detail: why}
	}
	return g, nil
}

// grantable says why nothing can be granted on the request, or nil.
func (r Request) grantable(in Deciding, m Move) *Denied {
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	switch {
	case r.State != Pending && r.State != Approved && r.State != Consumed:
		return r.Over()
	case m.Digest != r.Digest:
		return &Denied{Code: DeniedStale}
	case !t.Grants.Allowed() || r.Plan.Risk >= Critical || len(r.Plan.Stages) != 1 || r.Plan.Stages[0].Quorum > 1:
		return &Denied{Code: DeniedNoGrants}
	}
	return nil
}

// grantor finds the role by which a person may grant: that of their approval, as far as they still hold it, or the one by which they may decide.
func (r Request) grantor(in Deciding, who Identity) (Role, *Denied) {
	if code := who.trouble(); code != "" {
		return Role{}, &Denied{Code: code}
	}
	role, denied := r.Authority(in.Policy, who)
	if denied != nil {
		return Role{}, denied
	}
	if role.MaxRisk < r.Plan.Risk {
		return Role{}, &Denied{Code: DeniedCeiling, Role: role.Title, Need: r.Plan.Risk}
	}
	return role, nil
}

// Grantable reports whether the policy lets something be granted on the request at all.
func (r Request) Grantable(in Deciding) bool { return r.grantable(in, Move{Digest: r.Digest}) == nil }

// Accept takes an offer up. Members of the role that it was made to can, if their role may allow the tool.
func (g Grant) Accept(in Deciding, who Identity) (Grant, *Denied) {
	if denied := g.mayTakeUp(in, who); denied != nil {
		return g, denied
	}
	g.State, g.By, g.Name, g.Role, g.At = GrantLive, who.ID, who.Name, g.OfferedTo, in.Now
	g.Left, g.Until = g.Uses, in.Now.Add(g.Within)
	return g, nil
}

// Decline ends an offer.
func (g Grant) Decline(in Deciding, who Identity) (Grant, *Denied) {
	if denied := g.mayTakeUp(in, who); denied != nil {
		return g, denied
	}
	return g.close(GrantDeclined, who.ID, who.Name, in.Now), nil
}

func (g Grant) mayTakeUp(in Deciding, who Identity) *Denied {
	if g.State != GrantOffered || !in.Now.Before(g.Until) {
		return &Denied{Code: DeniedResolved, By: g.ClosedBy, At: g.ClosedAt}
	}
	if code := who.trouble(); code != "" {
		return &Denied{Code: code}
	}
	role, ok := in.Policy.Role(g.OfferedTo)
	t, _ := in.Policy.Tool(g.Tool, g.Agent)
	switch {
	case !ok || !role.Holds(who):
		return &Denied{Code: DeniedNotMember, Role: role.Title}
	case !role.Covers(g.Tool):
		return &Denied{Code: DeniedTool, Role: role.Title}
	case role.MaxRisk < t.Risk:
		return &Denied{Code: DeniedCeiling, Role: role.Title, Need: t.Risk}
	case !t.Grants.Allowed():
		return &Denied{Code: DeniedNoGrants}
	}
	return nil
}

// Use counts one run.
func (g Grant) Use(now time.Time) (Grant, error) {
	if g.State != GrantLive || g.Left < 1 || !now.Before(g.Until) {
		return g, ErrGrant
	}
	if g.Left--; g.Left == 0 {
		return g.close(GrantUsed, "", "", now), nil
	}
	return g, nil
}

// Revoke takes a grant back. Whoever gave it can, and whoever may allow the tool in the same role.
func (g Grant) Revoke(in Deciding, who Identity) (Grant, *Denied) {
	if g.State != GrantLive {
		return g, &Denied{Code: DeniedResolved, By: g.ClosedBy, At: g.ClosedAt}
	}
	if code := who.trouble(); code != "" {
		return g, &Denied{Code: code}
	}
	role, ok := in.Policy.Role(g.Role)
	if who.ID != g.By && (!ok || !role.Holds(who)) {
		return g, &Denied{Code: DeniedNotMember, Role: role.Title}
	}
	return g.close(GrantRevoked, who.ID, who.Name, in.Now), nil
}

// Lapse ends a grant or an offer whose time is over. It reports false while it is not.
func (g Grant) Lapse(now time.Time) (Grant, bool) {
	if !g.State.Open() || now.Before(g.Until) {
		return g, false
	}
	return g.close(GrantExpired, "", "", now), true
}

func (g Grant) close(s GrantState, who PersonID, name string, now time.Time) Grant {
	g.State, g.ClosedBy, g.ClosedName, g.ClosedAt = s, who, name, now
	return g
}
