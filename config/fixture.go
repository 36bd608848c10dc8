package config

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// Fixture is one call that a policy is tried with, and what is expected of it.
type Fixture struct {
	Name      string // for people; the line where there is none
	Line      int
	Tool      string
	Args      json.RawMessage
	Requester string // a user id; empty: nobody in particular
	Agent     string // empty: the policy's first
	Channel   string
	DM        bool
	At        time.Time // zero: the time of the run
	Expect    Expectation
}

// Expectation is what a fixture expects. What is empty is not looked at.
type Expectation struct {
	Verdict string
	Risk    approvers.Risk
	Who     []string // the stages: "team-lead", "2 x finance-director", "a or b"
	Why     string   // a part of one of the reasons
}

// ReadFixtures reads a file of fixtures: a list, each with tool and args. The error is [Problems] where its content is wrong.
func ReadFixtures(path string) ([]Fixture, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Problems{{File: path, Message: "can't be read: " + plainCause(err), Hint: "name a file of fixtures; docs/policy.md has an example"}}
	}
	r := &reader{file: &File{Name: path, marks: map[string]mark{}}}
	var out []Fixture
	if root, ok := r.parse(data); ok {
		items, _ := root.list("- {tool: issue_refund, args: {amount: 600}, expect: {verdict: ask}}")
		for _, item := range items {
			out = append(out, item.fixture())
		}
		if len(items) == 0 && len(r.problems) == 0 {
			root.wrong("has no fixture", "write at least one: - {tool: issue_refund, args: {amount: 600}}")
		}
	}
	if err := r.problems.inOrder().err(); err != nil {
		return nil, err
	}
	return out, nil
}

func (v value) fixture() Fixture {
	x := Fixture{Line: v.r.file.at(v.path).line, Args: json.RawMessage("{}")}
	f := v.fields("name", "tool", "args", "requester", "agent", "channel", "dm", "at", "expect")
	x.Name, _ = f.free("name", "what the fixture is about")
	if f.has("tool") {
		x.Tool, _ = f.free("tool", "a tool's name")
	} else if v.isMapping() {
		v.wrong("names no tool", "add tool: and its name")
	}
	if a, ok := f["args"]; ok {
		x.Args = a.arguments()
	}
	x.Requester, _ = f.free("requester", "a user id such as U0123ABCD")
	x.Agent, _ = f.free("agent", "an agent's name")
	x.Channel, _ = f.free("channel", `a channel id, as conversation.channel has it`)
	f.flag("dm", &x.DM)
	if a, ok := f["at"]; ok {
		x.At, _ = a.instant()
	}
	if e, ok := f["expect"]; ok {
		x.Expect = e.expectation()
	}
	return x
}

// free reads a text, where the key is there.
func (f fieldset) free(key, like string) (string, bool) {
	v, ok := f[key]
	if !ok {
		return "", false
	}
	return v.free(like)
}

var verdicts = []string{string(approvers.Auto), string(approvers.Ask), string(approvers.Refuse), string(approvers.Observed)}

func (v value) expectation() Expectation {
	var e Expectation
	f := v.fields("verdict", "risk", "who", "why")
	if d, ok := f["verdict"]; ok {
		text, read := d.text(oneOf(verdicts))
		switch e.Verdict = text; {
		case !read:
		case text != verdicts[0] && text != verdicts[1] && text != verdicts[2] && text != verdicts[3]:
			d.wrong(quote(text)+" is no verdict", "write "+oneOf(verdicts))
		}
	}
	f.risk("risk", &e.Risk)
	if w, ok := f["who"]; ok {
		e.Who = w.texts(`[team-lead, "2 x finance-director"]`, "a stage")
	}
	e.Why, _ = f.free("why", "a part of the reason")
	return e
}

// instant reads a time as RFC 3339 has it.
func (v value) instant() (time.Time, bool) {
	text, ok := v.text("a time such as 2026-12-24T18:00:00+01:00")
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		v.wrong(quote(text)+" is no time", "write it as 2026-12-24T18:00:00Z, or with its zone: 2026-12-24T18:00:00+01:00")
		return t, false
	}
	return t, true
}

// arguments reads a call's arguments: a mapping, or the JSON as it is. Numbers keep the digits with which they are written.
func (v value) arguments() json.RawMessage {
	switch v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := v.text(`a mapping, or JSON such as '{"amount": 600}'`)
		return json.RawMessage(text)
	}
	if v.node != nil && !v.isMapping() {
		v.wrongf(`write a mapping such as {amount: 600}, or JSON in quotes`, "%s is no arguments", v.shown())
		return nil
	}
	var b strings.Builder
	v.json(&b)
	return json.RawMessage(b.String())
}

// json writes a YAML value as JSON.
func (v value) json(b *strings.Builder) {
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		b.WriteByte('{')
		for i, e := range v.entries("the arguments") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(e.key))
			b.WriteByte(':')
			e.value.json(b)
		}
		b.WriteByte('}')
	case *ast.SequenceNode:
		b.WriteByte('[')
		items, _ := v.list("[1, 2]")
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.json(b)
		}
		b.WriteByte(']')
	case *ast.StringNode:
		b.Write(quoted(n.Value))
	case *ast.LiteralNode:
		b.Write(quoted(n.Value.Value))
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text := n.GetToken().Value
		if !json.Valid([]byte(text)) {
			v.wrongf("write it as JSON has it, or in quotes if text is meant", "%s is no number in JSON", text)
		}
		b.WriteString(text)
	case *ast.NullNode, nil:
		b.WriteString("null")
	default:
		v.wrongf("write text, a number, true, false, a list or a mapping", "%s can't be an argument", kindOf(n))
		b.WriteString("null")
	}
}

func quoted(s string) []byte {
	out, err := json.Marshal(s)
	if err != nil { // text always encodes
		return []byte(`""`)
	}
	return out
}
