package config

import (
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// maxQuorum limits a stage's quorum and its number of rejections, because more people could hardly decide before the
// deadline.
const maxQuorum = 100

// readStages reads a sequence of stages: role names, or mappings.
func readStages(v yamldoc.Value) ([]approvers.Stage, bool) {
	items, ok := v.List("[team-lead, {approver: finance-director, quorum: 2}]")
	if !ok {
		return nil, false
	}
	if len(items) == 0 {
		v.Wrong("has no stage", "name at least one approver, or leave stages out: then the first role that may approve calls of that risk decides")
		return nil, false
	}
	var out []approvers.Stage
	for _, item := range items {
		s, ok := readStage(item)
		if !ok {
			continue
		}
		if slices.ContainsFunc(out, func(o approvers.Stage) bool { return SameStage(o, s) }) {
			item.Wrong(StageName(s)+" is named twice", "one person counts once over all stages: use one stage with a larger quorum, such as "+stageWith(s, "quorum: 2"))
			continue
		}
		out = append(out, s)
	}
	return out, len(out) == len(items)
}

// SameStage reports whether two stages name the same roles, in any order, and the same user group.
func SameStage(a, b approvers.Stage) bool {
	return a.Group == b.Group && slices.Equal(yamldoc.SortedUnique(a.Roles()), yamldoc.SortedUnique(b.Roles()))
}

// StageName returns a stage in the form that the policy uses.
func StageName(s approvers.Stage) string {
	var parts []string
	if s.Approver != "" {
		parts = append(parts, strings.Join(s.Roles(), " or "))
	}
	if s.Group != "" {
		parts = append(parts, GroupText(s.Group))
	}
	return strings.Join(parts, " in ")
}

// stageWith returns a stage in YAML with one more key, for a hint.
func stageWith(s approvers.Stage, more string) string {
	var keys []string
	switch {
	case len(s.Or) > 0:
		keys = append(keys, "approvers: ["+strings.Join(s.Roles(), ", ")+"]")
	case s.Approver != "":
		keys = append(keys, "approver: "+s.Approver)
	}
	if s.Group != "" {
		keys = append(keys, `group: "`+GroupText(s.Group)+`"`)
	}
	return "{" + strings.Join(append(keys, more), ", ") + "}"
}

func readStage(v yamldoc.Value) (approvers.Stage, bool) {
	if _, ok := v.Word(); ok {
		name, ok := v.Text("an approver's name")
		return approvers.Stage{Approver: name, Quorum: 1}, ok
	}
	if !v.IsMapping() {
		if v.Readable() {
			v.Wrongf("write an approver's name, or {approver: NAME, quorum: 2}", "%s is not a stage", v.Shown())
		}
		return approvers.Stage{}, false
	}
	s := approvers.Stage{Quorum: 1}
	before := v.ProblemCount()
	f := v.Fields("approver", "approvers", "group", "quorum", "rejects", "expires_after", "escalate_after")
	readStagePeople(v, f, &s)
	f.Count("quorum", &s.Quorum, maxQuorum)
	f.Count("rejects", &s.Rejects, maxQuorum)
	f.Duration("expires_after", &s.ExpiresAfter)
	f.Duration("escalate_after", &s.EscalateAfter)
	return s, v.ProblemCount() == before && f.Readable()
}

// readStagePeople reads the people of a stage. The people of a stage are the people of one role, of several roles or
// of a user group. If a stage has roles and a group, its people are in the group and in at least one of the roles.
func readStagePeople(v yamldoc.Value, f yamldoc.Fields, s *approvers.Stage) {
	one, hasOne := f["approver"]
	several, hasSeveral := f["approvers"]
	group, hasGroup := f["group"]
	switch {
	case hasOne && hasSeveral:
		v.Wrong("has both approver and approvers", "write approvers: [one, another] alone")
	case hasOne:
		s.Approver, _ = one.Text("an approver's name")
	case hasSeveral:
		readStageRoles(several, s)
	case !hasGroup:
		v.Wrong("names no approver", `write {approver: NAME, quorum: 2}, {approvers: [ONE, ANOTHER]} or {group: "@finance"}`)
	}
	if hasGroup {
		s.Group, _ = readGroup(group)
	}
}

// readStageRoles reads the roles of a stage with several roles.
func readStageRoles(v yamldoc.Value, s *approvers.Stage) {
	items, ok := v.List("[team-lead, finance-director]")
	if ok && len(items) == 0 {
		v.Wrong("names no approver", "write approvers: [team-lead, finance-director]")
	}
	var names []string
	for _, item := range items {
		name, ok := item.Text("an approver's name")
		switch {
		case !ok:
		case slices.Contains(names, name):
			item.Wrong(name+" is named twice", "name it once; to require two people, write quorum: 2")
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

// readGroup reads a user group by handle or id.
func readGroup(v yamldoc.Value) (string, bool) {
	text, ok := v.Text(`a user group such as "@finance"`)
	switch {
	case !ok:
	case groupID.MatchString(text):
		return text, true
	case groupHandle.MatchString(text):
		return text[1:], true
	case groupHandle.MatchString("@" + text):
		v.Wrong(yamldoc.Quote(text)+" is not a user group", `write "@`+text+`" if that group is meant`)
	default:
		v.Wrong(yamldoc.Quote(text)+" is not a user group", `write a handle such as "@finance", in lower case, or an id such as S0123ABCD`)
	}
	return "", false
}

func readStagesKey(f yamldoc.Fields, key string, to *[]approvers.Stage) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	s, ok := readStages(v)
	if ok {
		*to = s
	}
	return ok
}

// GroupText formats a user group as the policy writes it: an id, or a handle with the @.
func GroupText(group string) string {
	if groupID.MatchString(group) {
		return group
	}
	return "@" + group
}
