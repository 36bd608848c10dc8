package workflow

import "countersign/approvers"

// tool finds a tool as the policy lets it be called. A tool that differs from its pinned definition is not blocked if
// the policy treats it as an unknown tool.
func (t *tx) tool(name string) (Tool, bool) {
	tool, ok := t.w.Tools.Tool(name)
	if _, distrusted := t.policy.Distrusts(name); distrusted {
		tool.Blocked = ""
	}
	return tool, ok
}

// unlike returns the reason why a call can't run with the tool's current definition, or "". hash is that of the
// definition for which the call was made.
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

// look returns the reason why a blocked tool can't be called, and who can fix that.
func (t Tool) look() string {
	return t.Name + " can't be called now, because " + t.Blocked + ": the operator has to look at it"
}

// Callable reports whether a policy lets the tool be called at all.
func (t Tool) Callable(p *approvers.Policy) bool {
	if t.Blocked == "" {
		return true
	}
	_, distrusted := p.Distrusts(t.Name)
	return distrusted
}
