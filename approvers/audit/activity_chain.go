package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// activityReader computes the figures of chains. The memory use depends on the number of roles, people, tools and
// rules, and not on the number of records.
type activityReader struct {
	since, until time.Time
	decisions    DecisionReport
	roles        map[string]*RoleFigures
	people       map[string]*PersonFigures // by the Slack user id
	tools        map[string]*ToolFigures
	calls        map[string]int            // by tool: how many calls have records that say which rules matched
	matches      map[[2]string]ruleMatches // by tool and rule
	out          Activity
}

type ruleMatches struct {
	n    int
	last time.Time
}

func newActivityReader(since, until time.Time) *activityReader {
	return &activityReader{
		since: since, until: until, out: Activity{Since: since, Until: until},
		decisions: DecisionReport{Roles: map[string]*DecisionStats{}, People: map[string]*DecisionStats{}},
		roles:     map[string]*RoleFigures{}, people: map[string]*PersonFigures{}, tools: map[string]*ToolFigures{},
		calls: map[string]int{}, matches: map[[2]string]ruleMatches{},
	}
}

// The method reports whether a record is in the period of the report.
func (f *activityReader) counts(a approvers.AuditRecord) bool {
	return !a.At.Before(f.since) && a.At.Before(f.until)
}

func (f *activityReader) role(name string) *RoleFigures {
	if f.roles[name] == nil {
		f.roles[name] = &RoleFigures{DecisionStats: DecisionStats{Name: name}}
	}
	return f.roles[name]
}

func (f *activityReader) person(user string) *PersonFigures {
	if f.people[user] == nil {
		f.people[user] = &PersonFigures{DecisionStats: DecisionStats{Name: user}, ID: user}
	}
	return f.people[user]
}

func (f *activityReader) tool(name string) *ToolFigures {
	if f.tools[name] == nil && len(f.tools) >= MostTools {
		name = OtherTools
	}
	if f.tools[name] == nil {
		f.tools[name] = &ToolFigures{Name: name}
	}
	return f.tools[name]
}

// add counts the records of a chain. The parameter cut says that the chain's last records are damaged and left out. The
// parameter names has the names of the people in the chain. A record with a later time than the period is not counted.
// If an earlier time follows it, the clock ran ahead, and the record still shows in which state the request was.
func (f *activityReader) add(chain []approvers.AuditRecord, cut bool, names map[approvers.PersonID]string) {
	c := chainReader{f: f, names: names, asked: map[string]time.Time{}, decided: map[string]bool{}, once: map[string]bool{}, matched: map[string]bool{}}
	n := len(chain)
	for n > 0 && !chain[n-1].At.Before(f.until) {
		n--
	}
	c.broken = cut && n == len(chain)
	for i, a := range chain[:n] {
		if c.broken = c.broken || a.Seq != uint64(i)+1; a.Kind == approvers.AuditPruned && f.counts(a) && ofCall(a.Facts["chain"]) {
			f.out.Pruned++
		}
		c.take(a, f.counts(a))
	}
	c.end()
}

// ofCall reports whether a pruned chain was about a call, and not about a grant or an absence.
func ofCall(chain string) bool {
	return !strings.HasPrefix(chain, approvers.GrantChain("")) && !strings.HasPrefix(chain, approvers.AbsenceChain(""))
}

// chainReader follows one chain from its first record to its last.
type chainReader struct {
	f       *activityReader
	names   map[approvers.PersonID]string
	broken  bool   // a record is missing, so nobody knows whether the request is open
	tool    string // empty: the chain is not about a call
	asks    bool   // the call waits for people
	waits   bool   // a stage has begun and has not ended
	stages  [][]string
	stage   int
	began   time.Time            // when the stage began
	asking  time.Time            // when the current roles were first asked; a restart with the same roles keeps this time
	joined  []string             // roles that escalation added to the stage
	since   map[string]time.Time // when each role in joined was added
	asked   map[string]time.Time // by Slack user id: when the person was first asked
	decided map[string]bool      // the people who decided the current stage, or whose edit began it
	editor  string               // the Slack user id of the last person who changed the arguments
	once    map[string]bool      // the figures in which the call was already counted
	matched map[string]bool
	planned *approvers.AuditRecord // the proposal of a call that is about to run without approval; people may still be asked instead, in another chain
}

// count adds one to a figure, but only once for each call.
func (c *chainReader) count(in bool, name string, figure *int) {
	if in && !c.once[name] {
		c.once[name] = true
		*figure++
	}
}

func (c *chainReader) take(a approvers.AuditRecord, in bool) {
	if a.Kind == approvers.AuditProposed {
		c.proposed(a, in)
	}
	if c.tool == "" {
		return
	}
	if p := c.planned; p != nil && a.Kind != approvers.AuditProposed && a.Kind != approvers.AuditErased {
		c.planned = nil
		c.rules(*p, c.f.counts(*p))
	}
	if c.planned == nil {
		c.rules(a, in)
	}
	tool := c.f.tool(c.tool)
	switch a.Kind {
	case approvers.AuditExecuting:
		if !c.asks {
			c.count(in, "automatic", &tool.Automatic)
			if a.Facts["grant"] != "" {
				c.count(in, "granted", &tool.Granted)
			}
		}
	case approvers.AuditExecuted:
		if a.Facts["state"] == string(approvers.ExecutionFailed) {
			c.count(in, "failed", &tool.Failed)
		}
	case approvers.AuditUnknown:
		c.count(in, "unknown", &tool.Unknown)
	}
	if c.asks {
		c.request(a, in, tool)
	}
}

// proposed reads the first record of a call. The method leaves out the model's questions, and calls with invalid
// arguments, because nobody decides about them.
func (c *chainReader) proposed(a approvers.AuditRecord, in bool) {
	verdict := approvers.Verdict(a.Facts["verdict"])
	switch verdict {
	case approvers.Auto, approvers.Ask, approvers.Refuse, approvers.Observed:
		c.tool = a.Facts["tool"]
	}
	if c.tool == "" {
		return
	}
	tool := c.f.tool(c.tool)
	switch {
	case verdict == approvers.Observed:
		c.count(in, "observed", &tool.Observed)
	case verdict == approvers.Refuse:
		c.asks = true // so that the later record of the call's end is counted
	case verdict == approvers.Ask && a.Facts["grant"] == "":
		c.asks = true
		c.count(in, "asked", &tool.Asked)
		c.stages = approvers.StageRoles(a.Facts[approvers.FactStages])
		c.begin(a, nil, 0, in)
	default:
		c.planned = &a
	}
}

// rules counts the rules that matched.
func (c *chainReader) rules(a approvers.AuditRecord, in bool) {
	ids, recorded := a.Facts[approvers.FactRules]
	if !recorded || !in {
		return
	}
	if !c.once["rules"] {
		c.once["rules"] = true
		c.f.calls[c.tool]++
	}
	for id := range strings.SplitSeq(ids, ",") {
		if id == "" || c.matched[id] {
			continue
		}
		c.matched[id] = true
		m := c.f.matches[[2]string{c.tool, id}]
		if m.n++; a.At.After(m.last) {
			m.last = a.At
		}
		c.f.matches[[2]string{c.tool, id}] = m
	}
}

// request reads a record of a call that waits, or waited, for people.
func (c *chainReader) request(a approvers.AuditRecord, in bool, tool *ToolFigures) {
	switch a.Kind {
	case approvers.AuditShown:
		if to, found := strings.CutPrefix(a.Facts["to"], store.ToUser); found && a.Actor == "" {
			switch a.Facts[approvers.FactShownAs] {
			case "card", "bundle", "escalation":
				c.ask(to, a.At, in)
			}
		}
	case approvers.AuditInvited:
		c.ask(approvers.PersonID(a.Facts["person"]).User(), a.At, in)
	case approvers.AuditEscalated:
		c.escalated(a, in)
	case approvers.AuditDecided:
		c.decision(a, in, tool)
	case approvers.AuditAdvanced:
		c.finish(a, in)
		before := c.own(c.stage)
		c.stages = approvers.StageRoles(a.Facts[approvers.FactStages])
		n, err := strconv.Atoi(a.Facts["stage"])
		if err != nil {
			n = 1
		}
		c.begin(a, before, n-1, in)
	case approvers.AuditReplanned:
		c.stages = approvers.StageRoles(a.Facts[approvers.FactStages])
	case approvers.AuditReopened:
		before := c.own(c.stage)
		c.stages = approvers.StageRoles(a.Facts[approvers.FactStages])
		c.begin(a, before, 0, in)
	case approvers.AuditApproved:
		c.finish(a, in)
		c.count(in, "approved", &tool.Approved)
	case approvers.AuditClosed:
		c.closed(a, in, tool)
	}
}

func (c *chainReader) closed(a approvers.AuditRecord, in bool, tool *ToolFigures) {
	state := approvers.State(a.Facts["state"])
	if figure := map[approvers.State]*int{
		approvers.Rejected: &tool.Rejected, approvers.Expired: &tool.Expired, approvers.Withdrawn: &tool.Withdrawn,
		approvers.Revoked: &tool.Revoked, approvers.Voided: &tool.Voided, approvers.Refused: &tool.Refused,
	}[state]; figure != nil {
		c.count(in, string(state), figure)
	}
	if in && c.waits && state == approvers.Expired {
		for _, role := range c.waitsFor() {
			c.f.role(role).Unanswered++
		}
	}
	c.finish(a, in)
}

// begin starts or restarts a stage. The parameter named before has the roles of the previous stage. If the new stage
// has the same roles, begin does not change asking, the time at which these roles were first asked.
func (c *chainReader) begin(a approvers.AuditRecord, before []string, stage int, in bool) {
	if !slices.Equal(before, c.own(stage)) {
		c.asking = a.At
	}
	c.waits, c.stage, c.began, c.joined, c.since, c.decided = true, stage, a.At, nil, map[string]time.Time{}, map[string]bool{c.editor: true}
	c.editor = ""
	if in {
		for _, role := range c.waitsFor() {
			c.f.role(role).Asked++
		}
	}
}

// The method returns the roles that the plan names for a stage.
func (c *chainReader) own(stage int) []string {
	if stage < 0 || stage >= len(c.stages) {
		return nil
	}
	return c.stages[stage]
}

// waitsFor returns the roles that may decide the current stage.
func (c *chainReader) waitsFor() []string { return slices.Concat(c.own(c.stage), c.joined) }

// waitsSince returns when the current stage began to wait for a role.
func (c *chainReader) waitsSince(role string) time.Time {
	if at, joined := c.since[role]; joined {
		return at
	}
	return c.began
}

// finish ends the current stage.
func (c *chainReader) finish(a approvers.AuditRecord, in bool) {
	if in && c.waits {
		for _, role := range c.waitsFor() {
			c.f.role(role).Waited.add(max(0, a.At.Sub(c.waitsSince(role)))) // the clock may have been set back
		}
	}
	c.waits = false
}

// ask counts a person to whom the request was sent personally.
func (c *chainReader) ask(user string, at time.Time, in bool) {
	if _, known := c.asked[user]; known || user == "" {
		return
	}
	c.asked[user] = at
	if in {
		c.f.person(user).Asked++
	}
}

// escalated adds the lead to the stage. If the escalation only notifies the same people once more, there is no new
// lead.
func (c *chainReader) escalated(a approvers.AuditRecord, in bool) {
	lead := a.Facts["role"]
	if !c.waits || a.Facts["again"] != "" || lead == "" || slices.Contains(c.waitsFor(), lead) {
		return
	}
	if in {
		for _, role := range c.waitsFor() {
			c.f.role(role).Escalated++
		}
		c.f.role(lead).Asked++
	}
	c.joined, c.since[lead] = append(c.joined, lead), a.At
}

func (c *chainReader) decision(a approvers.AuditRecord, in bool, tool *ToolFigures) {
	c.decided[a.Actor.User()] = true
	if a.Facts["kind"] == string(approvers.Modify) {
		c.editor = a.Actor.User()
	}
	if !in {
		return
	}
	c.f.decisions.add(a, c.names[a.Actor])
	if ms, err := strconv.ParseInt(a.Facts["took"], 10, 64); err == nil && ms > 0 && a.Facts["kind"] == string(approvers.Approve) {
		if tool.Timed++; IsQuick(approvers.Approve, time.Duration(ms)*time.Millisecond) {
			tool.Quick++
		}
	}
	switch {
	case a.Facts["break_glass"] != "":
		c.f.out.BreakGlass++
	case a.Facts["kind"] == string(approvers.Modify):
		c.count(in, "changed", &tool.Changed)
	case a.Facts["kind"] == string(approvers.Reject):
		c.count(in, "opposed", &tool.Opposed)
		c.f.reject(Rejection{
			At: a.At, Request: a.Chain, Tool: c.tool, By: cmp.Or(c.names[a.Actor], a.Actor.User()), Role: a.Facts["role"], seq: a.Seq, hash: a.PayloadHash,
		})
	}
}

// reject counts a rejection, and keeps only the newest rejections.
func (f *activityReader) reject(x Rejection) {
	f.out.Rejected++
	f.out.Rejections = append(f.out.Rejections, x)
	if len(f.out.Rejections) >= 2*MostRejections {
		f.trim()
	}
}

func (f *activityReader) trim() {
	slices.SortStableFunc(f.out.Rejections, func(a, b Rejection) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Request, b.Request), cmp.Compare(a.seq, b.seq))
	})
	f.out.Rejections = f.out.Rejections[:min(len(f.out.Rejections), MostRejections)]
}

// end counts a request that is waiting at the end of the period.
func (c *chainReader) end() {
	if !c.waits || c.broken {
		return
	}
	c.f.tool(c.tool).Open++
	for _, role := range c.waitsFor() {
		c.f.role(role).Open.add(c.waitsSince(role))
	}
	for user, at := range c.asked {
		if !at.Before(c.asking) && !c.decided[user] {
			c.f.person(user).Open.add(at)
		}
	}
}

// activity returns the sums, with the largest figures first.
func (f *activityReader) activity(p *approvers.Policy) *Activity {
	f.trim()
	out := &f.out
	for name, d := range f.decisions.Roles {
		f.role(name).DecisionStats = *d
	}
	for id, d := range f.decisions.People {
		who := f.person(approvers.PersonID(id).User())
		who.ID, who.DecisionStats = id, *d
	}
	out.Roles = slices.SortedFunc(maps.Values(f.roles), func(a, b *RoleFigures) int {
		return cmp.Or(cmp.Compare(b.Open.N, a.Open.N), cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Decisions, a.Decisions), strings.Compare(a.Name, b.Name))
	})
	out.People = slices.SortedFunc(maps.Values(f.people), func(a, b *PersonFigures) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(b.Asked, a.Asked), strings.Compare(a.ID, b.ID))
	})
	for _, t := range f.tools {
		if (ToolFigures{Name: t.Name}) != *t {
			out.Tools = append(out.Tools, t)
		}
	}
	slices.SortFunc(out.Tools, func(a, b *ToolFigures) int {
		return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Automatic, a.Automatic), strings.Compare(a.Name, b.Name))
	})
	if p == nil || p.Hash == "" {
		return out
	}
	out.Policy = p.Hash
	for _, t := range out.Tools {
		if policy, known := p.Tool(t.Name, ""); known {
			t.Risk, t.Grants = policy.Risk.String(), policy.Grants.Allowed()
		}
	}
	for _, t := range p.Tools {
		for i, rule := range t.Rules {
			m := f.matches[[2]string{t.Name, rule.ID()}]
			out.Rules = append(out.Rules, RuleFigures{Tool: t.Name, Number: i + 1, When: rule.When.Text, Calls: f.calls[t.Name], Matched: m.n, Last: m.last})
		}
	}
	return out
}
