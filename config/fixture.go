package config

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// Fixture is one call that a policy is tried with, and what is expected of it. docs/explain.md has the file's format.
type Fixture struct {
	Name       string // for people; may be empty
	Line       int    // in the file of fixtures; zero: it is from elsewhere
	Tool       string
	Args       json.RawMessage
	Requesters []string // user ids of those who asked for it; the last one spoke last. Empty: nobody in particular
	Authors    []string // user ids of others whose words the model was given
	Agent      string   // empty: the policy's first
	Channel    string
	DM         bool
	At         time.Time // zero: the time of the run
	Expect     Expectation
}

// Expectation is what a fixture expects. What is empty is not looked at.
type Expectation struct {
	Verdict string
	Risk    approvers.Risk
	Who     []string // the stages: "team-lead", "2 x finance-director", "a or b"; empty and not nil: nobody
	Why     string   // a part of one of the reasons
}

// Empty reports whether nothing is expected.
func (e Expectation) Empty() bool {
	return e.Verdict == "" && e.Risk == 0 && e.Who == nil && e.Why == ""
}

// ReadFixtures reads a file of fixtures. The error is [Problems].
func ReadFixtures(path string) ([]Fixture, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Problems{{File: path, Message: "can't be read: " + plainCause(err), Hint: "name a file of fixtures; docs/explain.md has an example"}}
	}
	return ParseFixtures(path, data)
}

// ParseFixtures reads fixtures from a file's content: a list, each with at least a tool. name is what problems call the file.
func ParseFixtures(name string, data []byte) ([]Fixture, error) {
	r := &reader{file: &File{Name: name, marks: map[string]mark{}}}
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
	f := v.fields("name", "tool", "args", "requester", "authors", "agent", "channel", "dm", "at", "expect")
	x.Name, _ = f.free("name", "what the fixture is about")
	if f.has("tool") {
		var ok bool
		if x.Tool, ok = f.free("tool", "a tool's name"); ok && !toolName.MatchString(x.Tool) {
			f["tool"].wrong("no tool can be called "+quote(x.Tool), "a name has 1 to 64 letters, digits, _, . and -")
		}
	} else if v.isMapping() {
		v.wrong("names no tool", "add tool: and its name")
	}
	if a, ok := f["args"]; ok {
		x.Args = a.arguments()
	}
	x.Requesters = f.users("requester")
	x.Authors = f.users("authors")
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

// users reads one user id or a list of them, where the key is there.
func (f fieldset) users(key string) (out []string) {
	v, ok := f[key]
	if !ok {
		return nil
	}
	items := []value{v}
	if _, list := v.node.(*ast.SequenceNode); list {
		items, _ = v.list("[U0100, U0002]")
	}
	for _, item := range items {
		text, ok := item.free("a user id such as U0123ABCD")
		switch {
		case !ok:
		case !IsUserID(text):
			item.wrong(quote(text)+" is no user id", "write one such as U0123ABCD: Slack shows it in a person's profile")
		default:
			out = append(out, text)
		}
	}
	return out
}

// IsUserID reports whether a text is written as Slack writes the ids of users.
func IsUserID(text string) bool { return userID.MatchString(text) }

var verdicts = []string{string(approvers.Auto), string(approvers.Ask), string(approvers.Refuse), string(approvers.Observed)}

func (v value) expectation() Expectation {
	var e Expectation
	f := v.fields("verdict", "risk", "who", "why")
	if d, ok := f["verdict"]; ok {
		text, read := d.text(oneOf(verdicts))
		if e.Verdict = text; read && !slices.Contains(verdicts, text) {
			d.wrong(quote(text)+" is no verdict", "write "+oneOf(verdicts))
		}
	}
	f.risk("risk", &e.Risk)
	if w, ok := f["who"]; ok {
		e.Who = append([]string{}, w.texts(`[team-lead, "2 x finance-director"]`, "a stage")...)
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
