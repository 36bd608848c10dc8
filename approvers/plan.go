package approvers

import (
	"fmt"
	"slices"
	"strings"
)

// Call is a tool call as the policy sees it, before anything was decided.
type Call struct {
	Tool       string
	Facts      Facts
	Requesters []PersonID // all who spoke since the last answer
	Authors    []PersonID // everybody whose words the model was given
}

// Verdict says how a call may proceed.
type Verdict string

// The three verdicts.
const (
	Auto   Verdict = "auto"   // run without asking
	Ask    Verdict = "ask"    // wait for the stages
	Refuse Verdict = "refuse" // nobody could allow it
)

// Plan is what the policy says of one call: who must allow it, and why.
type Plan struct {
	Verdict    Verdict    `json:"verdict"`
	Risk       Risk       `json:"risk"`
	Stages     []Stage    `json:"stages,omitempty"`
	Routed     bool       `json:"routed,omitempty"` // the stage was chosen by ceiling, not named by the policy
	Known      bool       `json:"known"`            // the policy names the tool
	Why        []string   `json:"why"`              // the reasons in the policy's own words, for cards and explain
	Requesters []PersonID `json:"requesters"`       // who may not decide
	SelfOK     bool       `json:"self_ok,omitempty"`
	PolicyHash string     `json:"policy_hash"`
}

// Plan routes a call. It never fails: what can't be routed is refused.
func (p *Policy) Plan(c Call) Plan {
	t, known := p.Tool(c.Tool, c.Facts.Agent)
	plan := Plan{Risk: t.Risk, Known: known, SelfOK: t.SelfApproval, PolicyHash: p.Hash}
	confirm := t.Confirm
	stages := slices.Clone(t.Stages)
	if known {
		plan.why("%s is %s risk", c.Tool, t.Risk)
	} else {
		plan.why("the policy does not know %s, so it counts as %s risk", c.Tool, t.Risk)
	}
	for _, rule := range t.Rules {
		matched, err := rule.When.Eval(c.Facts)
		if err == nil && !matched {
			continue
		}
		if err != nil {
			plan.why("the rule %q could not be evaluated, so it counts as matched", rule.When.Text)
		} else {
			plan.why("the rule %q matches", rule.When.Text)
		}
		if rule.Risk > plan.Risk {
			plan.Risk = rule.Risk
			plan.why("that makes it %s risk", rule.Risk)
		}
		confirm = confirm || rule.Confirm || len(rule.Stages) > 0
		stages = unionStages(stages, rule.Stages)
	}
	plan.Requesters = c.Requesters
	if plan.Risk >= High {
		plan.Requesters = unionPeople(c.Requesters, c.Authors)
	}
	if !confirm {
		plan.Verdict = Auto
		return plan
	}
	plan.Verdict = Ask
	plan.route(p, c.Tool, stages)
	return plan
}

// AskFor turns an automatic plan into one that waits, for a call that went over its automatic-run limit.
func (p *Policy) AskFor(c Call, limit Limit) Plan {
	t, _ := p.Tool(c.Tool, c.Facts.Agent)
	plan := p.Plan(c)
	if plan.Verdict != Auto {
		return plan
	}
	plan.Verdict = Ask
	plan.why("more than %s automatic runs in this conversation", limit)
	plan.route(p, c.Tool, t.Stages)
	return plan
}

// askAfterEdit has somebody asked about an edited call that the policy would let run: the call that was proposed had to wait.
func (plan *Plan) askAfterEdit(p *Policy, tool string) {
	plan.Verdict = Ask
	plan.why("its arguments were edited while it waited")
	plan.route(p, tool, nil)
}

// route fills in the stages: the ones that the policy names, or the lowest sufficient ceiling.
func (plan *Plan) route(p *Policy, tool string, named []Stage) {
	if len(named) > 0 {
		plan.Stages = named
		plan.why("the policy names the stages: %s", stageList(p, named))
		if problem := plan.unsatisfiable(p, tool); problem != "" {
			plan.refuse(problem)
		}
		return
	}
	plan.Routed = true
	best := -1
	for i, r := range p.Approvers {
		if r.MaxRisk < plan.Risk || !r.Covers(tool) || !r.canFill(1, plan.barred()) {
			continue
		}
		if best < 0 || r.MaxRisk < p.Approvers[best].MaxRisk {
			best = i
		}
	}
	if best < 0 {
		plan.refuse(fmt.Sprintf("no approver's tool list has %s with a ceiling of %s or above and a member who did not ask for it", tool, plan.Risk))
		return
	}
	r := p.Approvers[best]
	plan.Stages = []Stage{{Approver: r.Name, Quorum: 1}}
	plan.why("%s has the lowest sufficient ceiling (%s)", r.Title, r.MaxRisk)
}

// unsatisfiable says why named stages can never be passed, or "".
func (plan *Plan) unsatisfiable(p *Policy, tool string) string {
	for i, s := range plan.Stages {
		r, ok := p.Role(s.Approver)
		switch {
		case !ok:
			return fmt.Sprintf("stage %d names %q, which is no approver", i+1, s.Approver)
		case !r.Covers(tool):
			return fmt.Sprintf("%s, stage %d, does not have %s in its tool list", r.Title, i+1, tool)
		case i == len(plan.Stages)-1 && r.MaxRisk < plan.Risk:
			return fmt.Sprintf("%s, the last stage, has a ceiling of %s, below %s", r.Title, r.MaxRisk, plan.Risk)
		case !r.canFill(s.Quorum, plan.barred()):
			return fmt.Sprintf("%s has fewer than %d members who did not ask for it", r.Title, s.Quorum)
		}
	}
	return ""
}

func (plan *Plan) barred() []PersonID {
	if plan.SelfOK {
		return nil
	}
	return plan.Requesters
}

func (plan *Plan) refuse(reason string) {
	plan.Verdict, plan.Stages = Refuse, nil
	plan.why("%s", reason)
}

func (plan *Plan) why(format string, args ...any) {
	plan.Why = append(slices.Clip(plan.Why), fmt.Sprintf(format, args...)) // plans are copied: never write into a shared array
}

// canFill reports whether the role could give n distinct people who are not barred. Groups and
// addresses are resolved at the click, so a role that has any counts as able.
func (r Role) canFill(n int, barred []PersonID) bool {
	people := map[string]bool{}
	for _, m := range r.Members {
		if m.Kind != MemberUser {
			return true
		}
		if !slices.ContainsFunc(barred, func(b PersonID) bool { return b.User() == m.Value }) {
			people[m.Value] = true
		}
	}
	return len(people) >= n
}

// Union is the stricter of two plans, part by part: what a waiting call has to pass when the policy changed meanwhile.
func (plan Plan) Union(p *Policy, now Plan) Plan {
	if now.PolicyHash == plan.PolicyHash {
		return plan
	}
	out := plan
	out.PolicyHash = now.PolicyHash
	out.Risk = max(plan.Risk, now.Risk)
	out.SelfOK = plan.SelfOK && now.SelfOK
	out.Requesters = unionPeople(plan.Requesters, now.Requesters)
	out.Stages = unionStages(plan.Stages, now.Stages)
	out.Routed = plan.Routed && (now.Routed || len(now.Stages) == 0)
	if out.Routed {
		slices.SortStableFunc(out.Stages, func(a, b Stage) int {
			ra, _ := p.Role(a.Approver)
			rb, _ := p.Role(b.Approver)
			return int(ra.MaxRisk) - int(rb.MaxRisk)
		})
	}
	if now.Verdict == Refuse {
		out.Verdict, out.Stages = Refuse, nil
	}
	if out.Verdict != plan.Verdict || out.Risk != plan.Risk || !slices.Equal(out.Stages, plan.Stages) {
		out.Why = unionReasons(plan.Why, now.Why)
	}
	return out
}

// changedMeanwhile stands between the reasons of the first plan and those that came since.
const changedMeanwhile = "the policy changed while this waited"

// unionReasons appends what is new, so that the reasons don't pile up however often the policy changes. The last of them stays last: for what is
// refused it says why.
func unionReasons(was, now []string) []string {
	out := slices.Clone(was)
	if !slices.Contains(was, changedMeanwhile) {
		out = append(out, changedMeanwhile)
	}
	for i, reason := range now {
		if i == len(now)-1 || !slices.Contains(was, reason) {
			out = append(slices.DeleteFunc(out, func(o string) bool { return o == reason }), reason)
		}
	}
	return out
}

// unionStages keeps a's order, appends what only b has, and takes the larger quorum of what both have.
func unionStages(a, b []Stage) []Stage {
	out := slices.Clone(a)
	for _, s := range b {
		i := slices.IndexFunc(out, func(o Stage) bool { return o.Approver == s.Approver })
		if i < 0 {
			out = append(out, s)
			continue
		}
		out[i].Quorum = max(out[i].Quorum, s.Quorum)
	}
	return out
}

func unionPeople(a, b []PersonID) []PersonID {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func stageList(p *Policy, stages []Stage) string {
	parts := make([]string, len(stages))
	for i, s := range stages {
		title := s.Approver
		if r, ok := p.Role(s.Approver); ok {
			title = r.Title
		}
		parts[i] = title
		if s.Quorum > 1 {
			parts[i] = fmt.Sprintf("%d × %s", s.Quorum, title)
		}
	}
	return strings.Join(parts, ", then ")
}
