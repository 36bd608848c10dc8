package check

import (
	"slices"

	"countersign/approvers"
	"countersign/config"
)

// Report lists the calls to each tool that run without approval, the calls that wait, and the people who must approve
// the waiting calls. Bounds lists caps, budgets, who may pause, retention, and the channels for signed heads, weekly
// reports and notices for operators.
type Report struct {
	Observe   bool        // nothing with effects runs at all
	Usually   string      // the default waiting times; if a gate has other times, its Notes have them
	Gates     []Gate      // calls that wait or are refused
	Automatic []Automatic // tools with calls that run without approval
	Working   []Working   // approvers with working hours
	Clients   []ClientReport
	Bounds    []string
}

// Gate is one kind of call that waits or is refused: a tool, under a condition.
type Gate struct {
	Tool    string // empty: any tool that the policy does not name
	Known   bool   // the policy names the tool
	Agent   string // empty: every agent that overrides nothing
	When    string // empty: always
	Risk    approvers.Risk
	Stages  []GateStage
	Refused string   // the reason why nobody can allow the call; empty: the stages can allow it
	Notes   []string // settings that differ from the defaults, and whether the call is only observed
}

// GateStage is one level of approval.
type GateStage struct {
	approvers.Stage
	Title   string
	Members []string // members of the stage's roles, as the policy names them
	Cards   []string // channels, or dm
	Leads   []string // titles of the leads who are told in turn while nobody decides
	Terms   []string // settings that differ at this stage: the number of rejections that ends it, and its times
}

// Working is an approver's working hours.
type Working struct{ Title, Hours string }

// Automatic is a tool with calls that run without approval.
type Automatic struct {
	Tool    string // empty: any tool that the policy does not name
	Known   bool   // the policy names the tool
	Agent   string
	Risk    approvers.Risk
	Limit   approvers.Limit // zero: no limit
	Preview bool
	Rules   bool // some calls wait because of a rule
	Observe bool // the tool is only observed: calls with effects are not run
}

// NewReport lists the tools of the policy, then tools that are only registered, then tools that only clients name, and
// finally one entry for all other tools.
func NewReport(f *config.File, tools []Tool) Report {
	c := &checker{file: f, policy: f.Policy, known: namesOf(tools)}
	out := Report{
		Observe: f.Policy.Mode == approvers.Observe, Usually: usually(f.Policy.Defaults), Working: workingHours(f.Policy), Bounds: append(bounds(f.Policy), keeping(f.Policy)...),
		Clients: clientReports(f.Policy),
	}
	for _, tool := range c.everyTool() {
		c.report(&out, tool, "")
		for _, a := range f.Policy.Agents {
			if _, has := a.Overrides[tool]; has && c.differs(tool, a.Name) {
				c.report(&out, tool, a.Name)
			}
		}
	}
	c.report(&out, "", "")
	return out
}

// differs reports whether an agent's override changes the risk, the confirmation, the automatic runs, the mode, break
// glass or the stages.
func (c *checker) differs(tool, agent string) bool {
	a, _ := c.policy.Tool(tool, "")
	b, _ := c.policy.Tool(tool, agent)
	return a.Risk != b.Risk || a.Confirm != b.Confirm || a.MaxAuto != b.MaxAuto || a.Mode != b.Mode || a.BreakGlass != b.BreakGlass ||
		!slices.EqualFunc(a.Stages, b.Stages, approvers.Stage.Equal)
}

func (c *checker) report(out *Report, tool, agent string) {
	var gates []Gate
	for _, o := range c.outcomes(tool, agent) {
		if o.plan.Verdict == approvers.Auto || o.limited {
			out.automatic(o)
		}
		if o.plan.Verdict == approvers.Auto {
			continue
		}
		g := c.gate(o)
		// A gate with rules is left out if it equals the gate without rules. A gate with several rules is left out if it
		// equals any gate in the list.
		if !slices.ContainsFunc(gates, func(h Gate) bool { return h.same(g) && len(o.rules) > 0 && (h.When == "" || len(o.rules) > 1) }) {
			gates = append(gates, g)
		}
	}
	out.Gates = append(out.Gates, gates...)
}

// automatic records that calls with this outcome run without approval. The first outcome that automatic gets for a
// tool must be the outcome without rules.
func (r *Report) automatic(o outcome) {
	if n := len(r.Automatic); n > 0 && r.Automatic[n-1].Tool == o.tool && r.Automatic[n-1].Agent == o.agent {
		return
	}
	t := o.policy
	r.Automatic = append(r.Automatic, Automatic{
		Tool: o.tool, Known: o.plan.Known, Agent: o.agent, Risk: o.plan.Risk, Limit: t.MaxAuto, Preview: t.WithPreview, Rules: asksByRule(t), Observe: t.Mode == approvers.Observe,
	})
}

func (c *checker) gate(o outcome) Gate {
	g := Gate{Tool: o.tool, Known: o.plan.Known, Agent: o.agent, When: o.when(), Risk: o.plan.Risk, Notes: c.notes(o)}
	if o.plan.Verdict == approvers.Refuse {
		g.Refused = c.reason(o)
	}
	for i, s := range o.plan.Stages {
		stage := GateStage{Stage: s, Title: stageTitle(c.policy, s), Terms: stageTerms(s)}
		for _, role := range c.rolesOf(s) {
			for _, m := range role.Members {
				stage.Members = append(stage.Members, memberText(m))
			}
			stage.Cards = append(stage.Cards, role.Cards)
		}
		stage.Members, stage.Cards = once(stage.Members), once(stage.Cards)
		for _, lead := range c.leadsAt(o, i) {
			stage.Leads = append(stage.Leads, lead.Title)
		}
		g.Stages = append(g.Stages, stage)
	}
	return g
}

// same reports whether two gates have the same risk, the same reason for a refusal, and the same stages.
func (g Gate) same(h Gate) bool {
	return g.Risk == h.Risk && g.Refused == h.Refused && slices.EqualFunc(g.Stages, h.Stages, func(a, b GateStage) bool { return a.Equal(b.Stage) })
}

// The function returns the list without duplicates, in the same order.
func once(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
