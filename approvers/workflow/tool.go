package workflow

import "countersign/approvers"

// tool finds a tool as it may be called under the policy: one that is blocked because it is not what the operator
// pinned may be, where the policy counts it as one of which nothing is known.
func (t *tx) tool(name string) (Tool, bool) {
	tool, ok := t.w.Tools.Tool(name)
	if _, distrusted := t.policy.Distrusts(name); distrusted {
		tool.Blocked = ""
	}
	return tool, ok
}

// unlike says why what was asked for can't be run any more with the tool as it is now, or "". hash is of the definition
// that it was asked for with.
func (t *tx) unlike(name, hash string) string {
	tool, ok := t.tool(name)
	switch {
	case !ok:
		return "the tool " + name + " is not there any more"
	case tool.Blocked != "":
		return tool.look()
	case tool.Hash != hash:
		return "the definition of the tool changed"
	}
	return ""
}

// look says why a blocked tool can't be called, and who can mend that.
func (t Tool) look() string {
	return t.Name + " can't be called now, because " + t.Blocked + ": the operator has to look at it"
}

// Callable reports whether a tool may be called at all under a policy.
func (t Tool) Callable(p *approvers.Policy) bool {
	if t.Blocked == "" {
		return true
	}
	_, distrusted := p.Distrusts(t.Name)
	return distrusted
}
