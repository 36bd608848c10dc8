package approvers

import (
	"slices"
	"strings"
	"time"
)

// Policy is the operator's policy file as plain values, checked and compiled by package config.
// It is never changed after it was made; a reload makes a new one.
type Policy struct {
	Hash        string // SHA-256 of the file's bytes, in hex, and of what the tools add to it if they do: names the version in plans and in the audit
	Mode        Mode   // Observe: for the whole bot
	Defaults    Defaults
	Tools       []ToolPolicy // in file order
	Approvers   []Role       // in file order, which breaks routing ties
	Agents      []Agent      // in file order
	NeverLoosen []string     // tools whose policy no agent's override makes looser, or "*"
	// EmailDomains are in lower case: somebody whom the policy names by an e-mail address counts as that member if Slack has it confirmed, and it is
	// at one of these domains. None: nobody does.
	EmailDomains []string
	// SharedChannels are those in which cards may stand although people of other organisations are in them, as #name or by id.
	SharedChannels []string
	Caps           Caps
	Budgets        Budgets
	PausedBy       []string // roles whose people may pause everything and let it go on; the operator may in any case
	Retention      Retention
	Audit          AuditPost
	index          *index  // see Indexed
	overlay        Overlay // see With
}

// Mode says whether calls with effects run at all.
type Mode string

// The modes. In observe mode nothing with effects runs: people see who would have been asked.
const (
	Enforce Mode = ""
	Observe Mode = "observe"
)

// CountsEmail reports whether an address of one of the policy's members counts as a name for whoever has it.
func (p *Policy) CountsEmail(address string) bool {
	_, domain, ok := strings.Cut(strings.ToLower(address), "@")
	return ok && slices.Contains(p.EmailDomains, domain)
}

// Names reports whether the policy names a channel, as #name or by id: for cards, or as one in which an agent answers.
func (p *Policy) Names(channel string) bool {
	return p.Audit.Channel == channel || slices.ContainsFunc(p.Approvers, func(r Role) bool { return r.Cards == channel }) ||
		slices.ContainsFunc(p.Agents, func(a Agent) bool { return slices.Contains(a.Channels, channel) })
}

// Caps bound how much is put before people. Zero: no cap.
type Caps struct {
	Requester Limit // requests that one person causes; beyond it each asks for a typed value
	Approver  int   // open cards at one place; what comes on top waits in line, and asks for a typed value
}

// Retention says how long things are kept after their last change. Zero: for ever.
type Retention struct {
	Conversations time.Duration // what people wrote, arguments, results and what was shown, the audit's payloads included
	Records       time.Duration // the audit's records; at least as long as Conversations
}

// AuditPost says where in Slack signed heads of the history are posted. No channel: nowhere.
type AuditPost struct {
	Channel string
	Every   time.Duration // at most one message in so long, and none while nothing new was sealed
}

// Budgets bound what one person may use up on a day (UTC). Zero: no bound.
type Budgets struct {
	Tokens int // of the model, in and out
	Calls  int // of tools
}

// Defaults apply wherever a tool says nothing else.
type Defaults struct {
	ExpiresAfter  time.Duration // a request that nobody decided is rejected after this
	EscalateAfter time.Duration // the lead is told after this
	RunWithin     time.Duration // an approved call that did not start within this expires
	RemindAfter   time.Duration // those who have not decided are reminded this often; zero: never
	Reminders     int           // at most so many times a stage
	Repeat        int           // how often the escalation chain is gone through again once it has ended
	OnExpiry      OnExpiry
	UnknownTool   ToolPolicy // what governs a tool that the policy does not name
	UnpinnedTools Unpinned   // what becomes of a tool that is not what the operator pinned
}

// ToolPolicy is what the operator says of one tool.
type ToolPolicy struct {
	Name          string
	Risk          Risk
	Confirm       bool    // wait for a countersignature
	WithPreview   bool    // show a preview even where the policy gives no text for it
	NoPreview     bool    // not even the one that the tool makes itself
	Preview       Preview // zero: none
	MaxAuto       Limit   // automatic runs allowed per conversation; beyond it the call waits. Zero: no limit
	Rules         []Rule
	Stages        []Stage       // replaces routing; empty: route to the lowest sufficient ceiling
	ExpiresAfter  time.Duration // zero: the default's
	EscalateAfter time.Duration
	RunWithin     time.Duration
	RemindAfter   time.Duration
	Reminders     int
	Repeat        int
	OnExpiry      OnExpiry
	SelfApproval  bool // a requester may decide too; off unless the operator names it
	BreakGlass    bool // the operator may approve at the command line, for the stages that remain; off unless named
	Mode          Mode
	Grants        GrantTerms // zero: no grants
	Secrets       []string   // arguments that are masked, beside those that the tool's schema marks
	TrustAfter    int        // propose a grant after so many calls that were approved as they were, in a row; zero: never
}

// OnExpiry says what happens to a stage that nobody decided in time.
type OnExpiry string

// The outcomes of silence. None of them approves.
const (
	ExpiryRejects   OnExpiry = "reject"
	ExpiryEscalates OnExpiry = "escalate" // the next lead is added and the stage gets its time again, until the chain ends: then it is rejected
)

// GrantTerms are what an approver may grant at most for a tool.
type GrantTerms struct {
	Uses   int           // calls
	Within time.Duration // how long
	AtMost []string      // arguments that a grant bounds from above; they are numbers
	Same   []string      // arguments that have to be as in the call that the grant was given on
}

// Allowed reports whether the policy allows grants at all.
func (g GrantTerms) Allowed() bool { return g.Uses > 0 && g.Within > 0 }

// Preview makes a readable statement of what a call would do. Text is the policy's own template; By is the tool that is asked beside it, or instead.
type Preview struct {
	Text   string
	Render func(args map[string]any) (string, error)
	By     Foreteller
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
	Approver      string        `json:"approver"`                 // the role's name. Empty in a policy that names only a group: the plan fills in the roles
	Or            []string      `json:"or,omitempty"`             // further roles whose people count
	Group         string        `json:"group,omitempty"`          // a user group: of the roles' people only those in it count
	Quorum        int           `json:"quorum"`                   // at least 1
	Rejects       int           `json:"rejects,omitempty"`        // so many rejections end the request; 0 is 1
	ExpiresAfter  time.Duration `json:"expires_after,omitempty"`  // zero: the tool's
	EscalateAfter time.Duration `json:"escalate_after,omitempty"` // zero: the tool's
}

// Roles are the roles whose people count at the stage.
func (s Stage) Roles() []string { return append([]string{s.Approver}, s.Or...) }

// Role is an approver: a named group of people with a ceiling and a list of tools.
type Role struct {
	Name       string
	Title      string
	Members    []Member
	MaxRisk    Risk
	CanApprove []string // tool names, or "*"
	Cards      string   // "#channel", a channel id, or "dm" (each member by direct message)
	Lead       string   // the role that escalation goes to; empty: nobody
	Hours      *Hours   // nil: always
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
	MaxSteps    int      // model calls in a turn
	Budgets     *Budgets // nil: the policy's
	Prompts     []Prompt // what people are offered to ask for, at most MaxPrompts
}

// Prompt is something that people can ask for with one click.
type Prompt struct {
	Title   string // what they read
	Message string // what they then say
}

// MaxPrompts is how many prompts Slack shows.
const MaxPrompts = 4

// Override replaces parts of a tool's policy for one agent.
type Override struct {
	Risk    Risk
	Confirm *bool
	MaxAuto *Limit
	Stages  []Stage
	Mode    *Mode
	Glass   *bool // breaks the glass for the tool, or not
}

// Tool finds the tool's policy for an agent. ok is false for a tool that the policy does not name: then the policy of unknown tools is returned, or
// what its source lets presume. What is distrusted is the strictest of all, whoever says otherwise.
func (p *Policy) Tool(name, agent string) (t ToolPolicy, ok bool) {
	t = p.Defaults.UnknownTool
	t.Name = name
	if known, found := p.tool(name); found {
		t, ok = known, true
	} else if builtIn, found := BuiltIn(name); found {
		t, ok = builtIn, true
	} else if x, presumed := p.Presumes(name); presumed {
		t = x.policy(t)
	}
	if a, found := p.Agent(agent); found {
		if o, has := a.Overrides[name]; has {
			t = o.apply(t, p.neverLoosens(name))
		}
	}
	if _, distrusted := p.Distrusts(name); distrusted {
		t = t.distrusted(p.Defaults.UnknownTool)
	}
	if p.Mode == Observe {
		t.Mode = Observe
	}
	return t.withDefaults(p.Defaults), ok
}

func (p *Policy) neverLoosens(tool string) bool {
	return slices.Contains(p.NeverLoosen, tool) || slices.Contains(p.NeverLoosen, "*")
}

// apply replaces parts of a tool's policy. What is protected only gets stricter.
func (o Override) apply(t ToolPolicy, protected bool) ToolPolicy {
	was := t
	if o.Risk != 0 {
		t.Risk = o.Risk
	}
	if o.Confirm != nil {
		t.Confirm = *o.Confirm
	}
	if o.MaxAuto != nil {
		t.MaxAuto = *o.MaxAuto
	}
	if len(o.Stages) > 0 {
		t.Stages = o.Stages
	}
	if o.Mode != nil {
		t.Mode = *o.Mode
	}
	if o.Glass != nil {
		t.BreakGlass = *o.Glass
	}
	if !protected {
		return t
	}
	t.Risk = max(t.Risk, was.Risk)
	t.Confirm = t.Confirm || was.Confirm
	if was.MaxAuto.Count > 0 && (t.MaxAuto.Count == 0 || t.MaxAuto.looser(was.MaxAuto)) {
		t.MaxAuto = was.MaxAuto
	}
	t.Stages = unionStages(was.Stages, o.Stages)
	if was.Mode == Observe {
		t.Mode = Observe
	}
	t.BreakGlass = t.BreakGlass && was.BreakGlass
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
	if t.RemindAfter == 0 {
		t.RemindAfter = d.RemindAfter
	}
	if t.Reminders == 0 {
		t.Reminders = d.Reminders
	}
	if t.Repeat == 0 {
		t.Repeat = d.Repeat
	}
	if t.OnExpiry == "" {
		t.OnExpiry = d.OnExpiry
	}
	return t
}

// Role finds an approver role by name.
func (p *Policy) Role(name string) (Role, bool) {
	if p.index != nil {
		i, ok := p.index.roles[name]
		if !ok {
			return Role{}, false
		}
		return p.Approvers[i], true
	}
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
