package config

import (
	"slices"

	"countersign/approvers"
)

const (
	mostOpenCards   = 1000
	mostTokens      = 1_000_000_000
	mostCallsPerDay = 1_000_000
	mostUses        = 1000
	mostStreak      = 1000
)

// caps reads how much is put before people.
func (v value) caps() approvers.Caps {
	var c approvers.Caps
	f := v.fields("requester", "approver")
	if l, ok := f["requester"]; ok {
		c.Requester, _ = l.limitOr("would let nobody ask for anything", "leave it out for no cap")
	}
	f.count("approver", &c.Approver, mostOpenCards)
	if v.isMapping() && len(f) == 0 {
		v.wrong("bounds nothing", "add requester: 20/h or approver: 10")
	}
	return c
}

// budgets reads what one person may use up on a day. What it does not say stays as it is in base.
func (v value) budgets(base approvers.Budgets) approvers.Budgets {
	f := v.fields("tokens", "calls")
	f.count("tokens", &base.Tokens, mostTokens)
	f.count("calls", &base.Calls, mostCallsPerDay)
	if v.isMapping() && len(f) == 0 {
		v.wrong("bounds nothing", "add tokens: 200000 or calls: 50")
	}
	return base
}

// grants reads what an approver may grant at most.
func (v value) grants() approvers.GrantTerms {
	var g approvers.GrantTerms
	f := v.fields("uses", "within", "at_most", "same")
	for _, need := range [][2]string{{"uses", "uses: 5, for how many calls a grant holds at most"}, {"within", "within: 1h, for how long it holds at most"}} {
		if v.isMapping() && !f.has(need[0]) {
			v.wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	f.count("uses", &g.Uses, mostUses)
	f.duration("within", &g.Within)
	g.AtMost = f.names("at_most", nil)
	g.Same = f.names("same", g.AtMost)
	return g
}

// names reads a list of arguments, each of which is named once, and not among the others.
func (f fieldset) names(key string, others []string) []string {
	v, ok := f[key]
	if !ok {
		return nil
	}
	items, _ := v.list("[amount]")
	var out []string
	for _, item := range items {
		name, ok := item.free("an argument's name")
		if !ok {
			continue
		}
		switch {
		case slices.Contains(out, name):
			item.wrong(name+" is named twice", "remove one of them")
		case slices.Contains(others, name):
			item.wrong(name+" is in at_most already", "remove one of them: an argument that has to be the same needs no greatest value")
		default:
			out = append(out, name)
		}
	}
	return out
}

// trust reads after how many calls in a row a grant is proposed.
func (v value) trust(granted bool) int {
	after := 0
	f := v.fields("after")
	if !f.count("after", &after, mostStreak) && v.isMapping() && !f.has("after") {
		v.wrong("after is missing", "add after: 20, for how many calls in a row that were approved as they were")
	}
	if !granted {
		v.wrong("needs grants: what is proposed is a grant", "add grants: {uses: 5, within: 1h}, or remove trust")
	}
	return after
}

// count reads a whole number from 1.
func (f fieldset) count(key string, to *int, most int) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	n, ok := v.whole(1, most)
	if ok {
		*to = n
	}
	return ok
}
