package config

import (
	"regexp"

	"countersign/approvers"
	"countersign/config/condition"
	"countersign/config/yamldoc"
)

// toolName matches valid tool names. Package agent applies the same rule to registered tools.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

var toolKeys = append([]string{
	"risk", "confirm", "preview", "max_auto", "rules", "stages", "self_approval", "break_glass", "mode", "grants", "trust", "secrets", "blind", "when_caller_left",
}, clockKeys...)

func (r reader) tool(e yamldoc.Entry) approvers.ToolPolicy {
	t := approvers.ToolPolicy{Name: e.Key}
	if !toolName.MatchString(e.Key) {
		hint := "a name has 1 to 64 letters, digits, _, . and -"
		if e.Key == "*" {
			hint = "what applies to all other tools is in defaults: unknown_tool"
		}
		e.Wrong("is not a valid name for a tool", hint)
	}
	f := e.Value.Fields(toolKeys...)
	if !readRiskKey(f, "risk", &t.Risk) && e.Value.Readable() && !f.Has("risk") {
		e.Wrong("the risk is missing", "add risk: low, medium, high or critical")
	}
	readStagesKey(f, "stages", &t.Stages)
	// Without the key confirm, a safe default applies: calls wait if the tool's risk is at least high, or if the tool
	// has stages.
	t.Confirm = t.Risk >= approvers.High || len(t.Stages) > 0
	f.Flag("confirm", &t.Confirm)
	if v, ok := f["preview"]; ok {
		t.WithPreview, t.Preview = readPreview(v)
		t.NoPreview = !t.WithPreview
	}
	readLimitKey(f, "max_auto", &t.MaxAuto)
	readClocks(f, clocksOf(&t))
	f.Flag("self_approval", &t.SelfApproval)
	f.Flag("break_glass", &t.BreakGlass)
	readMode(f, &t.Mode)
	if v, ok := f["grants"]; ok {
		t.Grants = readGrants(v)
	}
	if v, ok := f["trust"]; ok {
		t.TrustAfter = readTrust(v, f.Has("grants"))
	}
	t.Secrets = readNames(f, "secrets", nil)
	f.Flag("blind", &t.Blind)
	if text, ok := f.Choice("when_caller_left", []string{callerLeftWait, callerLeftRun}); ok {
		t.RunsUnawaited = text == callerLeftRun
	}
	if v, ok := f["rules"]; ok {
		items, _ := v.List("- when: args.amount > 500")
		for _, item := range items {
			t.Rules = append(t.Rules, r.rule(item))
		}
	}
	return t
}

// rule reads one rule. A rule that raises the risk to high or above also makes the call wait, unless the rule has
// confirm: false.
func (r reader) rule(v yamldoc.Value) approvers.Rule {
	var out approvers.Rule
	f := v.Fields("when", "risk", "confirm", "stages")
	if w, ok := f["when"]; ok {
		var compiled *condition.Compiled
		if out.When, compiled = condition.Read(w); compiled != nil {
			r.file.Conditions[w.Path] = compiled
		}
	} else if v.IsMapping() {
		v.Wrong("has no when", "add when: and a condition, such as args.amount > 500")
	}
	readRiskKey(f, "risk", &out.Risk)
	readStagesKey(f, "stages", &out.Stages)
	out.Confirm = out.Risk >= approvers.High
	f.Flag("confirm", &out.Confirm)
	if v.IsMapping() && f.Readable() && !f.Has("risk") && !f.Has("confirm") && !f.Has("stages") {
		v.Wrong("changes nothing", "add risk, confirm or stages")
	}
	return out
}

// The choices for an approved MCP call whose caller has left.
const (
	callerLeftWait = "wait"
	callerLeftRun  = "run"
)

const enforce = "enforce"

// readMode reads the mode. The mode says whether calls with effects run.
func readMode(f yamldoc.Fields, to *approvers.Mode) bool {
	text, ok := f.Choice("mode", []string{string(approvers.Observe), enforce})
	switch {
	case !ok:
		return false
	case text == enforce:
		*to = approvers.Enforce
	default:
		*to = approvers.Observe
	}
	return true
}
