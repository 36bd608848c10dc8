package check

import (
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// times warns about times that are never reached, such as reminders after the deadline. times checks each stage of an
// outcome.
func (c *checker) times(o outcome) {
	goesUp := false
	for i, s := range o.plan.Stages {
		t := stageTimes(o.policy, s)
		leads := len(c.leadsAt(o, i))
		goesUp = goesUp || leads > 0
		if t.OnExpiry == approvers.ExpiryEscalates && leads > 0 {
			continue // at the deadline, the lead is notified, and the waiting time starts again
		}
		if leads > 0 && t.EscalateAfter >= t.ExpiresAfter {
			c.warnOnce(c.timeAt(o, s, "escalate_after", "expires_after"),
				fmt.Sprintf("no lead is ever told: a request expires after %s, and a lead would be told after %s", yamldoc.FormatDuration(t.ExpiresAfter), yamldoc.FormatDuration(t.EscalateAfter)),
				"let escalate_after be shorter than expires_after")
			continue
		}
		repeat := "tools." + o.tool + ".repeat" // only the tool's own repeat is checked, because the default repeat is for tools with few leads
		if again := time.Duration(leads+1) * t.EscalateAfter; t.Repeat > 0 && again >= t.ExpiresAfter && c.written(repeat) {
			c.warnOnce(repeat,
				fmt.Sprintf("nobody is ever told again: a request expires after %s, and %s would be told again after %s", yamldoc.FormatDuration(t.ExpiresAfter), s.Title(c.policy), yamldoc.FormatDuration(again)),
				"give it more time, or remove repeat")
		}
		if t.RemindAfter >= t.ExpiresAfter {
			c.warnOnce(c.timeAt(o, s, "remind_after", "expires_after"),
				fmt.Sprintf("nobody is ever reminded: a request expires after %s, and the first reminder would come after %s", yamldoc.FormatDuration(t.ExpiresAfter), yamldoc.FormatDuration(t.RemindAfter)),
				"let remind_after be shorter than expires_after")
		}
	}
	if path := "tools." + o.tool + ".on_expiry"; !goesUp && o.policy.OnExpiry == approvers.ExpiryEscalates && c.written(path) {
		c.warnOnce(path, fmt.Sprintf("does nothing for %s: there is no lead who may decide it, so it is rejected", o.subject()), "add a lead, or remove on_expiry")
	}
}

// stageTimes returns the tool's times. If the stage sets times, they replace the tool's times in the result.
func stageTimes(t approvers.ToolPolicy, s approvers.Stage) approvers.ToolPolicy {
	if s.ExpiresAfter > 0 {
		t.ExpiresAfter = s.ExpiresAfter
	}
	if s.EscalateAfter > 0 {
		t.EscalateAfter = s.EscalateAfter
	}
	return t
}

// timeAt finds the key that sets a time for a stage of the outcome, and returns the key's path in the file. The key
// can be at the stage, at the tool, or in the defaults. Without such a key, timeAt returns the outcome's path.
func (c *checker) timeAt(o outcome, s approvers.Stage, keys ...string) string {
	for _, of := range []string{c.stagePath(o, s), "tools." + o.tool, "defaults"} {
		for _, key := range keys {
			if path := of + "." + key; of != "" && c.written(path) {
				return path
			}
		}
	}
	return o.path(c.file)
}

// written reports whether the policy file has a value at exactly this path.
func (c *checker) written(path string) bool {
	return c.file.Document.Has(path)
}

// stagePath returns the path of a stage of the outcome. The path is empty if the stage comes from routing, because then
// the policy does not name the stage.
func (c *checker) stagePath(o outcome, s approvers.Stage) string {
	at := func(path string, stages []approvers.Stage) string {
		for i, named := range stages {
			if config.SameStage(named, s) || named.Approver == "" && named.Group == s.Group && s.Group != "" {
				return fmt.Sprintf("%s.stages[%d]", path, i)
			}
		}
		return ""
	}
	if a, ok := c.policy.Agent(o.agent); ok {
		if path := at("agents."+o.agent+".overrides."+o.tool, a.Overrides[o.tool].Stages); path != "" {
			return path
		}
	}
	of := "tools." + o.tool
	if !c.written(of) {
		of = "defaults.unknown_tool"
	}
	if path := at(of, o.policy.Stages); path != "" {
		return path
	}
	for _, n := range o.rules {
		if path := at(fmt.Sprintf("%s.rules[%d]", of, n), o.policy.Rules[n].Stages); path != "" {
			return path
		}
	}
	return ""
}

// unused warns if the policy sets a number of reminders, but nobody gets a reminder.
func (c *checker) unused() {
	const hint = "add remind_after: 5m, or remove it"
	reminded := c.policy.Defaults.RemindAfter > 0
	for _, t := range c.policy.Tools {
		now, _ := c.policy.Tool(t.Name, "")
		reminded = reminded || now.RemindAfter > 0
		if path := "tools." + t.Name + ".reminders"; t.Reminders > 0 && now.RemindAfter <= 0 && c.written(path) {
			c.warn(path, "does nothing: nobody is reminded of "+t.Name, hint)
		}
	}
	if path := "defaults.reminders"; c.written(path) && c.policy.Defaults.Reminders > 0 && !reminded {
		c.warn(path, "does nothing: nobody is ever reminded", hint)
	}
}
