package config

import (
	"regexp"

	"countersign/approvers"
)

// toolName is what a tool may be called; package agent holds registered tools to the same.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

var toolKeys = append([]string{"risk", "confirm", "preview", "max_auto", "rules", "stages", "self_approval", "break_glass", "mode", "grants", "trust", "secrets"}, clockKeys...)

func (r *reader) tool(e entry) approvers.ToolPolicy {
	t := approvers.ToolPolicy{Name: e.key}
	if !toolName.MatchString(e.key) {
		hint := "a name has 1 to 64 letters, digits, _, . and -"
		if e.key == "*" {
			hint = "what applies to all other tools is in defaults: unknown_tool"
		}
		r.wrongAt(e.at, e.value.path+": no tool can be called that", hint)
	}
	f := e.value.fields(toolKeys...)
	if !f.risk("risk", &t.Risk) && e.value.node != nil && !f.has("risk") {
		r.wrongAt(e.at, e.value.path+": the risk is missing", "add risk: low, medium, high or critical")
	}
	f.stages("stages", &t.Stages)
	// Silence is the careful answer: from high risk on, and where stages are named, a tool waits unless the operator says otherwise.
	t.Confirm = t.Risk >= approvers.High || len(t.Stages) > 0
	f.flag("confirm", &t.Confirm)
	if v, ok := f["preview"]; ok {
		t.WithPreview, t.Preview = v.preview()
		t.NoPreview = !t.WithPreview
	}
	f.limit("max_auto", &t.MaxAuto)
	f.clocks(clocksOf(&t))
	f.flag("self_approval", &t.SelfApproval)
	f.flag("break_glass", &t.BreakGlass)
	f.mode(&t.Mode)
	if v, ok := f["grants"]; ok {
		t.Grants = v.grants()
	}
	if v, ok := f["trust"]; ok {
		t.TrustAfter = v.trust(f.has("grants"))
	}
	t.Secrets = f.names("secrets", nil)
	if v, ok := f["rules"]; ok {
		items, _ := v.list("- when: args.amount > 500")
		for _, item := range items {
			t.Rules = append(t.Rules, r.rule(item))
		}
	}
	return t
}

// rule reads one rule. One that raises the risk to high or above also makes the call wait, unless it says confirm: false.
func (r *reader) rule(v value) approvers.Rule {
	var out approvers.Rule
	f := v.fields("when", "risk", "confirm", "stages")
	if w, ok := f["when"]; ok {
		out.When = w.condition()
	} else if v.isMapping() {
		v.wrong("has no when", "add when: and a condition, such as args.amount > 500")
	}
	f.risk("risk", &out.Risk)
	f.stages("stages", &out.Stages)
	out.Confirm = out.Risk >= approvers.High
	f.flag("confirm", &out.Confirm)
	if v.isMapping() && f.readable() && !f.has("risk") && !f.has("confirm") && !f.has("stages") {
		v.wrong("changes nothing", "add risk, confirm or stages")
	}
	return out
}
