package config

import (
	"encoding/json"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// preview reads a template, true for a preview without a text of its own, or which tool is asked for one.
func (v value) preview() (show bool, p approvers.Preview) {
	switch {
	case v.isBool():
		show, _ = v.flag()
		return show, p
	case v.isMapping():
		return true, v.previewBy()
	}
	text, ok := v.text(`a sentence such as "Ship {{.order_id}} to {{.address}}", or true`)
	if ok {
		p = v.sentence(text)
	}
	return true, p
}

// sentence compiles the policy's own text.
func (v value) sentence(text string) approvers.Preview {
	render, message, hint := compilePreview(text)
	if message != "" {
		v.wrong(message, hint)
	}
	return approvers.Preview{Text: text, Render: render}
}

// previewBy reads which tool says what a call would do, with a template above it or without.
func (v value) previewBy() (p approvers.Preview) {
	f := v.fields("text", "tool", "dry_run", "within")
	if t, ok := f["text"]; ok {
		if text, ok := t.text(`a sentence such as "Ship {{.order_id}} to {{.address}}"`); ok {
			p = t.sentence(text)
		}
	}
	if t, ok := f["tool"]; ok {
		if p.By.Tool, ok = t.text("the name of a tool that only reads"); ok && !toolName.MatchString(p.By.Tool) {
			t.wrong(quote(p.By.Tool)+" is no tool's name", "a name has 1 to 64 letters, digits, _, . and -")
		}
	}
	if d, ok := f["dry_run"]; ok {
		p.By.Argument, p.By.Value = d.dryRun()
		if f.has("tool") {
			d.wrong("can't be there beside tool", "a preview is made by one tool: keep one of them")
		}
	}
	if f.duration("within", &p.By.Within) {
		switch {
		case p.By.Within > approvers.MaxWithin:
			f["within"].wrong("is longer than 30s", "an approver waits for it: write at most 30s")
		case !f.has("tool") && !f.has("dry_run"):
			f["within"].wrong("does nothing, because no tool is asked", "add tool or dry_run, or remove it")
		}
	}
	if f.readable() && !f.has("text") && !f.has("tool") && !f.has("dry_run") {
		v.wrong("says nothing", "add text, tool or dry_run")
	}
	return p
}

// dryRun reads which argument has the tool do nothing: its name, which is set to true, or its name and value.
func (v value) dryRun() (name string, to json.RawMessage) {
	to = json.RawMessage("true")
	if !v.isMapping() {
		name, _ = v.text("the name of the argument that has the tool do nothing, such as dry_run")
	} else {
		entries := v.entries("one argument and its value, such as mode: simulate")
		if len(entries) != 1 {
			v.wrong("has to be one argument and its value", "write such as {mode: simulate}")
			return "", nil
		}
		name, to = entries[0].key, entries[0].value.plainJSON()
	}
	if name != "" && !toolName.MatchString(name) {
		v.wrong(quote(name)+" is no argument's name", "write such as dry_run")
	}
	return name, to
}

// plainJSON reads a text, a whole number, or true or false, as JSON.
func (v value) plainJSON() json.RawMessage {
	switch n := v.node.(type) {
	case *ast.BoolNode:
		return json.RawMessage(strconv.FormatBool(n.Value))
	case *ast.IntegerNode:
		if b, err := json.Marshal(n.Value); err == nil {
			return b
		}
	case *ast.StringNode:
		if b, err := json.Marshal(n.Value); err == nil {
			return b
		}
	}
	if v.node != nil {
		v.wrong("is not possible here", "write a text, a whole number, or true")
	}
	return nil
}
