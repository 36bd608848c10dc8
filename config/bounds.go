package config

import (
	"slices"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

const (
	mostOpenCards   = 1000
	mostTokens      = 1_000_000_000
	mostCallsPerDay = 1_000_000
	mostUses        = 1000
	mostStreak      = 1000
)

// readCaps reads the limits on requests to people.
func readCaps(v yamldoc.Value) approvers.Caps {
	var c approvers.Caps
	f := v.Fields("requester", "approver")
	if l, ok := f["requester"]; ok {
		c.Requester, _ = readLimitOr(l, "would let nobody ask for anything", "leave it out for no cap")
	}
	f.Count("approver", &c.Approver, mostOpenCards)
	if v.IsMapping() && len(f) == 0 {
		v.Wrong("sets no limit", "add requester: 20/h or approver: 10")
	}
	return c
}

// readBudgets reads a person's daily budgets. If a value is missing, the result has the value from base.
func readBudgets(v yamldoc.Value, base approvers.Budgets) approvers.Budgets {
	f := v.Fields("tokens", "calls")
	f.Count("tokens", &base.Tokens, mostTokens)
	f.Count("calls", &base.Calls, mostCallsPerDay)
	if v.IsMapping() && len(f) == 0 {
		v.Wrong("sets no limit", "add tokens: 200000 or calls: 50")
	}
	return base
}

// readGrants reads the limits of the grants that an approver may give.
func readGrants(v yamldoc.Value) approvers.GrantTerms {
	var g approvers.GrantTerms
	f := v.Fields("uses", "within", "at_most", "same")
	for _, need := range [][2]string{{"uses", "uses: 5, the maximum number of calls under one grant"}, {"within", "within: 1h, the maximum duration of a grant"}} {
		if v.IsMapping() && !f.Has(need[0]) {
			v.Wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	f.Count("uses", &g.Uses, mostUses)
	f.Duration("within", &g.Within)
	g.AtMost = readNames(f, "at_most", nil)
	g.Same = readNames(f, "same", g.AtMost)
	return g
}

// readNames reads a list of arguments. An argument that is listed twice, or is in the list others, is an error.
func readNames(f yamldoc.Fields, key string, others []string) []string {
	v, ok := f[key]
	if !ok {
		return nil
	}
	items, _ := v.List("[amount]")
	var out []string
	for _, item := range items {
		name, ok := item.Free("an argument's name")
		if !ok {
			continue
		}
		switch {
		case slices.Contains(out, name):
			item.Wrong(name+" is named twice", "remove one of them")
		case slices.Contains(others, name):
			item.Wrong(name+" is in at_most already", "remove one of them: an argument that has to be the same needs no maximum")
		default:
			out = append(out, name)
		}
	}
	return out
}

// readTrust reads the number of successive calls after which a grant is offered.
func readTrust(v yamldoc.Value, granted bool) int {
	after := 0
	f := v.Fields("after")
	if !f.Count("after", &after, mostStreak) && v.IsMapping() && !f.Has("after") {
		v.Wrong("after is missing", "add after: 20, the number of calls in a row that were approved unchanged")
	}
	if !granted {
		v.Wrong("needs grants: what is proposed is a grant", "add grants: {uses: 5, within: 1h}, or remove trust")
	}
	return after
}
