package approvers

import (
	"slices"
	"time"
)

// Trust counts an agent's consecutive calls to one tool that were similar, were approved unchanged, and succeeded.
// After enough such calls the bot proposes a grant. The zero Trust counts no calls.
type Trust struct {
	Row      int        `json:"row"`
	ToolHash string     `json:"tool_hash,omitempty"`
	Terms    GrantTerms `json:"terms"`
	Args     []string   `json:"args,omitempty"`
	Bounds   []Bound    `json:"bounds,omitempty"` // the fixed values of the counted calls, and their greatest numbers
	Risk     Risk       `json:"risk,omitempty"`   // the highest risk of the counted calls
	Approved []Signer   `json:"approved,omitempty"`
	At       time.Time  `json:"at,omitzero"` // when the last of these calls succeeded; zero: an earlier program counted it
}

// OfferHolds is the time within which an offer can be accepted.
const OfferHolds = 24 * time.Hour

// maxSigners limits how many people an offer names.
const maxSigners = 20

// Grow counts an approved and successful call. When the count reaches the policy's number, Grow resets the count, and
// returns the grant to offer if a role may accept it. The count goes back to zero if the policy proposes no grants for
// the tool. The count also goes back to zero if somebody edited or rejected the call, or if an operator approved the
// call. If no grant can cover a call's plan or arguments, the count stays unchanged. A call that differs from the
// counted calls starts a new count.
func (t Trust) Grow(in DecisionContext, r Request) (Trust, Grant, bool) {
	p, known := in.Policy.Tool(r.Tool, r.Agent)
	values, ok := members(r.Args)
	switch {
	case !known || !p.Trusts():
		return Trust{}, Grant{}, false
	case !ok || !r.Plan.grantable():
		return t, Grant{}, false
	case !r.asItWas():
		return Trust{}, Grant{}, false
	}
	bounds, why := p.Grants.bounds(values, nil)
	if why != "" || !p.Blind && HasSecrets(r.Args, Secrets(r.Secrets, p.Secrets)) { // the person who accepts an offer is not shown masked values
		return t, Grant{}, false
	}
	t = t.add(Trust{ToolHash: r.ToolHash, Terms: p.Grants, Args: names(values), Bounds: bounds, Risk: max(p.Risk, r.Plan.Risk)})
	t.Approved, t.At = addSigner(t.Approved, Signer{r.ClosedBy, r.ClosedName}), in.Now
	if t.Row < p.TrustAfter {
		return t, Grant{}, false
	}
	to, ok := t.offeredTo(in.Policy, r)
	if !ok {
		return Trust{}, Grant{}, false
	}
	return Trust{}, Grant{
		State: GrantOffered, Agent: r.Agent, Tool: r.Tool, ToolHash: t.ToolHash, Args: t.Args, Bounds: t.Bounds, OfferedTo: to, Row: t.Row,
		Approved: t.Approved, At: in.Now, Until: in.Now.Add(OfferHolds), Within: p.Grants.Within, Uses: p.Grants.Uses,
	}, true
}

// Trusts reports whether the policy proposes grants for the tool after enough consecutive approvals.
func (t ToolPolicy) Trusts() bool { return t.Grants.Allowed() && t.TrustAfter > 0 && t.Risk < Critical }

// asItWas reports whether the call was approved unchanged, by the people of its stages, and nobody rejected it.
func (r Request) asItWas() bool {
	return len(r.Edits) == 0 && !slices.ContainsFunc(r.Decisions, func(d Decision) bool { return d.Kind != Approve || d.BreakGlass })
}

// add counts one call. If the call differs from the counted calls, the call starts a new count.
func (t Trust) add(one Trust) Trust {
	if t.ToolHash != one.ToolHash || !t.Terms.equal(one.Terms) || !slices.Equal(t.Args, one.Args) || !sameFixed(t.Bounds, one.Bounds) {
		one.Row = 1
		return one
	}
	t.Row++
	t.Risk = max(t.Risk, one.Risk)
	t.Bounds = slices.Clone(t.Bounds)
	for i, b := range one.Bounds {
		if b.AtMost != nil && !t.Bounds[i].holds(b.AtMost) {
			t.Bounds[i] = b
		}
	}
	return t
}

func (g GrantTerms) equal(o GrantTerms) bool {
	return g.Uses == o.Uses && g.Within == o.Within && slices.Equal(g.AtMost, o.AtMost) && slices.Equal(g.Same, o.Same)
}

func addSigner(signers []Signer, s Signer) []Signer {
	if len(signers) >= maxSigners || slices.ContainsFunc(signers, func(o Signer) bool { return o.ID == s.ID }) {
		return signers
	}
	return append(slices.Clip(signers), s)
}

// offeredTo returns the role that may accept an offer. This is the nearest lead of the role of the last approval whose
// authority covers the counted calls. If there is no such lead, it is the role of the last approval. If the authority
// of that role does not cover the counted calls either, offeredTo returns false.
func (t Trust) offeredTo(p *Policy, r Request) (string, bool) {
	able := slices.DeleteFunc(r.Plan.reach(p, r.Tool), func(name string) bool {
		role, ok := p.Role(name)
		return !ok || !role.Covers(r.Tool) || role.MaxRisk < t.Risk
	})
	seen := []string{r.ClosedRole}
	for role, ok := p.Role(r.ClosedRole); ok && role.Lead != "" && !slices.Contains(seen, role.Lead); role, ok = p.Role(role.Lead) {
		if slices.Contains(able, role.Lead) {
			return role.Lead, true
		}
		seen = append(seen, role.Lead)
	}
	return r.ClosedRole, slices.Contains(able, r.ClosedRole)
}
