package check

import (
	"fmt"
	"slices"

	"countersign/approvers"
)

// warnUnknownTool warns if tools that the policy does not name run without approval.
func (c *checker) warnUnknownTool() {
	if !c.policy.Defaults.UnknownTool.Confirm {
		c.warn("defaults.unknown_tool.confirm", "tools that the policy does not name run without anybody being asked", "remove confirm: false unless that is meant")
	}
}

// warnIneffective warns about settings that let dangerous calls run too easily, and about settings without effect.
func (c *checker) warnIneffective(t approvers.ToolPolicy) { //nolint:cyclop // one case for each key
	path := "tools." + t.Name
	if !t.Confirm && t.Risk >= approvers.High {
		c.warn(path+".confirm", fmt.Sprintf("%s is %s risk and runs without anybody being asked", t.Name, t.Risk), "remove confirm: false unless that is meant")
	}
	if t.Confirm && t.MaxAuto.Count > 0 {
		c.warn(path+".max_auto", "does nothing, because every call is confirmed", "remove it, or write confirm: false to let that many run by themselves")
	}
	if !t.Confirm && len(t.Stages) > 0 && t.MaxAuto.Count == 0 && !asksByRule(t) {
		c.warn(path+".stages", "are never used, because no call is confirmed", "remove confirm: false, or the stages")
	}
	if t.BreakGlass && !t.Confirm && t.MaxAuto.Count == 0 && !asksByRule(t) {
		c.warn(path+".break_glass", "does nothing, because no call waits", "remove it")
	}
	c.blind(t)
	c.rules(t)
	if c.policy.Mode == approvers.Observe && t.Mode == approvers.Enforce && c.written(path+".mode") {
		c.warn(path+".mode", "does nothing, because the whole bot only observes", "remove it, or write mode: enforce at the top of the file and mode: observe for single tools")
	}
	c.grants(t)
	for _, a := range c.policy.Agents {
		c.warnOverride(a, t)
	}
}

// rules warns about rules that have no effect, or an effect that is probably not meant.
func (c *checker) rules(t approvers.ToolPolicy) {
	for i, r := range t.Rules {
		path := fmt.Sprintf("tools.%s.rules[%d]", t.Name, i)
		raises := r.Risk > t.Risk
		first := slices.IndexFunc(t.Rules[:i], func(e approvers.Rule) bool { return e.When.Text == r.When.Text })
		useless := !raises && len(r.Stages) == 0 && (!r.Confirm || t.Confirm)
		switch {
		case useless:
			c.warn(path, fmt.Sprintf("changes nothing: a rule only adds, and %s is %s", t.Name, riskAlready(t)), "raise the risk, add stages, or remove the rule")
		case first >= 0:
			c.warn(path, fmt.Sprintf("has the same condition as rule %d", first+1), "make one rule of both")
		}
		switch {
		case r.Confirm || !c.written(path+".confirm"):
		case len(r.Stages) > 0:
			c.warn(path+".confirm", "does nothing, because a rule with stages always asks", "remove confirm: false, or the stages")
		case raises && r.Risk >= approvers.High && !t.Confirm:
			c.warn(path+".confirm", fmt.Sprintf("the rule makes it %s risk, and it still runs without anybody being asked", r.Risk), "remove confirm: false unless that is meant")
		}
	}
}

// blind warns if the setting blind has no effect, or if it applies to critical calls.
func (c *checker) blind(t approvers.ToolPolicy) {
	path := "tools." + t.Name + ".blind"
	risk := t.Risk
	for _, r := range t.Rules {
		risk = max(risk, r.Risk)
	}
	switch {
	case !t.Blind:
	case !t.Confirm && t.MaxAuto.Count == 0 && !asksByRule(t):
		c.warn(path, "does nothing, because no call waits", "remove it")
	case risk >= approvers.Critical:
		c.warn(path, t.Name+" can be critical risk, and people approve it without having seen its masked values", "remove blind: true unless that is meant")
	}
}

func asksByRule(t approvers.ToolPolicy) bool {
	for _, r := range t.Rules {
		if r.Confirm || len(r.Stages) > 0 {
			return true
		}
	}
	return false
}

func riskAlready(t approvers.ToolPolicy) string {
	if t.Confirm {
		return t.Risk.String() + " risk and confirmed already"
	}
	return t.Risk.String() + " risk already"
}

func (c *checker) warnOverride(a approvers.Agent, t approvers.ToolPolicy) {
	o, has := a.Overrides[t.Name]
	if !has {
		return
	}
	path := "agents." + a.Name + ".overrides." + t.Name
	now, _ := c.policy.Tool(t.Name, a.Name)
	if !now.Confirm && now.Risk >= approvers.High && (t.Confirm || t.Risk < approvers.High) {
		c.warn(path, fmt.Sprintf("%s is %s risk and runs for %s without anybody being asked", t.Name, now.Risk, a.Name), "remove confirm: false unless that is meant")
	}
	if o.Risk != 0 && o.Risk < t.Risk && !c.protects(t.Name) {
		c.warn(path+".risk", fmt.Sprintf("lowers %s from %s to %s for %s", t.Name, t.Risk, o.Risk, a.Name), "remove it unless that is meant")
	}
	if o.Mode != nil && *o.Mode != t.Mode && c.policy.Mode == approvers.Observe {
		c.warn(path+".mode", "does nothing, because the whole bot only observes", "remove it")
	}
	if now.Confirm && o.MaxAuto != nil {
		c.warn(path+".max_auto", "does nothing, because every call is confirmed", "remove it")
	}
}
