package approvers

import "time"

// Policy is the operator's policy file as plain values, checked and compiled by package config.
// It is never changed after it was made; a reload makes a new one.
type Policy struct {
	Hash      string // SHA-256 of the file's bytes, in hex: names the version in plans and in the audit
	Defaults  Defaults
	Tools     []ToolPolicy // in file order
	Approvers []Role       // in file order, which breaks routing ties
	Agents    []Agent      // in file order
}

// Defaults apply wherever a tool says nothing else.
type Defaults struct {
	ExpiresAfter  time.Duration // a request that nobody decided is rejected after this
	EscalateAfter time.Duration // the lead is told after this
	RunWithin     time.Duration // an approved call that did not start within this expires
	UnknownTool   ToolPolicy    // what governs a tool that the policy does not name
}

// ToolPolicy is what the operator says of one tool.
type ToolPolicy struct {
	Name          string
	Risk          Risk
	Confirm       bool    // wait for a countersignature
	WithPreview   bool    // show a preview even where the policy gives no text for it
	Preview       Preview // zero: none
	MaxAuto       Limit   // automatic runs allowed per conversation; beyond it the call waits. Zero: no limit
	Rules         []Rule
	Stages        []Stage       // replaces routing; empty: route to the lowest sufficient ceiling
	ExpiresAfter  time.Duration // zero: the default's
	EscalateAfter time.Duration
	RunWithin     time.Duration
	SelfApproval  bool // a requester may decide too; off unless the operator names it
}

// Preview makes a readable statement of what a call would do. Text is the policy's own template.
type Preview struct {
	Text   string
	Render func(args map[string]any) (string, error)
}

// Limit is a count in a sliding window of time: 5/h.
type Limit struct {
	Count int
	Per   time.Duration
}

// Rule adds to a tool policy for the calls whose facts match.
type Rule struct {
	When    Condition
	Risk    Risk // zero: unchanged
	Confirm bool
	Stages  []Stage
}

// Condition is a compiled expression over the facts of a call. An Eval that fails counts as matched.
type Condition struct {
	Text string
	Eval func(Facts) (bool, error)
}

// Facts are all that a condition can read.
type Facts struct {
	Args         map[string]any
	Requester    string // user id of the person who asked last
	Conversation ConversationFacts
	Agent        string
	Now          time.Time
}

// ConversationFacts are a conversation's facts for conditions.
type ConversationFacts struct {
	ID      string
	Channel string // channel id
	DM      bool
}

// Stage is one level of approval: who, and how many distinct people of theirs.
type Stage struct {
	Approver string `json:"approver"` // the role's name
	Quorum   int    `json:"quorum"`   // at least 1
}

// Role is an approver: a named group of people with a ceiling and a list of tools.
type Role struct {
	Name       string
	Title      string
	Members    []Member
	MaxRisk    Risk
	CanApprove []string // tool names, or "*"
	Cards      string   // "#channel", a channel id, or "dm" (each member by direct message)
	Lead       string   // the role that escalation goes to; empty: nobody
}

// CardsDM is the value of Role.Cards that sends each member the card by direct message.
const CardsDM = "dm"

// MemberKind says how a member is named in the policy.
type MemberKind string

// The three ways to name a member.
const (
	MemberUser  MemberKind = "user"  // a Slack user id
	MemberGroup MemberKind = "group" // a Slack user group, by handle without the @ or by id
	MemberEmail MemberKind = "email" // an e-mail address, compared in lower case
)

// Member is one entry in a role's member list.
type Member struct {
	Kind  MemberKind
	Value string
}

// Agent is one agent's settings.
type Agent struct {
	Name        string
	Prompt      string
	Model       string   // empty: the environment's
	Channels    []string // "#name" or channel ids where it may be asked; "*" for all; empty: direct messages only
	NoDM        bool     // direct messages are off
	AllowGuests bool
	Tools       []string // what the model is offered: names, or "*"
	Overrides   map[string]Override
	MaxSteps    int // model calls in a turn
}

// Override replaces parts of a tool's policy for one agent.
type Override struct {
	Risk    Risk
	Confirm *bool
	MaxAuto *Limit
}

// Tool finds the tool's policy for an agent. ok is false for a tool that the policy does not name:
// then the policy of unknown tools is returned.
func (p *Policy) Tool(name, agent string) (t ToolPolicy, ok bool) {
	t = p.Defaults.UnknownTool
	t.Name = name
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			t, ok = p.Tools[i], true
			break
		}
	}
	if a, found := p.Agent(agent); found {
		if o, has := a.Overrides[name]; has {
			t = o.apply(t)
		}
	}
	return t.withDefaults(p.Defaults), ok
}

func (o Override) apply(t ToolPolicy) ToolPolicy {
	if o.Risk != 0 {
		t.Risk = o.Risk
	}
	if o.Confirm != nil {
		t.Confirm = *o.Confirm
	}
	if o.MaxAuto != nil {
		t.MaxAuto = *o.MaxAuto
	}
	return t
}

// ReadsNumbers reports whether a rule or a preview computes with the arguments, in float64: then numbers that float64 would change
// must not get that far.
func (t ToolPolicy) ReadsNumbers() bool { return len(t.Rules) > 0 || t.Preview.Render != nil }

func (t ToolPolicy) withDefaults(d Defaults) ToolPolicy {
	if t.ExpiresAfter == 0 {
		t.ExpiresAfter = d.ExpiresAfter
	}
	if t.EscalateAfter == 0 {
		t.EscalateAfter = d.EscalateAfter
	}
	if t.RunWithin == 0 {
		t.RunWithin = d.RunWithin
	}
	return t
}

// Role finds an approver role by name.
func (p *Policy) Role(name string) (Role, bool) {
	for _, r := range p.Approvers {
		if r.Name == name {
			return r, true
		}
	}
	return Role{}, false
}

// Agent finds an agent by name.
func (p *Policy) Agent(name string) (Agent, bool) {
	for _, a := range p.Agents {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// Covers reports whether the role's tool list has the tool.
func (r Role) Covers(tool string) bool {
	for _, t := range r.CanApprove {
		if t == "*" || t == tool {
			return true
		}
	}
	return false
}
