package check

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// waitingText returns several parts. toldPart is the index of the part that says when leads are notified.
const toldPart = 1

// waitingText describes how long a call waits, and who is notified while the call waits. waitingText always returns
// the same number of parts. A part may be empty.
func waitingText(t approvers.ToolPolicy) []string {
	reminded := ""
	if t.RemindAfter > 0 && t.Reminders > 0 {
		reminded = fmt.Sprintf("people are reminded every %s, at most %s", yamldoc.FormatDuration(t.RemindAfter), often(t.Reminders))
	}
	told := "a lead is told after " + yamldoc.FormatDuration(t.EscalateAfter)
	if t.Repeat > 0 {
		told += ", and all are told again " + often(t.Repeat)
	}
	silence := "silence rejects after " + yamldoc.FormatDuration(t.ExpiresAfter)
	if t.OnExpiry == approvers.ExpiryEscalates {
		silence = fmt.Sprintf("after %s of silence a call goes up to the next lead, or is rejected if there is none", yamldoc.FormatDuration(t.ExpiresAfter))
	}
	return []string{reminded, told, silence, "an approved call starts within " + yamldoc.FormatDuration(t.RunWithin)}
}

func often(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// usually describes the policy's default times. A tool's own settings may differ from these times.
func usually(d approvers.Defaults) string {
	var said []string
	for _, part := range waitingText(defaultTimes(d)) {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "; ")
}

func defaultTimes(d approvers.Defaults) approvers.ToolPolicy {
	return approvers.ToolPolicy{
		ExpiresAfter: d.ExpiresAfter, EscalateAfter: d.EscalateAfter, RunWithin: d.RunWithin,
		RemindAfter: d.RemindAfter, Reminders: d.Reminders, Repeat: d.Repeat, OnExpiry: d.OnExpiry,
	}
}

// notes lists the settings of an outcome that differ from the defaults. The function leaves out the stages.
func (c *checker) notes(o outcome) []string {
	if c.policy.Mode != approvers.Observe && o.policy.Mode == approvers.Observe {
		return []string{"only observed: it is not run, and nobody is asked"}
	}
	var out []string
	usual := waitingText(defaultTimes(c.policy.Defaults))
	var differs []string
	for i, part := range waitingText(o.policy) {
		switch {
		case part == usual[i] || i == toldPart && o.policy.Repeat <= 0 && !c.hasLead(o):
		case part == "":
			differs = append(differs, "nobody is reminded")
		default:
			differs = append(differs, part)
		}
	}
	if len(differs) > 0 {
		out = append(out, strings.Join(differs, "; "))
	}
	if g := o.policy.Grants; g.Allowed() && ungrantable(o) == "" {
		text := grantText(g)
		if n := o.policy.TrustAfter; n > 0 {
			to := map[bool]string{true: "the lead", false: "the approver, who has no lead,"}[c.hasLead(o)]
			text += fmt.Sprintf("; proposed to %s after %s in a row that were approved unchanged", to, yamldoc.Count(n, "call"))
		}
		out = append(out, text)
	}
	if o.policy.SelfApproval {
		out = append(out, "the person who asked for it may approve it too")
	}
	if o.policy.Blind {
		out = append(out, "masked values need not be revealed before an approval (blind)")
	}
	if o.policy.BreakGlass {
		out = append(out, "the operator may approve it at the command line (break glass)")
	}
	return out
}

func (c *checker) hasLead(o outcome) bool {
	for i := range o.plan.Stages {
		if len(c.leadsAt(o, i)) > 0 {
			return true
		}
	}
	return false
}

// stageTitle names a stage's people: the titles of the stage's roles, and the user group to which the people must
// belong.
func stageTitle(p *approvers.Policy, s approvers.Stage) string {
	group := s.Group
	s.Group = ""
	if title := s.Title(p); group == "" {
		return title
	} else if s.Approver != "" {
		return config.GroupText(group) + " as " + title
	}
	return config.GroupText(group)
}

// stageTerms lists the settings that a stage overrides.
func stageTerms(s approvers.Stage) []string {
	var out []string
	if s.Rejects > 1 {
		out = append(out, fmt.Sprintf("%d rejections end it", s.Rejects))
	}
	if s.EscalateAfter > 0 {
		out = append(out, "a lead is told after "+yamldoc.FormatDuration(s.EscalateAfter))
	}
	if s.ExpiresAfter > 0 {
		out = append(out, "its time is over after "+yamldoc.FormatDuration(s.ExpiresAfter))
	}
	return out
}

// grantText describes which grants may be given.
func grantText(g approvers.GrantTerms) string {
	text := fmt.Sprintf("can be granted for up to %s within %s", yamldoc.Count(g.Uses, "call"), yamldoc.FormatDuration(g.Within))
	if len(g.AtMost) > 0 {
		text += ", bounded by " + strings.Join(g.AtMost, ", ")
	}
	if len(g.Same) > 0 {
		text += ", for the same " + strings.Join(g.Same, ", ")
	}
	return text
}
