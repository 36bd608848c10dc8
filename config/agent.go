package config

import (
	"unicode/utf8"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

const (
	mostSteps = 50
	// maxPrompt limits the length of a prompt. The limit leaves space for other texts in the model's context.
	maxPrompt = 32 << 10
)

// readAgent reads one agent. The parameter named budgets has the policy's budgets. If the agent sets only one of its
// budgets, the other budget is the policy's.
func readAgent(e yamldoc.Entry, budgets approvers.Budgets) approvers.Agent {
	a := approvers.Agent{Name: e.Key, MaxSteps: maxSteps}
	if !roleName.MatchString(e.Key) {
		e.Wrong("is not a valid name for an agent", "a name has 1 to 64 letters, digits, _ and -")
	}
	f := e.Value.Fields("channels", "prompt", "model", "tools", "overrides", "guests", "direct_messages", "max_steps", "budgets", "prompts")
	if v, ok := f["channels"]; ok {
		a.Channels = readChannels(v)
	}
	if v, ok := f["prompt"]; ok {
		a.Prompt, _ = v.Free("what the model is told of its task")
		if len(a.Prompt) > maxPrompt {
			v.Wrongf("shorten it", "is longer than %d KiB", maxPrompt>>10)
		}
	}
	if v, ok := f["model"]; ok {
		a.Model, _ = v.Free("a model's name as the endpoint knows it")
	}
	if v, ok := f["tools"]; ok {
		a.Tools = v.Texts(`[search_orders], or ["*"] for every tool`, `a tool's name, or "*"`)
	} else if e.Value.IsMapping() {
		e.Wrong("tools is missing", `add which tools the model is offered: tools: [search_orders], or ["*"] for every tool`)
	}
	if v, ok := f["overrides"]; ok && !v.Empty() {
		a.Overrides = readOverrides(v)
	}
	f.Flag("guests", &a.AllowGuests)
	direct := true
	f.Flag("direct_messages", &direct)
	a.NoDM = !direct
	if v, ok := f["max_steps"]; ok {
		if n, ok := v.Whole(1, mostSteps); ok {
			a.MaxSteps = n
		}
	}
	if v, ok := f["budgets"]; ok {
		own := readBudgets(v, budgets)
		a.Budgets = &own
	}
	if v, ok := f["prompts"]; ok {
		a.Prompts = readPrompts(v)
	}
	return a
}

// Limits of a prompt, in characters. Slack documents no limits. A title is the label of a button.
const (
	maxPromptTitle   = 75
	maxPromptMessage = 1000
)

// readPrompts reads the suggested prompts.
func readPrompts(v yamldoc.Value) []approvers.Prompt {
	items, _ := v.List(`[{title: Find an order, message: Where is order ORD-123?}]`)
	if len(items) > approvers.MaxPrompts {
		v.Wrongf("keep the most useful ones", "has %d prompts; Slack shows %d", len(items), approvers.MaxPrompts)
	}
	var out []approvers.Prompt
	for _, item := range items {
		var p approvers.Prompt
		f := item.Fields("title", "message")
		for _, part := range []struct {
			key  string
			like string
			most int
			to   *string
		}{{"title", "what people read", maxPromptTitle, &p.Title}, {"message", "what they say when they choose it", maxPromptMessage, &p.Message}} {
			text, ok := f[part.key]
			if !ok {
				if item.IsMapping() {
					item.Wrong(part.key+" is missing", "add "+part.key+": "+part.like)
				}
				continue
			}
			if *part.to, ok = text.Free(part.like); ok && utf8.RuneCountInString(*part.to) > part.most {
				text.Wrongf("shorten it", "is longer than %d characters", part.most)
			}
		}
		out = append(out, p)
	}
	return out
}

func readChannels(v yamldoc.Value) []string {
	items, _ := v.List(`["#support"], or ["*"] for every channel that the bot is in`)
	var out []string
	for _, item := range items {
		text, ok := item.Free(`a channel such as "#support"`)
		if !ok {
			continue
		}
		if text != "*" && !isChannel(text) {
			item.Wrong(yamldoc.Quote(text)+" is not a channel", yamldoc.OrHint(meantChannel(text), `write a name such as "#support", an id such as C0123ABCD, or "*"`))
			continue
		}
		out = append(out, text)
	}
	return out
}

// readOverrides reads an agent's overrides, by tool.
func readOverrides(v yamldoc.Value) map[string]approvers.Override {
	out := map[string]approvers.Override{}
	for _, e := range v.Entries("overrides: tool: {confirm: true}") {
		var o approvers.Override
		f := e.Value.Fields("risk", "confirm", "max_auto", "stages", "mode", "break_glass")
		readRiskKey(f, "risk", &o.Risk)
		readStagesKey(f, "stages", &o.Stages)
		var confirm bool
		switch {
		case f.Flag("confirm", &confirm):
			o.Confirm = &confirm
		case (o.Risk >= approvers.High || len(o.Stages) > 0) && !f.Has("confirm"):
			confirm = true // the same safe default as for a tool with this risk, or with stages
			o.Confirm = &confirm
		}
		var limit approvers.Limit
		if readLimitKey(f, "max_auto", &limit) {
			o.MaxAuto = &limit
		}
		var mode approvers.Mode
		if readMode(f, &mode) {
			o.Mode = &mode
		}
		var glass bool
		if f.Flag("break_glass", &glass) {
			o.Glass = &glass
		}
		if e.Value.IsMapping() && len(f) == 0 {
			e.Value.Wrong("changes nothing", "add risk, confirm, max_auto, stages, mode or break_glass")
		}
		out[e.Key] = o
	}
	return out
}
