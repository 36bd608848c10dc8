package approvers

import (
	"errors"
	"slices"
	"time"
)

// Grant is an approver's permission for later calls of a tool, limited in time, count and arguments. People can see and
// revoke it at any time. Each run under it uses one of its calls.
type Grant struct {
	ID           string        `json:"id"`
	Version      uint64        `json:"version"`
	State        GrantState    `json:"state"`
	Agent        string        `json:"agent"`
	Conversation string        `json:"conversation,omitempty"` // empty: all conversations of the agent
	Tool         string        `json:"tool"`
	ToolHash     string        `json:"tool_hash"`         // of the tool definition that it was given for
	Args         []string      `json:"args"`              // the exact set of argument names that a call must have
	Secrets      []string      `json:"secrets,omitempty"` // arguments that are masked when the grant is shown
	Bounds       []Bound       `json:"bounds,omitempty"`
	Request      string        `json:"request,omitempty"`    // the request on whose card it was given
	OfferedTo    string        `json:"offered_to,omitempty"` // the role whose people may accept an offer
	Row          int           `json:"row,omitempty"`        // for an offer: the number of consecutive calls that were approved unchanged
	Approved     []Signer      `json:"approved,omitempty"`   // for an offer: who approved them
	By           PersonID      `json:"by,omitempty"`         // who granted it
	Name         string        `json:"name,omitempty"`
	Role         string        `json:"role,omitempty"` // the role that gave the authority
	At           time.Time     `json:"at"`
	Until        time.Time     `json:"until"`
	Within       time.Duration `json:"within"` // how long it is valid once it is accepted
	Uses         int           `json:"uses"`
	Left         int           `json:"left"`
	ClosedBy     PersonID      `json:"closed_by,omitempty"` // who revoked, declined or replaced it
	ClosedName   string        `json:"closed_name,omitempty"`
	ClosedAt     time.Time     `json:"closed_at,omitzero"`
}

// Signer is a person who approved.
type Signer struct {
	ID   PersonID `json:"id"`
	Name string   `json:"name"`
}

// GrantState is the state of a grant. See docs/states.md.
type GrantState string

// The states of a grant.
const (
	GrantOffered  GrantState = "offered" // proposed by the bot, not yet accepted
	GrantLive     GrantState = "live"
	GrantUsed     GrantState = "used_up"
	GrantExpired  GrantState = "expired"
	GrantRevoked  GrantState = "revoked"
	GrantReplaced GrantState = "replaced" // replaced by a newer grant for the same calls
	GrantDeclined GrantState = "declined"
)

// Open reports whether the grant can still be used or accepted.
func (s GrantState) Open() bool { return s == GrantOffered || s == GrantLive }

// ErrGrant means that the grant is not in force.
var ErrGrant = errors.New("the grant is not in force")

// over reports whether the grant is not in force at a time. It is also not in force before it was given: the clock may
// have been set back.
func (g Grant) over(now time.Time) bool {
	return g.State != GrantLive || g.Left < 1 || now.Before(g.At) || !now.Before(g.Until)
}

// Use counts one run.
func (g Grant) Use(now time.Time) (Grant, error) {
	if g.over(now) {
		return g, ErrGrant
	}
	if g.Left--; g.Left == 0 {
		return g.close(GrantUsed, "", "", now), nil
	}
	return g, nil
}

// Revoke ends a grant. Its giver and the people of the same role can revoke it.
func (g Grant) Revoke(in DecisionContext, who Identity) (Grant, *Denied) {
	if g.State != GrantLive {
		return g, g.ended()
	}
	if code := who.trouble(); code != "" {
		return g, &Denied{Code: code}
	}
	if role, ok := in.Policy.Role(g.Role); who.ID != g.By && (!ok || !role.Holds(who)) {
		return g, &Denied{Code: DeniedNotMember, Role: g.Role}
	}
	return g.close(GrantRevoked, who.ID, who.Name, in.Now), nil
}

// Replace ends a grant for which a newer one for the same calls exists. The remaining uses of the two don't add up, so
// the policy's limit for one grant holds.
func (g Grant) Replace(by Grant) (Grant, bool) {
	if g.State != GrantLive || g.ID == by.ID || g.Agent != by.Agent || g.Conversation != by.Conversation || g.Tool != by.Tool || !sameFixed(g.Bounds, by.Bounds) {
		return g, false
	}
	return g.close(GrantReplaced, by.By, by.Name, by.At), true
}

// sameFixed reports whether two grants fix the same arguments to the same values.
func sameFixed(a, b []Bound) bool {
	fixed := func(bounds []Bound) []Bound {
		return slices.DeleteFunc(slices.Clone(bounds), func(b Bound) bool { return b.AtMost != nil })
	}
	return slices.EqualFunc(fixed(a), fixed(b), func(x, y Bound) bool { return x.Arg == y.Arg && x.holds(y.Equal) })
}

// Lapse ends a grant or an offer whose time is over. It returns false if the time is not over.
func (g Grant) Lapse(now time.Time) (Grant, bool) {
	if !g.State.Open() || now.Before(g.Until) {
		return g, false
	}
	return g.close(GrantExpired, "", "", now), true
}

// ended returns the denial for an action after the grant's end.
func (g Grant) ended() *Denied { return &Denied{Code: DeniedResolved, By: g.ClosedBy, At: g.ClosedAt} }

func (g Grant) close(s GrantState, who PersonID, name string, now time.Time) Grant {
	g.State, g.ClosedBy, g.ClosedName, g.ClosedAt = s, who, name, now
	return g
}
