package config

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// maxQuorum bounds a stage's quorum: more people than that decide nothing in an hour.
const maxQuorum = 100

// stages reads an order of approvals: role names, or {approver, quorum}.
func (v value) stages() ([]approvers.Stage, bool) {
	items, ok := v.list("[team-lead, {approver: finance-director, quorum: 2}]")
	if !ok {
		return nil, false
	}
	if len(items) == 0 {
		v.wrong("has no stage", "name at least one approver, or leave stages out for the lowest sufficient one")
		return nil, false
	}
	var out []approvers.Stage
	for _, item := range items {
		s, ok := item.stage()
		if !ok {
			continue
		}
		if slices.ContainsFunc(out, func(o approvers.Stage) bool { return o.Approver == s.Approver }) {
			item.wrong(s.Approver+" is named twice", "one person counts once over all stages: use {approver: "+s.Approver+", quorum: 2}")
			continue
		}
		out = append(out, s)
	}
	return out, len(out) == len(items)
}

func (v value) stage() (approvers.Stage, bool) {
	if _, plain := v.node.(*ast.StringNode); plain {
		name, ok := v.text("an approver's name")
		return approvers.Stage{Approver: name, Quorum: 1}, ok
	}
	if !v.isMapping() {
		if v.node != nil {
			v.wrongf("write an approver's name, or {approver: NAME, quorum: 2}", "%s is no stage", v.shown())
		}
		return approvers.Stage{}, false
	}
	s := approvers.Stage{Quorum: 1}
	f := v.fields("approver", "quorum")
	named := false
	if a, ok := f["approver"]; ok {
		s.Approver, named = a.text("an approver's name")
	} else {
		v.wrong("names no approver", "write {approver: NAME, quorum: 2}")
	}
	if q, ok := f["quorum"]; ok {
		n, ok := q.whole(1, maxQuorum)
		if !ok {
			return s, false
		}
		s.Quorum = n
	}
	return s, named
}
