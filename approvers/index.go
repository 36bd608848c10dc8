package approvers

import (
	"cmp"
	"slices"
)

// index looks up tools, roles and the approvers of a tool without scanning the policy.
type index struct {
	tools  map[string]int
	roles  map[string]int
	byTool map[string][]int // roles that name the tool, by rising ceiling, then file order
	all    []int            // roles whose list is "*", likewise
}

// Indexed returns the policy with an index, which makes routing fast with many tools and approvers and changes no
// result. The policy must not be changed afterwards; index a changed copy again.
func (p Policy) Indexed() *Policy {
	x := &index{tools: map[string]int{}, roles: map[string]int{}, byTool: map[string][]int{}}
	for i, t := range p.Tools {
		if _, twice := x.tools[t.Name]; !twice {
			x.tools[t.Name] = i
		}
	}
	for i, r := range p.Approvers {
		if _, twice := x.roles[r.Name]; !twice {
			x.roles[r.Name] = i
		}
		if slices.Contains(r.CanApprove, "*") {
			x.all = append(x.all, i)
			continue
		}
		for _, tool := range slices.Compact(slices.Sorted(slices.Values(r.CanApprove))) {
			x.byTool[tool] = append(x.byTool[tool], i)
		}
	}
	byCeiling := func(a, b int) int { return cmp.Compare(p.Approvers[a].MaxRisk, p.Approvers[b].MaxRisk) }
	slices.SortStableFunc(x.all, byCeiling)
	for _, roles := range x.byTool {
		slices.SortStableFunc(roles, byCeiling)
	}
	p.index = x
	return &p
}

// tool finds the policy's own entry for a tool.
func (p *Policy) tool(name string) (ToolPolicy, bool) {
	if p.index != nil {
		i, ok := p.index.tools[name]
		if !ok {
			return ToolPolicy{}, false
		}
		return p.Tools[i], true
	}
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			return p.Tools[i], true
		}
	}
	return ToolPolicy{}, false
}

// covering visits the roles whose tool list has the tool and whose ceiling is at least the risk, in routing order: by
// rising ceiling, then by file order. It stops when visit returns false.
func (p *Policy) covering(tool string, risk Risk, visit func(Role) bool) {
	x := p.index
	if x == nil {
		x = p.Indexed().index
	}
	named, all := p.atLeast(x.byTool[tool], risk), p.atLeast(x.all, risk)
	for len(named) > 0 || len(all) > 0 {
		from := &all
		if len(all) == 0 || len(named) > 0 && p.before(named[0], all[0]) {
			from = &named
		}
		if !visit(p.Approvers[(*from)[0]]) {
			return
		}
		*from = (*from)[1:]
	}
}

// atLeast returns the roles whose ceiling is at least the risk. The input is sorted by rising ceiling.
func (p *Policy) atLeast(roles []int, risk Risk) []int {
	first, _ := slices.BinarySearchFunc(roles, risk, func(i int, risk Risk) int { return cmp.Compare(p.Approvers[i].MaxRisk, risk) })
	return roles[first:]
}

func (p *Policy) before(a, b int) bool {
	return cmp.Or(cmp.Compare(p.Approvers[a].MaxRisk, p.Approvers[b].MaxRisk), cmp.Compare(a, b)) < 0
}
