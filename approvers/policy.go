package approvers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy is the operator's policy file as plain values, checked and compiled by package config. A Policy is immutable.
// A reload makes a new Policy.
type Policy struct {
	Hash        string // the version of the policy, in plans and in the audit: SHA-256 in hex of the file's bytes and of the overlay, if there is one
	Load        string // the id of the change that put the policy into force (store.Policy); empty: the policy is not stored
	Mode        Mode   // if Observe, no tool with effects runs
	Defaults    Defaults
	Tools       []ToolPolicy // in file order
	Approvers   []Role       // in file order, which breaks routing ties
	Agents      []Agent      // in file order
	Clients     []Client     // in file order
	NeverLoosen []string     // tools whose policy can't be loosened by an agent's override, or "*" for all
	// EmailDomains are in lower case. If a member is named by e-mail address, the address must be at one of these
	// domains, and Slack must have confirmed the address. If EmailDomains is empty, no e-mail address identifies a
	// member.
	EmailDomains []string
	// SharedChannels are channels, as #name or id. Cards may be posted in these channels even if people of other
	// organisations are in the channels.
	SharedChannels []string
	Caps           Caps
	Budgets        Budgets
	PausedBy       []string // roles whose people may pause and resume everything; the operator always may
	Retention      Retention
	Audit          AuditPost
	Report         ReportPost
	Operators      OperatorPost
	index          *index  // set by Indexed
	overlay        Overlay // set by With
}

// Mode determines whether calls with effects run.
type Mode string

// The modes. In observe mode, no call with effects runs. People only see who would have to decide.
const (
	Enforce Mode = ""
	Observe Mode = "observe"
)

// CountsEmail reports whether an e-mail address in the policy can identify a member.
func (p *Policy) CountsEmail(address string) bool {
	_, domain, ok := strings.Cut(strings.ToLower(address), "@")
	return ok && slices.Contains(p.EmailDomains, domain)
}

// Channels returns the channels that the policy names, as #name or id: channels for cards, heads, reports, notices to
// the operators, and agents.
func (p *Policy) Channels() []string {
	all := []string{p.Audit.Channel, p.Report.Channel, p.Operators.Channel}
	for _, r := range p.Approvers {
		all = append(all, r.Cards)
	}
	for _, a := range p.Agents {
		all = append(all, a.Channels...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(c string) bool { return c == "" || c == CardsDM || c == "*" })
}

// Names reports whether the policy names a channel, as #name or id.
func (p *Policy) Names(channel string) bool { return slices.Contains(p.Channels(), channel) }

// Caps limit the number of requests that are shown to people. A zero means that there is no cap.
type Caps struct {
	Requester Limit // requests that one person causes; each request beyond the limit needs a typed value
	Approver  int   // open cards at one address; further requests wait in the card queue, and their approval needs a typed value
}

// Retention is how long data is kept after its last change. The last change of an audit chain is its last record, but
// records about erasures do not count. Zero means that the data is kept forever.
type Retention struct {
	Conversations time.Duration // messages, arguments, results, and texts that were shown; also the payloads of audit records
	Records       time.Duration // audit records; at least as long as Conversations
}

// AuditPost configures the posting of signed heads to Slack. Without a channel, heads are not posted.
type AuditPost struct {
	Channel string
	Every   time.Duration // there is at most one message in each interval of this length, and no message if there are no new records
}

// OperatorPost configures the notices for the operators in Slack. Without a channel, no notice is posted.
type OperatorPost struct{ Channel string }

// Budgets limit one person's usage per day (UTC). Zero means that there is no limit.
type Budgets struct {
	Tokens int // input and output tokens of the model
	Calls  int // tool calls
}

// Defaults apply to tools that set no value of their own.
type Defaults struct {
	ExpiresAfter  time.Duration // a stage that nobody has decided ends after this time; see OnExpiry
	EscalateAfter time.Duration // the lead is notified after this time
	RunWithin     time.Duration // an approved call expires if it has not started within this time
	RemindAfter   time.Duration // people who have not decided are reminded at this interval; zero: never
	Reminders     int           // the greatest number of reminders per stage
	Repeat        int           // how often the escalation chain is repeated after its last lead
	OnExpiry      OnExpiry
	UnknownTool   ToolPolicy // the policy of tools that the policy file does not name
	UnpinnedTools Unpinned   // the treatment of tools that differ from their pinned definition
}

// ToolPolicy is the operator's policy for one tool.
type ToolPolicy struct {
	Name          string
	Risk          Risk
	Confirm       bool    // calls wait for approval
	WithPreview   bool    // show a preview even if the policy has no template for the tool
	NoPreview     bool    // show no preview at all, not even the tool's own preview
	Preview       Preview // zero: none
	MaxAuto       Limit   // how many automatic runs a conversation may have; further calls wait for approval. Zero: no limit
	Rules         []Rule
	Stages        []Stage       // used instead of routing; empty: route to the lowest sufficient ceiling. See also KeepsRouted
	ExpiresAfter  time.Duration // zero: the default's
	EscalateAfter time.Duration
	RunWithin     time.Duration
	RemindAfter   time.Duration
	Reminders     int
	Repeat        int
	OnExpiry      OnExpiry
	SelfApproval  bool // a requester may decide too; off unless the policy sets it
	Blind         bool // masked values need not be revealed before an approval; off unless the policy sets it
	BreakGlass    bool // the operator may approve at the command line in place of the remaining stages; off unless the policy sets it
	Mode          Mode
	Grants        GrantTerms // zero: no grants
	Secrets       []string   // masked arguments, in addition to those that the tool's schema marks
	TrustAfter    int        // a grant is offered after this number of consecutive calls that were approved unchanged; zero: never
	RunsUnawaited bool       // a call over MCP runs after its approval even if its caller has left; otherwise it runs when the caller returns
	KeepsRouted   bool       // Policy.Tool sets it if never_loosen protects the tool, and the tool's own entry names no stages: the role that routing chooses then always decides
}

// OnExpiry is the treatment of a stage that nobody decided in time.
type OnExpiry string

// The outcomes when nobody decides in time. None of the outcomes approves the request.
const (
	ExpiryRejects   OnExpiry = "reject"
	ExpiryEscalates OnExpiry = "escalate" // the next lead is added, and the stage's time restarts; after the last lead, the request expires
)

// GrantTerms limit the grants that approvers may give for a tool.
type GrantTerms struct {
	Uses   int           // calls
	Within time.Duration // how long the grant is valid
	AtMost []string      // numeric arguments for which a grant sets an upper bound
	Same   []string      // arguments that must have the same values as in the call for which the grant was given
}

// Allowed reports whether the policy allows grants at all.
func (g GrantTerms) Allowed() bool { return g.Uses > 0 && g.Within > 0 }

// Preview describes a call for people. Text is the policy's own template. By is a tool that makes a preview, in
// addition to the template or instead of the template. No is a condition on that tool's preview. If No is true, the
// call would not succeed.
type Preview struct {
	Text   string
	Render func(args map[string]any) (string, error)
	By     PreviewSource
	No     Condition
}

// Limit is a count in a sliding window of time, such as 5/h.
type Limit struct {
	Count int
	Per   time.Duration
}

// Rule adds requirements to a tool's policy. The requirements apply to calls for which the condition When is true.
type Rule struct {
	When    Condition
	Risk    Risk // zero: unchanged
	Confirm bool
	Stages  []Stage
}

// ID identifies the rule by its condition: the first 16 characters of the SHA-256, in hex. Rules of one tool with
// different conditions have different ids.
func (r Rule) ID() string { return SumOf([]byte(r.When.Text)).String()[:16] }

// Condition is a compiled expression over the facts of a call. If Eval fails, the condition counts as true.
type Condition struct {
	Text string
	Eval func(Facts) (bool, error)
}

// Facts are the inputs of a condition.
type Facts struct {
	Args         map[string]any
	Preview      any     // a tool's preview of the call; set only for the condition Preview.No
	Requester    string  // user id of the last person who asked
	Caller       *Caller // nil: Countersign's own agent
	Conversation ConversationFacts
	Agent        string
	Now          time.Time
}

// ConversationFacts are the facts about a conversation that conditions can use.
type ConversationFacts struct {
	ID      string
	Channel string // channel id
	DM      bool
}

// Stage is one approval level. A stage names the roles that decide, and the number of different people who must
// approve.
type Stage struct {
	Approver      string        `json:"approver"`                 // the role's name; empty if the policy names only a group, until the plan fills in the roles
	Or            []string      `json:"or,omitempty"`             // further roles whose people may decide
	Group         string        `json:"group,omitempty"`          // a user group: the roles' people may decide only if they are in this group
	Quorum        int           `json:"quorum"`                   // at least 1
	Rejects       int           `json:"rejects,omitempty"`        // the number of rejections that ends the request; 0 means 1
	ExpiresAfter  time.Duration `json:"expires_after,omitempty"`  // zero: the tool's
	EscalateAfter time.Duration `json:"escalate_after,omitempty"` // zero: the tool's
}

// Roles returns the roles whose people may decide the stage.
func (s Stage) Roles() []string { return append([]string{s.Approver}, s.Or...) }

// Role is an approver: a named group of people with a ceiling and a list of tools.
type Role struct {
	Name       string
	Title      string
	Members    []Member
	MaxRisk    Risk
	CanApprove []string // tool names, or "*"
	Cards      string   // "#channel", a channel id, or "dm" (each member by direct message)
	Lead       string   // the role that is added on escalation; empty: none
	Hours      *Hours   // nil: always
}

// CardsDM is the value of Role.Cards that sends each member the card by direct message.
const CardsDM = "dm"

// MemberKind says how the policy names a member.
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
	Model       string   // empty: the model that the environment names
	Channels    []string // "#name" or id of each channel where people may ask the agent; "*": all channels; empty: direct messages only
	NoDM        bool     // the agent does not answer direct messages
	AllowGuests bool
	Tools       []string // the tools offered to the model: names, or "*"
	Overrides   map[string]Override
	MaxSteps    int      // model calls in a turn
	Budgets     *Budgets // nil: the policy's
	Prompts     []Prompt // suggested prompts, at most MaxPrompts
}

// Prompt is a suggested message that a person sends with one click.
type Prompt struct {
	Title   string // the label
	Message string // the message that is sent
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
	Glass   *bool // whether break glass is allowed for the tool
}

// Tool returns the tool's policy for an agent. If the policy names the tool, or the tool is built in, ok is true.
// Otherwise, t is the policy of unknown tools, or the policy that is presumed from the tool's source. A distrusted tool
// always counts as critical, and has the stages of both policies: its own policy, and the policy of unknown tools.
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
	t.KeepsRouted = len(t.Stages) == 0 && p.neverLoosens(name)
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

// apply replaces parts of a tool's policy. If protected is set, apply keeps only the changes that make the policy
// stricter.
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

// ReadsNumbers reports whether a rule or a preview reads the arguments as float64. If ReadsNumbers returns true, the
// bot must refuse a number whose value changes when it is converted to float64 and back.
func (t ToolPolicy) ReadsNumbers() bool {
	return len(t.Rules) > 0 || t.Preview.Render != nil || t.Preview.No.Eval != nil
}

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

// index finds tools, roles and the approvers of a tool without a search through the whole policy.
type index struct {
	tools  map[string]int
	roles  map[string]int
	byTool map[string][]int // indexes of the roles that name the tool, by rising ceiling, then file order
	all    []int            // indexes of the roles whose list is "*", in the same order
}

// Indexed returns the policy with an index. The index makes routing fast if there are many tools and approvers. The
// index changes no result. Don't change an indexed policy. Change a copy instead, and index the copy.
func (p Policy) Indexed() *Policy {
	x := &index{tools: map[string]int{}, roles: map[string]int{}, byTool: map[string][]int{}}
	for i, t := range p.Tools {
		if _, twice := x.tools[t.Name]; !twice {
			x.tools[t.Name] = i
		}
	}
	for i, r := range p.Approvers {
		if _, twice := x.roles[r.Name]; !twice {
			x.roles[r.Name] = i
		}
		if slices.Contains(r.CanApprove, "*") {
			x.all = append(x.all, i)
			continue
		}
		for _, tool := range slices.Compact(slices.Sorted(slices.Values(r.CanApprove))) {
			x.byTool[tool] = append(x.byTool[tool], i)
		}
	}
	byCeiling := func(a, b int) int { return cmp.Compare(p.Approvers[a].MaxRisk, p.Approvers[b].MaxRisk) }
	slices.SortStableFunc(x.all, byCeiling)
	for _, roles := range x.byTool {
		slices.SortStableFunc(roles, byCeiling)
	}
	p.index = x
	return &p
}

// tool finds the policy's own entry for a tool.
func (p *Policy) tool(name string) (ToolPolicy, bool) {
	if p.index != nil {
		i, ok := p.index.tools[name]
		if !ok {
			return ToolPolicy{}, false
		}
		return p.Tools[i], true
	}
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			return p.Tools[i], true
		}
	}
	return ToolPolicy{}, false
}

// covering visits the roles whose list has the tool and whose ceiling is sufficient. covering visits the roles in
// routing order: by rising ceiling, then by file order. covering stops when visit returns false.
func (p *Policy) covering(tool string, risk Risk, visit func(Role) bool) {
	x := p.index
	if x == nil {
		x = p.Indexed().index
	}
	named, all := p.atLeast(x.byTool[tool], risk), p.atLeast(x.all, risk)
	for len(named) > 0 || len(all) > 0 {
		from := &all
		if len(all) == 0 || len(named) > 0 && p.before(named[0], all[0]) {
			from = &named
		}
		if !visit(p.Approvers[(*from)[0]]) {
			return
		}
		*from = (*from)[1:]
	}
}

// atLeast returns the roles whose ceiling is at least the risk. The input is sorted by rising ceiling.
func (p *Policy) atLeast(roles []int, risk Risk) []int {
	first, _ := slices.BinarySearchFunc(roles, risk, func(i int, risk Risk) int { return cmp.Compare(p.Approvers[i].MaxRisk, risk) })
	return roles[first:]
}

func (p *Policy) before(a, b int) bool {
	return cmp.Or(cmp.Compare(p.Approvers[a].MaxRisk, p.Approvers[b].MaxRisk), cmp.Compare(a, b)) < 0
}

// The built-in tools. Every agent can have the built-in tools in addition to the operator's tools. These tools change
// nothing outside the conversation.
const (
	ToolAskPeople     = "ask_people"      // the model asks the person to confirm or to choose
	ToolAboutTheAsker = "about_the_asker" // profile, time zone and locale of the requester, from Slack
	ToolReadResult    = "read_result"     // the next part of a long result, if the model has received only the beginning
)

// BuiltIn returns the default policy of a built-in tool. BuiltIn applies if the operator's policy does not name the
// tool.
func BuiltIn(tool string) (ToolPolicy, bool) {
	if tool != ToolAskPeople && tool != ToolAboutTheAsker && tool != ToolReadResult {
		return ToolPolicy{}, false
	}
	return ToolPolicy{Name: tool, Risk: Low}, true
}

// BudgetFor returns a person's daily budgets for an agent.
func (p *Policy) BudgetFor(agent string) Budgets {
	if a, ok := p.Agent(agent); ok && a.Budgets != nil {
		return *a.Budgets
	}
	return p.Budgets
}

// Day returns the start of the UTC day that contains t, and the start of the next day.
func Day(t time.Time) (began, ends time.Time) {
	began = t.UTC().Truncate(24 * time.Hour)
	return began, began.Add(24 * time.Hour)
}

// Reached reports whether n calls within the window reach the limit.
func (l Limit) Reached(n int) bool { return l.Count > 0 && n >= l.Count }

func (l Limit) String() string {
	switch l.Per {
	case time.Minute:
		return fmt.Sprintf("%d/min", l.Count)
	case time.Hour:
		return fmt.Sprintf("%d/h", l.Count)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/d", l.Count)
	}
	return fmt.Sprintf("%d/%s", l.Count, l.Per)
}

// Within describes the limit's window in words: "within an hour".
func (l Limit) Within() string {
	switch l.Per {
	case time.Minute:
		return "within a minute"
	case time.Hour:
		return "within an hour"
	case 24 * time.Hour:
		return "within a day"
	}
	return "within " + l.Per.String()
}

// looser reports whether l permits more calls than o in some period.
func (l Limit) looser(o Limit) bool {
	return float64(l.Count)*float64(o.Per) > float64(o.Count)*float64(l.Per) || l.Count > o.Count
}

// MayPause returns the reason why a person in Slack may not pause or resume everything under the current policy, or
// nil. Only people in one of the PausedBy roles may pause and resume.
func (p *Policy) MayPause(who Identity) *Denied {
	if code := who.trouble(); code != "" {
		return &Denied{Code: code}
	}
	denied := &Denied{Code: DeniedNoPause}
	for _, name := range p.PausedBy {
		role, ok := p.Role(name)
		if ok && role.Holds(who) {
			return nil
		}
		denied = role.denyMember(who, denied)
	}
	return denied
}
