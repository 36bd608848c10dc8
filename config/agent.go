package config

import (
	"countersign/approvers"
)

const (
	mostSteps = 50
	// maxPrompt keeps a prompt from eating the model's context.
	maxPrompt = 32 << 10
)

// agent reads one agent. budgets are the policy's, which hold where the agent's say nothing.
func (r *reader) agent(e entry, budgets approvers.Budgets) approvers.Agent {
	a := approvers.Agent{Name: e.key, MaxSteps: maxSteps}
	if !roleName.MatchString(e.key) {
		r.wrongAt(e.at, e.value.path+": no agent can be called that", "a name has 1 to 64 letters, digits, _ and -")
	}
	f := e.value.fields("channels", "prompt", "model", "tools", "overrides", "guests", "direct_messages", "max_steps", "budgets")
	if v, ok := f["channels"]; ok {
		a.Channels = v.channels()
	}
	if v, ok := f["prompt"]; ok {
		a.Prompt, _ = v.free("what the model is told of its task")
		if len(a.Prompt) > maxPrompt {
			v.wrongf("shorten it", "is longer than %d KiB", maxPrompt>>10)
		}
	}
	if v, ok := f["model"]; ok {
		a.Model, _ = v.free("a model's name as the endpoint knows it")
	}
	if v, ok := f["tools"]; ok {
		a.Tools = v.texts(`[search_orders], or ["*"] for every tool`, `a tool's name, or "*"`)
	} else if e.value.isMapping() {
		r.wrongAt(e.at, e.value.path+": tools is missing", `add which tools the model is offered: tools: [search_orders], or ["*"] for every tool`)
	}
	if v, ok := f["overrides"]; ok && !v.empty() {
		a.Overrides = r.overrides(v)
	}
	f.flag("guests", &a.AllowGuests)
	direct := true
	f.flag("direct_messages", &direct)
	a.NoDM = !direct
	if v, ok := f["max_steps"]; ok {
		if n, ok := v.whole(1, mostSteps); ok {
			a.MaxSteps = n
		}
	}
	if v, ok := f["budgets"]; ok {
		own := v.budgets(budgets)
		a.Budgets = &own
	}
	return a
}

func (v value) channels() []string {
	items, _ := v.list(`["#support"], or ["*"] for every channel that the bot is in`)
	var out []string
	for _, item := range items {
		text, ok := item.free(`a channel such as "#support"`)
		if !ok {
			continue
		}
		if text != "*" && !isChannel(text) {
			hint := `write a name such as "#support", an id such as C0123ABCD, or "*"`
			if isChannel("#" + text) {
				hint = `write "#` + text + `" if that channel is meant`
			}
			item.wrong(quote(text)+" is no channel", hint)
			continue
		}
		out = append(out, text)
	}
	return out
}

// overrides reads what is otherwise for one agent. Its keys are tools.
func (r *reader) overrides(v value) map[string]approvers.Override {
	out := map[string]approvers.Override{}
	for _, e := range v.entries("overrides: tool: {confirm: true}") {
		var o approvers.Override
		f := e.value.fields("risk", "confirm", "max_auto", "stages", "mode")
		f.risk("risk", &o.Risk)
		f.stages("stages", &o.Stages)
		var confirm bool
		switch {
		case f.flag("confirm", &confirm):
			o.Confirm = &confirm
		case (o.Risk >= approvers.High || len(o.Stages) > 0) && !f.has("confirm"):
			confirm = true // as for a tool of that risk, or with stages: silence is the careful answer
			o.Confirm = &confirm
		}
		var limit approvers.Limit
		if f.limit("max_auto", &limit) {
			o.MaxAuto = &limit
		}
		var mode approvers.Mode
		if f.mode(&mode) {
			o.Mode = &mode
		}
		if e.value.isMapping() && len(f) == 0 {
			e.value.wrong("changes nothing", "add risk, confirm, max_auto, stages or mode")
		}
		out[e.key] = o
	}
	return out
}
