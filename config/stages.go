package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// maxQuorum bounds a stage's quorum: more people than that decide nothing in an hour.
const maxQuorum = 100

// stages reads an order of approvals: role names, or mappings.
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
		if slices.ContainsFunc(out, func(o approvers.Stage) bool { return sameStage(o, s) }) {
			item.wrong(stageName(s)+" is named twice", "one person counts once over all stages: use one stage with a larger quorum, such as "+stageWith(s, "quorum: 2"))
			continue
		}
		out = append(out, s)
	}
	return out, len(out) == len(items)
}

// sameStage reports whether two stages are passed by the same people, in whichever order the roles are named.
func sameStage(a, b approvers.Stage) bool {
	return a.Group == b.Group && slices.Equal(sorted(a.Roles()), sorted(b.Roles()))
}

// stageName is a stage as the policy names it.
func stageName(s approvers.Stage) string {
	var parts []string
	if s.Approver != "" {
		parts = append(parts, strings.Join(s.Roles(), " or "))
	}
	if s.Group != "" {
		parts = append(parts, groupText(s.Group))
	}
	return strings.Join(parts, " in ")
}

// stageWith is a stage as it is written, with one more key.
func stageWith(s approvers.Stage, more string) string {
	var keys []string
	switch {
	case len(s.Or) > 0:
		keys = append(keys, "approvers: ["+strings.Join(s.Roles(), ", ")+"]")
	case s.Approver != "":
		keys = append(keys, "approver: "+s.Approver)
	}
	if s.Group != "" {
		keys = append(keys, `group: "`+groupText(s.Group)+`"`)
	}
	return "{" + strings.Join(append(keys, more), ", ") + "}"
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
	before := len(v.r.problems)
	f := v.fields("approver", "approvers", "group", "quorum", "rejects", "expires_after", "escalate_after")
	v.whose(f, &s)
	f.count("quorum", &s.Quorum, maxQuorum)
	f.count("rejects", &s.Rejects, maxQuorum)
	f.duration("expires_after", &s.ExpiresAfter)
	f.duration("escalate_after", &s.EscalateAfter)
	return s, len(v.r.problems) == before && f.readable()
}

// whose reads whose people count at a stage: those of a role, of several, of a user group, or of roles as far as they are in the group.
func (v value) whose(f fieldset, s *approvers.Stage) {
	one, hasOne := f["approver"]
	several, hasSeveral := f["approvers"]
	group, hasGroup := f["group"]
	switch {
	case hasOne && hasSeveral:
		v.wrong("has both approver and approvers", "write approvers: [one, another] alone")
	case hasOne:
		s.Approver, _ = one.text("an approver's name")
	case hasSeveral:
		several.roles(s)
	case !hasGroup:
		v.wrong("names no approver", `write {approver: NAME, quorum: 2}, {approvers: [ONE, ANOTHER]} or {group: "@finance"}`)
	}
	if hasGroup {
		s.Group, _ = group.group()
	}
}

// roles reads the several roles of a stage.
func (v value) roles(s *approvers.Stage) {
	items, ok := v.list("[team-lead, finance-director]")
	if ok && len(items) == 0 {
		v.wrong("names no approver", "write approvers: [team-lead, finance-director]")
	}
	var names []string
	for _, item := range items {
		name, ok := item.text("an approver's name")
		switch {
		case !ok:
		case slices.Contains(names, name):
			item.wrong(name+" is named twice", "name it once: for two people of it write quorum: 2")
		default:
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		s.Approver, s.Or = names[0], names[1:]
	}
	if len(s.Or) == 0 {
		s.Or = nil
	}
}

// group reads a user group by handle or id.
func (v value) group() (string, bool) {
	text, ok := v.text(`a user group such as "@finance"`)
	switch {
	case !ok:
	case groupID.MatchString(text):
		return text, true
	case groupHandle.MatchString(text):
		return text[1:], true
	case groupHandle.MatchString("@" + text):
		v.wrong(quote(text)+" is no user group", `write "@`+text+`" if that group is meant`)
	default:
		v.wrong(quote(text)+" is no user group", `write a handle such as "@finance", in lower case, or an id such as S0123ABCD`)
	}
	return "", false
}
