package config

import (
	"unicode/utf8"

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
	f := e.value.fields("channels", "prompt", "model", "tools", "overrides", "guests", "direct_messages", "max_steps", "budgets", "prompts")
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
	if v, ok := f["prompts"]; ok {
		a.Prompts = v.prompts()
	}
	return a
}

// Sizes of a prompt, in characters. Ours: a title is read on a button, and Slack names no limits.
const (
	maxPromptTitle   = 75
	maxPromptMessage = 1000
)

// prompts reads what people are offered to ask for.
func (v value) prompts() []approvers.Prompt {
	items, _ := v.list(`[{title: Find an order, message: Where is order ORD-123?}]`)
	if len(items) > approvers.MaxPrompts {
		v.wrongf("keep the most useful ones", "has %d prompts; Slack shows %d", len(items), approvers.MaxPrompts)
	}
	var out []approvers.Prompt
	for _, item := range items {
		var p approvers.Prompt
		f := item.fields("title", "message")
		for _, part := range []struct {
			key  string
			like string
			most int
			to   *string
		}{{"title", "what people read", maxPromptTitle, &p.Title}, {"message", "what they say when they choose it", maxPromptMessage, &p.Message}} {
			text, ok := f[part.key]
			if !ok {
				if item.isMapping() {
					item.wrong(part.key+" is missing", "add "+part.key+": "+part.like)
				}
				continue
			}
			if *part.to, ok = text.free(part.like); ok && utf8.RuneCountInString(*part.to) > part.most {
				text.wrongf("shorten it", "is longer than %d characters", part.most)
			}
		}
		out = append(out, p)
	}
	return out
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
		f := e.value.fields("risk", "confirm", "max_auto", "stages", "mode", "break_glass")
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
		var glass bool
		if f.flag("break_glass", &glass) {
			o.Glass = &glass
		}
		if e.value.isMapping() && len(f) == 0 {
			e.value.wrong("changes nothing", "add risk, confirm, max_auto, stages, mode or break_glass")
		}
		out[e.key] = o
	}
	return out
}
