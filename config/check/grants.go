package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
)

// grants warns about grants that can never be given, grants of calls with masked arguments, and grants of high-risk
// calls with any arguments.
func (c *checker) grants(t approvers.ToolPolicy) {
	if !t.Grants.Allowed() {
		return
	}
	path := "tools." + t.Name + ".grants"
	var possible []outcome
	why := ""
	for _, o := range c.outcomes(t.Name, "") {
		if reason := ungrantable(o); reason == "" {
			possible = append(possible, o)
		} else if why == "" {
			why = reason
		}
	}
	if len(possible) == 0 {
		c.warn(path, "does nothing: "+why, "remove it")
		return
	}
	own, _, _ := c.find(t.Name)
	for _, secret := range approvers.Secrets(t.Secrets, approvers.SecretPaths(own.Schema)) {
		if arg, _, _ := strings.Cut(secret, "."); !t.Blind && !slices.Contains(t.Grants.Same, arg) {
			c.warn(path, fmt.Sprintf("no call with %s can be granted, because it is masked, and the person who grants it would not see later values", secret), "add same: ["+arg+"], or blind: true if nobody has to see it")
		}
	}
	if t.Risk >= approvers.High && len(t.Grants.AtMost)+len(t.Grants.Same) == 0 {
		c.warn(path, fmt.Sprintf("a grant covers calls to %s with any arguments, and it is %s risk", t.Name, t.Risk), "add at_most or same, such as at_most: [amount], same: [currency]")
	}
}

// ungrantable returns the reason why a grant can't cover calls of the outcome, or "".
func ungrantable(o outcome) string {
	switch {
	case o.plan.Verdict == approvers.Refuse:
		return "nobody could allow the call"
	case o.plan.Verdict == approvers.Auto:
		return "calls to " + o.tool + " run without anybody being asked"
	case o.plan.Risk >= approvers.Critical:
		return "critical calls always ask"
	case len(o.plan.Stages) > 1 || o.plan.Stages[0].Quorum > 1:
		return "the call needs more than one person, and a grant counts as one"
	}
	return ""
}
