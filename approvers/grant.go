package approvers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Grant is an approver's permission for later calls to a tool, limited in time, count and arguments. People can see
// and revoke a grant at any time. Each run under a grant uses one of the grant's calls.
type Grant struct {
	ID           string        `json:"id"`
	Version      uint64        `json:"version"`
	State        GrantState    `json:"state"`
	Agent        string        `json:"agent"`
	Conversation string        `json:"conversation,omitempty"` // for a caller's calls, Caller.Scope; empty: all conversations of the agent
	Tool         string        `json:"tool"`
	ToolHash     string        `json:"tool_hash"`         // hash of the tool definition for which it was given
	Args         []string      `json:"args"`              // the exact set of argument names that a call must have
	Secrets      []string      `json:"secrets,omitempty"` // arguments whose values are masked when people see the grant
	Bounds       []Bound       `json:"bounds,omitempty"`
	Request      string        `json:"request,omitempty"`    // the request on whose card it was given
	OfferedTo    string        `json:"offered_to,omitempty"` // the role whose people may accept an offer
	Row          int           `json:"row,omitempty"`        // for an offer: the number of consecutive calls that were approved unchanged
	Approved     []Signer      `json:"approved,omitempty"`   // for an offer: the people who approved these calls
	By           PersonID      `json:"by,omitempty"`         // the person who gave the grant; for an offer, empty
	Name         string        `json:"name,omitempty"`
	Role         string        `json:"role,omitempty"` // the role that gave the authority
	At           time.Time     `json:"at"`
	Until        time.Time     `json:"until"`
	Within       time.Duration `json:"within"` // how long the grant is valid after it was given, or after the offer was accepted
	Uses         int           `json:"uses"`
	Left         int           `json:"left"`
	ClosedBy     PersonID      `json:"closed_by,omitempty"` // the person who revoked or declined the grant, or who replaced it by a newer grant
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

// Open reports whether the grant can be used or accepted.
func (s GrantState) Open() bool { return s == GrantOffered || s == GrantLive }

// ErrGrant means that the grant is not in force.
var ErrGrant = errors.New("the grant is not in force")

// over reports whether the grant is not in force at the given time. If the clock was set back, this time can be before
// the time at which the grant was given. The grant is then not in force.
func (g Grant) over(now time.Time) bool {
	return g.State != GrantLive || g.Left < 1 || now.Before(g.At) || !now.Before(g.Until)
}

// Use counts one run under the grant.
func (g Grant) Use(now time.Time) (Grant, error) {
	if g.over(now) {
		return g, ErrGrant
	}
	if g.Left--; g.Left == 0 {
		return g.close(GrantUsed, "", "", now), nil
	}
	return g, nil
}

// Revoke ends a grant. The person who gave the grant can revoke it. The current members of the role that gave the
// authority can also revoke the grant.
func (g Grant) Revoke(in DecisionContext, who Identity) (Grant, *Denied) {
	if g.State != GrantLive {
		return g, g.ended()
	}
	if code := who.trouble(); code != "" {
		return g, &Denied{Code: code}
	}
	if role, ok := in.Policy.Role(g.Role); who.ID != g.By && (!ok || !role.Holds(who)) {
		return g, role.denyMember(who, &Denied{Code: DeniedNotMember, Role: g.Role})
	}
	return g.close(GrantRevoked, who.ID, who.Name, in.Now), nil
}

// Replace ends a grant because a newer grant covers the same calls. The remaining uses of the older grant are lost. So
// the remaining uses of both grants together never exceed the policy's limit for one grant.
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

// Lapse ends a grant or an offer whose time is over. If the time is not over, Lapse returns false.
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

// Admits returns the reason why a call may not run under the grant. If the call may run, Admits returns "". Admits
// applies the current policy. A grant replaces one person's approval, so it covers only calls that need one stage with
// one approval. The role of the grant's author must be allowed to approve the call. Admits does not check whether the
// author is still a member of this role. Backs makes this check, with the author's current data from Slack.
func (g Grant) Admits(in DecisionContext, c Call, toolHash string, args json.RawMessage, plan Plan) string {
	if why := g.Stalled(in, toolHash); why != "" {
		return why
	}
	t, _ := in.Policy.Tool(g.Tool, g.Agent)
	role, _ := in.Policy.Role(g.Role)
	switch {
	case g.Tool != c.Tool || g.Agent != c.Facts.Agent || g.Conversation != "" && g.Conversation != c.Facts.Conversation.ID,
		g.Conversation == "" && c.Facts.Caller != nil:
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
	case g.blindly(t) != "":
		return fmt.Sprintf("%s is masked, and it may have a value that nobody was shown", g.blindly(t))
	}
	return g.within(t.Grants, args)
}

// Stalled returns the reason why no call can run under the grant at present, or "".
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

// exceeds describes how the grant exceeds the policy's current terms, or returns "". The current terms apply even if
// the policy had wider terms when the grant was given.
func (g Grant) exceeds(terms GrantTerms, now time.Time) string {
	switch {
	case g.Uses-g.Left >= terms.Uses:
		return "it was used as often as the policy allows now"
	case !now.Before(g.At.Add(terms.Within)):
		return "it has held as long as the policy allows now"
	}
	return g.bounded(terms)
}

// Backs returns the reason why the grant's author has no authority for a call at present, or "". giver is Slack's
// current description of this person.
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

// grantable reports whether a grant can replace the approval in the plan. The plan must need only one person's
// approval, and the policy must name the tool. The call must not be critical.
func (plan Plan) grantable() bool {
	return plan.Known && plan.Risk < Critical && len(plan.Stages) == 1 && plan.Stages[0].Quorum == 1
}

// reach returns the roles whose people may decide the plan's only stage: the stage's own roles, and the leads that
// escalation would add.
func (plan Plan) reach(p *Policy, tool string) []string {
	r := Request{Tool: tool, Plan: plan}
	for lead, ok := r.nextLead(p); ok; lead, ok = r.nextLead(p) {
		r.Joined = append(r.Joined, lead.Name)
	}
	return r.Roles()
}

// Allowance is the permission that an approver adds to an approval. Allowance says how many more similar calls may
// run, for how long, and up to which numbers.
type Allowance struct {
	Uses   int
	Within time.Duration
	AtMost map[string]json.RawMessage // by argument name: the largest number; for an argument that is not in the map, the number in the call
}

// Allow returns the grant that an approver gives on a pending request's card. The grant applies to the same tool, agent
// and conversation, within the policy's terms and the approver's authority. Allow does not approve the request;
// Approve does that.
func (r Request) Allow(in DecisionContext, m Action, a Allowance) (Grant, *Denied) {
	role, denied := decider(r, in, m)
	if denied != nil {
		return Grant{}, denied
	}
	if r.MustReveal(in.Policy, m.Who.ID) {
		return Grant{}, &Denied{Code: DeniedMasked}
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
	if why := beyond(in, r, role, values, bounds); why != "" {
		return Grant{}, &Denied{Code: DeniedNoGrants, Detail: why}
	}
	return Grant{
		State: GrantLive, Agent: r.Agent, Conversation: grantScope(r), Tool: r.Tool, ToolHash: r.ToolHash, Args: names(values), Bounds: bounds, Secrets: r.Secrets,
		Request: r.ID, By: m.Who.ID, Name: m.Who.Name, Role: role.Name, At: in.Now, Until: in.Now.Add(a.Within), Within: a.Within, Uses: a.Uses, Left: a.Uses,
	}, nil
}

// beyond replaces the numbers in the request's call by the largest numbers of the bounds, and returns the reason why
// the role may not approve this call, or "". Admits would refuse such calls, so a grant up to these numbers would
// promise too much.
func beyond(in DecisionContext, r Request, role Role, values map[string]json.RawMessage, bounds []Bound) string {
	largest := maps.Clone(values)
	for _, b := range bounds {
		if b.AtMost != nil {
			largest[b.Arg] = b.AtMost
		}
	}
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false) // the arguments must not grow beyond the limit of StrictArgs
	if err := e.Encode(largest); err != nil {
		return "the arguments can't be read"
	}
	args, err := StrictArgs(bytes.TrimSpace(raw.Bytes()), false)
	if err != nil {
		return "the arguments can't be read"
	}
	plan := in.Policy.Plan(r.AsCall(args))
	switch {
	case plan.Verdict == Auto:
		return ""
	case plan.Verdict == Refuse:
		return "the policy refuses a call with the largest value"
	case role.MaxRisk < plan.Risk:
		return fmt.Sprintf("a call with the largest value is %s risk, above what %s may approve", plan.Risk, role.Title)
	case !plan.grantable() || !slices.Contains(plan.reach(in.Policy, r.Tool), role.Name):
		return "by the policy, a call with the largest value needs other people, or its own approval"
	}
	return ""
}

// grantScope returns the value of Grant.Conversation for a grant on the request's card.
func grantScope(r Request) string {
	if r.Facts.Caller != nil {
		return r.Facts.Caller.Scope()
	}
	return r.Conversation
}

// Grantable reports whether an approver of the request can give a grant for similar calls. Calls that need a typed
// value are not grantable. These are critical calls, and calls above a cap. Calls with masked arguments are grantable
// only if the grant fixes these arguments to the revealed values.
func (r Request) Grantable(in DecisionContext) bool {
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	if r.State != Pending || r.Conversation == "" || !t.Grants.Allowed() || t.Risk >= Critical || !r.Plan.grantable() || r.WantsTyping() {
		return false
	}
	values, ok := members(r.Args)
	bounds, why := t.Grants.bounds(values, nil)
	return ok && why == "" && Grant{Args: names(values), Bounds: bounds, Secrets: r.Secrets}.blindly(t) == ""
}

// Accept accepts an offer. Only people of the role OfferedTo can accept the offer. This role must be allowed to
// approve the tool's calls at present, and the policy's current terms must permit the offer.
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
	case g.masked(t):
		return g, &Denied{Code: DeniedNoGrants, Detail: "it would allow calls with masked values that you have not seen"}
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

// answerable returns why a person can't answer an offer, or nil. The offer must be open at the time of the click.
func (g Grant) answerable(in DecisionContext, m Action) *Denied {
	if g.State != GrantOffered || !m.At.Before(g.Until) {
		return g.ended()
	}
	if code := m.Who.trouble(); code != "" {
		return &Denied{Code: code}
	}
	if role, ok := in.Policy.Role(g.OfferedTo); !ok || !role.Holds(m.Who) {
		return role.denyMember(m.Who, &Denied{Code: DeniedNotMember, Role: g.OfferedTo})
	}
	return nil
}

// Bound limits one argument of the calls under a grant, to a largest number or to an exact value.
type Bound struct {
	Arg    string          `json:"arg"`
	AtMost json.RawMessage `json:"at_most,omitempty"` // a number; the argument must be between 0 and this number
	Equal  json.RawMessage `json:"equal,omitempty"`   // the exact value of the argument; if AtMost and Equal are both empty, the call must not have the argument
}

// holds reports whether an argument satisfies the bound. holds compares numbers exactly, as they are written. A
// missing argument satisfies a bound only if AtMost and Equal are empty.
func (b Bound) holds(value json.RawMessage) bool {
	if b.AtMost == nil {
		return len(value) == 0 && len(b.Equal) == 0 || len(value) > 0 && len(b.Equal) > 0 && EqualArgs(value, b.Equal)
	}
	most, ok := number(b.AtMost)
	got, ok2 := number(value)
	return ok && ok2 && got.Sign() >= 0 && got.Cmp(most) <= 0
}

// number parses a JSON number in the form that people write: without an exponent, and short enough to read.
func number(raw json.RawMessage) (*big.Rat, bool) {
	const longest = 40
	if len(raw) == 0 || len(raw) > longest || !json.Valid(raw) || strings.Trim(string(raw), "-0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(string(raw))
}

// members returns the arguments of a call by name.
func members(args json.RawMessage) (map[string]json.RawMessage, bool) {
	if _, err := StrictArgs(args, false); err != nil {
		return nil, false
	}
	values := map[string]json.RawMessage{}
	return values, json.Unmarshal(args, &values) == nil
}

// names returns the sorted names of arguments.
func names(values map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(values)) }

// bounds derives the bounds for later calls from the values in this call, and from the policy's terms. Arguments in
// Same keep their exact values. Arguments in AtMost get a largest number, by default the number in this call. The
// second result is the reason why the call can't have such bounds, or "".
func (g GrantTerms) bounds(values, atMost map[string]json.RawMessage) ([]Bound, string) {
	var out []Bound
	for _, arg := range g.AtMost {
		b := Bound{Arg: arg, AtMost: values[arg]}
		if given, ok := atMost[arg]; ok {
			b.AtMost = given
		}
		if _, ok := number(b.AtMost); !ok || !b.holds(values[arg]) {
			return nil, fmt.Sprintf("%s must be a number between 0 and the limit, in this call too", arg)
		}
		out = append(out, b)
	}
	for _, arg := range g.Same {
		out = append(out, Bound{Arg: arg, Equal: values[arg]})
	}
	return out, ""
}

// within returns the reason why the grant does not cover the arguments of a call, or "". The grant must have all bounds
// that the policy requires now.
func (g Grant) within(terms GrantTerms, args json.RawMessage) string {
	values, ok := members(args)
	if !ok {
		return "the arguments can't be read"
	}
	if why := g.bounded(terms); why != "" {
		return why
	}
	if !slices.Equal(names(values), g.Args) {
		return "it is for calls with other arguments"
	}
	for _, b := range g.Bounds {
		if !b.holds(values[b.Arg]) {
			return fmt.Sprintf("%s is beyond it", b.Arg)
		}
	}
	return ""
}

// bounded describes a bound that the policy requires now and that the grant does not have. If the grant has all
// required bounds, bounded returns "".
func (g Grant) bounded(terms GrantTerms) string {
	for _, name := range terms.AtMost {
		if !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == name && b.AtMost != nil }) {
			return fmt.Sprintf("it does not bound %s, as the policy asks now", name)
		}
	}
	for _, name := range terms.Same {
		if !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == name && b.AtMost == nil }) {
			return fmt.Sprintf("it does not fix %s, as the policy asks now", name)
		}
	}
	return ""
}

// Free returns the arguments that the grant does not bound. Such arguments may have any value.
func (g Grant) Free() []string {
	return slices.DeleteFunc(slices.Clone(g.Args), func(arg string) bool {
		return slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == arg })
	})
}
