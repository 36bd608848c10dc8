package approvers

import (
	"fmt"
	"slices"
	"strings"
)

// Call is a tool call, as the input of [Policy.Plan].
type Call struct {
	Tool       string
	Effect     Effect // whether a second run repeats the effect; empty counts as Unprotected
	Facts      Facts
	Requesters []PersonID // the people who wrote since the agent's last answer
	Authors    []PersonID // the people whose messages the model received
}

// Verdict is a plan's decision about a call: run, wait, refuse, or only observe.
type Verdict string

// The verdicts.
const (
	Auto     Verdict = "auto"     // run without asking
	Ask      Verdict = "ask"      // wait for the stages
	Refuse   Verdict = "refuse"   // do not run: nobody could allow the call
	Observed Verdict = "observed" // do not run, because of observe mode; see Plan.Would
)

// Plan is the policy's result for one call: the verdict, the people who must allow the call, and the reasons.
type Plan struct {
	Verdict    Verdict    `json:"verdict"`
	Would      Verdict    `json:"would,omitempty"` // for Observed: the verdict that the call would have without observe mode
	Risk       Risk       `json:"risk"`
	Stages     []Stage    `json:"stages,omitempty"`
	Routed     bool       `json:"routed,omitempty"` // the policy named no stage, so the stage's role was chosen by ceiling
	Known      bool       `json:"known"`            // the policy names the tool, or the tool is built in
	Why        []string   `json:"why"`              // the reasons in the policy's own words, for cards and explain
	Requesters []PersonID `json:"requesters"`       // the requesters of the call; if the risk is high or critical, also its authors. They may decide only if SelfOK is set
	SelfOK     bool       `json:"self_ok,omitempty"`
	Blind      bool       `json:"blind,omitempty"` // masked values need not be revealed before an approval
	PolicyHash string     `json:"policy_hash"`
	// Matched has the ids of the rules that matched when the plan was made. Matched is nil if the tool has no rules.
	// Matched is not stored with the plan, because the audit records the rules.
	Matched []string `json:"-"`
}

// Plan plans a call. Plan never fails: a call that can't be routed is refused.
func (p *Policy) Plan(c Call) Plan { return p.plan(c, nil) }

func (p *Policy) plan(c Call, note planTrace) Plan {
	t, known := p.Tool(c.Tool, c.Facts.Agent)
	plan := Plan{Risk: t.Risk, Known: known, SelfOK: t.SelfApproval, Blind: t.Blind, PolicyHash: p.Hash}
	confirm := t.Confirm
	stages := slices.Clone(t.Stages)
	plan.why("%s", p.riskOf(c.Tool, t, known))
	note.tool(p, c, t, known)
	if len(t.Rules) > 0 {
		plan.Matched = []string{}
	}
	for i, rule := range t.Rules {
		matched, err := rule.When.Eval(c.Facts)
		note.rule(i, rule, matched, err)
		if err == nil && !matched {
			continue
		}
		plan.Matched = append(plan.Matched, rule.ID())
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
	if claimed := c.Facts.Caller.claimed(); len(claimed) > 0 {
		plan.Requesters = unionPeople(plan.Requesters, claimed)
	}
	plan.Verdict = Auto
	if confirm {
		plan.Verdict = Ask
		plan.route(p, t, c.Tool, stages, note)
	}
	plan.observe(t, c)
	note.verdict(p, plan, t)
	return plan
}

// riskOf describes a tool's risk, and where the risk comes from.
func (p *Policy) riskOf(tool string, t ToolPolicy, known bool) string {
	why, distrusted := p.Distrusts(tool)
	x, presumed := p.Presumes(tool)
	switch {
	case distrusted:
		return fmt.Sprintf("the operator did not pin %s as it is (%s), so it counts as %s risk", tool, why, t.Risk)
	case known:
		return fmt.Sprintf("%s is %s risk", tool, t.Risk)
	case presumed && x.Risk == t.Risk:
		return fmt.Sprintf("the policy does not name %s; %s, so it counts as %s risk", tool, x.Why, t.Risk)
	}
	return fmt.Sprintf("the policy does not know %s, so it counts as %s risk", tool, t.Risk)
}

// observe sets the verdict Observed for a call with effects, if observe mode applies.
func (plan *Plan) observe(t ToolPolicy, c Call) {
	if t.Mode != Observe || c.Effect == ReadOnly {
		return
	}
	plan.Would, plan.Verdict = plan.Verdict, Observed
	plan.why("the policy only observes %s: nothing with effects is run", c.Tool)
}

// AskFor plans a call that exceeded the limit of automatic runs. Such a call needs approval.
func (p *Policy) AskFor(c Call, limit Limit) Plan {
	return p.askAnyway(c, fmt.Sprintf("more than %s automatic runs in this conversation", limit))
}

// RetryPlan plans the repetition of a call whose earlier run has an unknown outcome. The call needs approval, even if
// the policy would run the call automatically.
func (p *Policy) RetryPlan(c Call) Plan {
	return p.askAnyway(c, "it is unknown whether an earlier run happened")
}

func (p *Policy) askAnyway(c Call, why string) Plan {
	t, _ := p.Tool(c.Tool, c.Facts.Agent)
	plan := p.Plan(c)
	if plan.Verdict != Auto {
		return plan
	}
	plan.Verdict = Ask
	plan.why("%s", why)
	plan.route(p, t, c.Tool, t.Stages, nil)
	return plan
}

// askAfterEdit requires approval for an edited call that the policy would run automatically, because the call needed
// approval before the edit. The tool's own stages apply.
func (plan *Plan) askAfterEdit(p *Policy, t ToolPolicy) {
	plan.Verdict = Ask
	plan.why("its arguments were edited while it waited")
	plan.route(p, t, t.Name, t.Stages, nil)
}

// route fills in the stages. If the policy names stages, route uses these stages. If the policy names no stages, the
// only stage is for the first role in routing order that may approve the call. With KeepsRouted, this role decides in
// any case: unless a named stage is for this role alone, the role decides first, and the named stages follow. If nobody
// could approve the call, route refuses the call.
func (plan *Plan) route(p *Policy, t ToolPolicy, tool string, named []Stage, note planTrace) {
	plan.Routed = len(named) == 0
	if plan.Routed || t.KeepsRouted {
		s, ok := plan.routed(p, tool, note)
		switch {
		case !ok:
			plan.refuse(fmt.Sprintf("no approver's tool list has %s with a ceiling of %s or above and a member who did not ask for it", tool, plan.Risk))
			return
		case plan.Routed:
			plan.Stages = []Stage{s}
			return
		}
		named = keepStage(s, named)
	}
	plan.Stages = p.resolve(named, tool, plan.Risk)
	if t.KeepsRouted {
		plan.why("never_loosen keeps this role, and the stages are: %s", stageList(p, plan.Stages))
	} else {
		plan.why("the policy names the stages: %s", stageList(p, plan.Stages))
	}
	if problem := plan.unsatisfiable(p, tool); problem != "" {
		plan.refuse(problem)
	}
}

// routed returns the stage of the first role in routing order that may approve the call.
func (plan *Plan) routed(p *Policy, tool string, note planTrace) (s Stage, found bool) {
	lowest := plan.Risk
	if note != nil {
		lowest = Low // an explanation also names the roles that routing skipped
	}
	p.covering(tool, lowest, func(r Role) bool {
		switch {
		case r.MaxRisk < plan.Risk:
			note.role(r, "has a ceiling of %s, below %s", r.MaxRisk, plan.Risk)
		case !p.canFill([]string{r.Name}, 1, plan.barred()):
			note.role(r, "has only members who asked for it, or whose words the model was given")
		default:
			found = true
			note.role(r, "is the first role that may approve this at %s risk", plan.Risk)
			s = Stage{Approver: r.Name, Quorum: 1}
			plan.why("%s is the first role that may approve this at %s risk", r.Title, plan.Risk)
		}
		return !found
	})
	return s, found
}

// KeptStages returns the tool's stages. If never_loosen protects the tool, and only an override names stages, the role
// to which routing sends calls of the tool's own risk comes first.
func (p *Policy) KeptStages(t ToolPolicy) []Stage {
	s, ok := (&Plan{Risk: t.Risk}).routed(p, t.Name, nil)
	if !ok || !t.KeepsRouted || len(t.Stages) == 0 {
		return t.Stages
	}
	return keepStage(s, t.Stages)
}

// keepStage puts the stage of a role before the named stages, unless one of them asks only people of this role.
func keepStage(s Stage, named []Stage) []Stage {
	if slices.ContainsFunc(named, func(o Stage) bool { return o.Approver == s.Approver && len(o.Or) == 0 }) {
		return named
	}
	return slices.Insert(slices.Clone(named), 0, s)
}

// resolve adds roles to each stage that names only a user group. The people of the group decide under these roles.
func (p *Policy) resolve(stages []Stage, tool string, risk Risk) []Stage {
	out := slices.Clone(stages)
	for i, s := range out {
		if s.Approver != "" {
			continue
		}
		var roles []string
		lowest := Low
		if i == len(out)-1 {
			lowest = risk
		}
		p.covering(tool, lowest, func(r Role) bool {
			roles = append(roles, r.Name)
			return true
		})
		if len(roles) > 0 {
			out[i].Approver, out[i].Or = roles[0], roles[1:]
		}
	}
	return out
}

// unsatisfiable returns the reason why the named stages can never be passed, or "".
func (plan *Plan) unsatisfiable(p *Policy, tool string) string {
	able := make([]Stage, 0, len(plan.Stages)) // copies of the stages that list only the roles whose people can pass the stage
	for i, s := range plan.Stages {
		roles, problem := plan.able(p, tool, i, s)
		if problem != "" {
			return problem
		}
		s.Approver, s.Or = roles[0], roles[1:]
		able = append(able, s)
	}
	if len(able) > 1 && !p.distinct(able, plan.barred()) {
		return "the stages together need more distinct people than their approvers have: one person counts once"
	}
	return ""
}

// able returns the roles whose people can pass a stage. If too few people can pass the stage, the second result is
// the reason. If enough people can pass the stage, the second result is "".
func (plan *Plan) able(p *Policy, tool string, i int, s Stage) (roles []string, problem string) {
	for _, name := range s.Roles() {
		r, ok := p.Role(name)
		switch {
		case !ok && name == "":
			problem = fmt.Sprintf("stage %d is for @%s, and no approver's tool list has %s with a sufficient ceiling", i+1, s.Group, tool)
		case !ok:
			problem = fmt.Sprintf("stage %d names %q, which is not an approver", i+1, name)
		case !r.Covers(tool):
			problem = fmt.Sprintf("%s, stage %d, does not have %s in its tool list", r.Title, i+1, tool)
		case i == len(plan.Stages)-1 && r.MaxRisk < plan.Risk:
			problem = fmt.Sprintf("%s, the last stage, has a ceiling of %s, below %s", r.Title, r.MaxRisk, plan.Risk)
		default:
			roles = append(roles, name)
		}
	}
	switch {
	case len(roles) == 0:
		return nil, problem
	case s.Group == "" && s.Quorum == 1 && !p.canFill(roles, 1, plan.barred()):
		return nil, s.Title(p) + " has no member who did not ask for it"
	case s.Group == "" && !p.canFill(roles, s.Quorum, plan.barred()):
		return nil, fmt.Sprintf("%s has fewer than %d members who did not ask for it", s.Title(p), s.Quorum)
	}
	return roles, ""
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
	plan.Why = append(slices.Clip(plan.Why), fmt.Sprintf(format, args...)) // plans are copied, so append must not write into a shared array
}

// Union combines two plans and takes the stricter value of each part. After a policy change, a waiting call must meet
// the union of both plans.
func (plan Plan) Union(p *Policy, now Plan) Plan {
	if now.PolicyHash == plan.PolicyHash {
		return plan
	}
	out := plan
	out.PolicyHash, out.Matched = now.PolicyHash, now.Matched
	out.Risk = max(plan.Risk, now.Risk)
	out.SelfOK = plan.SelfOK && now.SelfOK
	out.Blind = plan.Blind && now.Blind
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
	if now.Verdict == Refuse || now.Verdict == Observed {
		out.Verdict, out.Stages = Refuse, nil
	}
	if out.Verdict != plan.Verdict || out.Risk != plan.Risk || !slices.EqualFunc(out.Stages, plan.Stages, Stage.Equal) {
		out.Why = unionReasons(plan.Why, now.Why)
	}
	return out
}

// endWithCeiling reorders the stages of two plans. Only the last stage needs a sufficient ceiling. If the last stage's
// roles don't have it, the last of the stages whose roles do becomes the last stage.
func (plan *Plan) endWithCeiling(p *Policy, tool string) {
	for i, s := range slices.Backward(plan.Stages) {
		sufficient := slices.ContainsFunc(s.Roles(), func(name string) bool {
			role, ok := p.Role(name)
			return ok && role.Covers(tool) && role.MaxRisk >= plan.Risk
		})
		if sufficient {
			plan.Stages = append(slices.Concat(plan.Stages[:i], plan.Stages[i+1:]), s)
			return
		}
	}
}

// ChangedMeanwhile separates the reasons of the first plan from later reasons.
const ChangedMeanwhile = "the policy changed while this waited"

// unionReasons appends the new reasons. No reason occurs twice, even if the policy changes several times. The last new
// reason is the last in the result, because it explains a refusal.
func unionReasons(was, now []string) []string {
	out := slices.Clone(was)
	if !slices.Contains(was, ChangedMeanwhile) {
		out = append(out, ChangedMeanwhile)
	}
	for i, reason := range now {
		if i == len(now)-1 || !slices.Contains(was, reason) {
			out = append(slices.DeleteFunc(out, func(o string) bool { return o == reason }), reason)
		}
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

// Explain plans a call as [Policy.Plan] does. Explain also returns the steps that led to the plan.
func (p *Policy) Explain(c Call) (Plan, []string) {
	var steps []string
	plan := p.plan(c, func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) })
	return plan, steps
}

// planTrace records the steps of a plan. A planTrace that is nil records no steps.
type planTrace func(format string, args ...any)

func (n planTrace) tool(p *Policy, c Call, t ToolPolicy, known bool) {
	if n == nil {
		return
	}
	_, named := p.tool(c.Tool)
	why, distrusted := p.Distrusts(c.Tool)
	x, presumed := p.Presumes(c.Tool)
	switch {
	case distrusted:
		n("%s is not as the operator pinned it: %s. It counts as an unknown tool, even if the policy names it: %s risk, %s.",
			c.Tool, why, t.Risk, waitsOrRuns(t.Confirm))
	case named:
		n("The policy knows %s: %s risk, %s.", c.Tool, t.Risk, waitsOrRuns(t.Confirm))
	case known:
		n("%s is a built-in tool: %s risk, %s.", c.Tool, t.Risk, waitsOrRuns(t.Confirm))
	case presumed:
		n("The policy does not name %s; %s: %s risk, %s.", c.Tool, x.Why, t.Risk, waitsOrRuns(t.Confirm))
	default:
		n("The policy does not name %s, so its rules for unknown tools apply: %s risk, %s.", c.Tool, t.Risk, waitsOrRuns(t.Confirm))
	}
	if a, ok := p.Agent(c.Facts.Agent); ok {
		if _, has := a.Overrides[c.Tool]; has {
			n("The agent %s overrides parts of that; they are counted in.", a.Name)
			if p.neverLoosens(c.Tool) {
				n("never_loosen protects %s: the override only makes it stricter.", c.Tool)
			}
		}
	}
	if len(t.Stages) > 0 {
		n("Its stages are %s.", stageList(p, p.resolve(t.Stages, c.Tool, t.Risk)))
	}
}

func waitsOrRuns(confirm bool) string {
	if confirm {
		return "waits for people"
	}
	return "runs without asking"
}

func (n planTrace) rule(i int, rule Rule, matched bool, err error) {
	switch {
	case n == nil:
	case err != nil:
		n("Rule %d, %s: could not be evaluated (%s), so it counts as matched%s.", i+1, rule.When.Text, err, rule.adds())
	case matched:
		n("Rule %d, %s: matches%s.", i+1, rule.When.Text, rule.adds())
	default:
		n("Rule %d, %s: does not match.", i+1, rule.When.Text)
	}
}

// adds describes the rule's additions to the tool's policy.
func (r Rule) adds() string {
	var parts []string
	if r.Risk != 0 {
		parts = append(parts, fmt.Sprintf("at least %s risk", r.Risk))
	}
	if r.Confirm {
		parts = append(parts, "waits for people")
	}
	for _, s := range r.Stages {
		name := strings.Join(s.Roles(), " or ")
		if s.Group != "" {
			name = strings.TrimSpace(name + " @" + s.Group)
		}
		parts = append(parts, fmt.Sprintf("a stage of %d × %s", s.Quorum, name))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

func (n planTrace) role(r Role, format string, args ...any) {
	if n != nil {
		n("%s (%s) "+format+".", append([]any{r.Name, r.Title}, args...)...)
	}
}

func (n planTrace) verdict(p *Policy, plan Plan, t ToolPolicy) {
	if n == nil {
		return
	}
	verdict := plan.Verdict
	if verdict == Observed {
		n("The policy only observes this tool: it is not run, and nobody is asked. Otherwise:")
		verdict = plan.Would
	}
	switch verdict {
	case Refuse:
		n("Nobody could allow it, so it is refused: %s.", plan.Why[len(plan.Why)-1])
	case Ask:
		n("It is %s risk and waits for %s.", plan.Risk, stageList(p, plan.Stages))
	case Auto:
		if t.MaxAuto.Count > 0 {
			n("It is %s risk and runs without asking, at most %s in a conversation; then people are asked.", plan.Risk, t.MaxAuto)
			return
		}
		n("It is %s risk and runs without asking.", plan.Risk)
	}
}
