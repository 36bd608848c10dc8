package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config"
)

func (c *checker) protects(tool string) bool {
	return slices.Contains(c.policy.NeverLoosen, tool) || slices.Contains(c.policy.NeverLoosen, "*")
}

// loosening reports overrides that would loosen the policy of a tool that never_loosen protects. At run time, the
// loosening parts of an override are ignored.
func (c *checker) loosening() {
	for _, a := range c.policy.Agents {
		for tool := range a.Overrides {
			if c.protects(tool) {
				c.protected(a, tool)
			}
		}
	}
}

func (c *checker) protected(a approvers.Agent, tool string) {
	free := *c.policy
	free.NeverLoosen = nil
	wants, _ := free.Tool(tool, a.Name)
	gets, _ := c.policy.Tool(tool, a.Name)
	gets.Stages = c.policy.KeptStages(gets)
	for _, l := range loosened(wants, gets) {
		c.wrong("agents."+a.Name+".overrides."+tool+"."+l.key, fmt.Sprintf("for agent %s this %s, but never_loosen protects %s", a.Name, l.what, tool),
			"remove it, or take "+tool+" out of never_loosen; until then it has no effect")
	}
}

// loose is a key with which an override would loosen the policy.
type loose struct{ key, what string }

// loosened compares two settings: the setting in an override, and the setting that takes effect because the tool is
// protected.
func loosened(wants, gets approvers.ToolPolicy) []loose {
	var out []loose
	if wants.Risk < gets.Risk {
		out = append(out, loose{"risk", fmt.Sprintf("would lower the risk from %s to %s", gets.Risk, wants.Risk)})
	}
	if gets.Confirm && !wants.Confirm {
		out = append(out, loose{"confirm", "would run it without anybody being asked"})
	}
	if wants.MaxAuto != gets.MaxAuto {
		out = append(out, loose{"max_auto", fmt.Sprintf("would let %s run by themselves where the tool lets %s", wants.MaxAuto, gets.MaxAuto)})
	}
	out = append(out, loosenedStages(wants.Stages, gets.Stages)...)
	if gets.Mode == approvers.Observe && wants.Mode != approvers.Observe {
		out = append(out, loose{"mode", "would run what is only observed"})
	}
	if wants.BreakGlass && !gets.BreakGlass {
		out = append(out, loose{"break_glass", "would let the operator approve it in place of its approvers"})
	}
	return out
}

// loosenedStages compares the stages of an override with the stages that take effect, which are the stages of the tool
// and of the override together. A time that the override leaves out is the tool's.
func loosenedStages(wants, gets []approvers.Stage) (out []loose) {
	var without, longer []string
	for _, s := range gets {
		named, asStrict := false, false
		for _, w := range wants {
			as := w
			as.Rejects, as.ExpiresAfter, as.EscalateAfter = s.Rejects, s.ExpiresAfter, s.EscalateAfter
			if s.Equal(as) {
				named = true
				asStrict = asStrict || max(w.Rejects, 1) <= max(s.Rejects, 1) && w.ExpiresAfter <= s.ExpiresAfter && w.EscalateAfter <= s.EscalateAfter
			}
		}
		switch {
		case !named:
			without = append(without, stageText(s))
		case !asStrict:
			longer = append(longer, stageText(s))
		}
	}
	if len(without) > 0 {
		out = append(out, loose{"stages", "would do without " + strings.Join(without, " and ")})
	}
	if len(longer) > 0 {
		out = append(out, loose{"stages", "would need more rejections or more time to end the stage of " + strings.Join(longer, " and ")})
	}
	return out
}

// stageText returns a stage with its quorum, such as "2 × finance-director".
func stageText(s approvers.Stage) string {
	if s.Quorum > 1 {
		return fmt.Sprintf("%d × %s", s.Quorum, config.StageName(s))
	}
	return config.StageName(s)
}
