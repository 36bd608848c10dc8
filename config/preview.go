package config

import (
	"encoding/json"

	"countersign/approvers"
	"countersign/config/condition"
	"countersign/config/preview"
	"countersign/config/yamldoc"
)

// readPreview reads the key preview. The value of the key is a template, a boolean, or a mapping that names the tool
// that makes the preview. With true, there is a preview without a template. With false, there is no preview.
func readPreview(v yamldoc.Value) (show bool, p approvers.Preview) {
	switch {
	case v.IsBool():
		show, _ = v.Flag()
		return show, p
	case v.IsMapping():
		return true, readPreviewSource(v)
	}
	text, ok := v.Text(`a sentence such as "Ship {{.order_id}} to {{.address}}", or true`)
	if ok {
		p = compileSentence(v, text)
	}
	return true, p
}

// compileSentence compiles the policy's template.
func compileSentence(v yamldoc.Value, text string) approvers.Preview {
	render, message, hint := preview.Compile(text)
	if message != "" {
		v.Wrong(message, hint)
	}
	return approvers.Preview{Text: text, Render: render}
}

// readPreviewSource reads the tool that makes the preview, with or without a template.
func readPreviewSource(v yamldoc.Value) (p approvers.Preview) {
	f := v.Fields("text", "tool", "dry_run", "within", "refuses_when")
	if t, ok := f["text"]; ok {
		if text, ok := t.Text(`a sentence such as "Ship {{.order_id}} to {{.address}}"`); ok {
			p = compileSentence(t, text)
		}
	}
	if t, ok := f["tool"]; ok {
		if p.By.Tool, ok = t.Text("the name of a tool that only reads"); ok && !toolName.MatchString(p.By.Tool) {
			t.Wrong(yamldoc.Quote(p.By.Tool)+" is not a tool's name", "a name has 1 to 64 letters, digits, _, . and -")
		}
	}
	if d, ok := f["dry_run"]; ok {
		p.By.Argument, p.By.Value = readDryRun(d)
		if f.Has("tool") {
			d.Wrong("can't be combined with tool", "a preview is made by one tool: keep one of them")
		}
	}
	if f.Duration("within", &p.By.Within) {
		switch {
		case p.By.Within > approvers.MaxWithin:
			f["within"].Wrong("is longer than 30s", "an approver waits for it: write at most 30s")
		case !f.Has("tool") && !f.Has("dry_run"):
			f["within"].Wrong("does nothing, because no tool is asked", "add tool or dry_run, or remove it")
		}
	}
	if w, ok := f["refuses_when"]; ok {
		p.No = condition.ReadPreview(w)
		if !f.Has("tool") && !f.Has("dry_run") {
			w.Wrong("does nothing, because no tool is asked", "add tool or dry_run, or remove it")
		}
	}
	if f.Readable() && !f.Has("text") && !f.Has("tool") && !f.Has("dry_run") {
		v.Wrong("says nothing", "add text, tool or dry_run")
	}
	return p
}

// readDryRun reads the argument for a dry run: its name and its value. If only the name is given, the value is true.
func readDryRun(v yamldoc.Value) (name string, to json.RawMessage) {
	to = json.RawMessage("true")
	if !v.IsMapping() {
		name, _ = v.Text("the name of the argument that makes the tool do nothing, such as dry_run")
	} else {
		entries := v.Entries("one argument and its value, such as mode: simulate")
		if len(entries) != 1 {
			v.Wrong("has to be one argument and its value", "write one such as {mode: simulate}")
			return "", nil
		}
		name, to = entries[0].Key, entries[0].Value.ScalarJSON()
	}
	if name != "" && !toolName.MatchString(name) {
		v.Wrong(yamldoc.Quote(name)+" is not an argument's name", "write a name such as dry_run")
	}
	return name, to
}
