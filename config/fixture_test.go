package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// Every key of a fixture is read.
func TestFixtures(t *testing.T) {
	got, err := config.ParseFixtures("f.yaml", []byte(`
- name: a refund
  tool: issue_refund
  args: {order_id: "007", amount: 600.50, big: 12345678901234567890, tags: [a, true, null], note: "<b>"}
  requester: [U0100, U0101]
  authors: U0002
  agent: support
  channel: C0001
  dm: true
  at: 2026-12-24T18:00:00+01:00
  expect: {verdict: ask, risk: critical, who: [team-lead, 2 x finance-director], why: args.amount}
- {tool: search_orders, expect: {who: []}}
- tool: raw
  args: '{"not": json'
- {tool: issue_refund, client: desk, mode: execute, on_behalf_of: U0100, proven: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Fixture{
		{
			Name: "a refund", Line: 2, Tool: "issue_refund",
			Args:       json.RawMessage(`{"order_id":"007","amount":600.50,"big":12345678901234567890,"tags":["a",true,null],"note":"\u003cb\u003e"}`),
			Requesters: []string{"U0100", "U0101"}, Authors: []string{"U0002"}, Agent: "support", Channel: "C0001", DM: true,
			At:     time.Date(2026, 12, 24, 18, 0, 0, 0, time.FixedZone("", 3600)),
			Expect: config.Expectation{Verdict: "ask", Risk: approvers.Critical, Who: []string{"team-lead", "2 x finance-director"}, Why: "args.amount"},
		},
		{Line: 12, Tool: "search_orders", Args: json.RawMessage(`{}`), Expect: config.Expectation{Who: []string{}}},
		{Line: 13, Tool: "raw", Args: json.RawMessage(`{"not": json`)},
		{Line: 15, Tool: "issue_refund", Args: json.RawMessage(`{}`), Client: "desk", Mode: approvers.ExecuteMode, For: "U0100", Proven: true},
	}
	if len(got) != len(want) {
		t.Fatalf("%d fixtures", len(got))
	}
	for i := range want {
		if !got[i].At.Equal(want[i].At) {
			t.Errorf("fixture %d is at %s", i, got[i].At)
		}
		got[i].At = want[i].At
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("fixture %d is\n%+v\nwant\n%+v", i, got[i], want[i])
		}
	}
}

// All errors are reported together. Each error has its position in the file.
func TestFixtureProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no list":          {"tool: x\n", "f.yaml:1:1: the file: a mapping is not a list; write a list, such as - {tool: issue_refund"},
		"nothing":          {"[]\n", "f.yaml:1:1: the file: has no fixture"},
		"no tool":          {"- {args: {}}\n", "f.yaml:1:3: [0]: names no tool; add tool: and its name"},
		"no name":          {"- tool: >\n", "f.yaml:1:9: [0].tool: is empty; write a tool's name"},
		"a strange tool":   {"- {tool: ' '}\n", `f.yaml:1:10: [0].tool: " " is not a valid name for a tool; a name has 1 to 64 letters`},
		"no mapping":       {"- {tool: x}\n- 5\n", "f.yaml:2:3: [1]: is a number, and a mapping is needed"},
		"a key misspelt":   {"- {tool: x, requestor: U0100}\n", "f.yaml:1:13: [0].requestor: is not a key that belongs here; did you mean requester?"},
		"a key twice":      {"- {tool: x, tool: y}\n", "f.yaml:1:13: [0].tool: is given twice"},
		"a name for an id": {"- {tool: x, requester: teo}\n", `f.yaml:1:24: [0].requester: "teo" is not a user id; write one such as U0123ABCD`},
		"one of several":   {"- {tool: x, authors: [U0100, '@support']}\n", `f.yaml:1:30: [0].authors[1]: "@support" is not a user id`},
		"no verdict":       {"- {tool: x, expect: {verdict: maybe}}\n", `f.yaml:1:31: [0].expect.verdict: "maybe" is not a verdict; write auto, ask, refuse or observed`},
		"no risk":          {"- {tool: x, expect: {risk: hihg}}\n", `f.yaml:1:28: [0].expect.risk: "hihg" is not a risk level; did you mean high?`},
		"no time":          {"- {tool: x, at: 2026-12-24}\n", `f.yaml:1:17: [0].at: "2026-12-24" is not a time; write it as`},
		"no arguments":     {"- {tool: x, args: 5}\n", "f.yaml:1:19: [0].args: 5 is not a mapping of arguments"},
		"no JSON number":   {"- {tool: x, args: {a: 0x1F}}\n", "f.yaml:1:23: [0].args.a: 0x1F is not a number in JSON"},
		"no number at all": {"- {tool: x, args: {a: .inf}}\n", "f.yaml:1:23: [0].args.a: .inf is not a number in JSON; write a finite number"},
		"not a number":     {"- {tool: x, args: {a: .nan}}\n", "f.yaml:1:23: [0].args.a: .nan is not a number in JSON; write a finite number"},
		"a channel's name": {"- {tool: x, channel: support}\n", `f.yaml:1:22: [0].channel: "support" is not a channel id; write one such as C0123ABCD`},
		"an empty file":    {"# nothing\n", "f.yaml: is empty; docs/explain.md has an example to begin with"},
		"no end":           {"- {tool: x, args: &a {again: *a}}\n", "[0].args: is nested deeper than 50 levels; does an alias repeat a value in itself?"},
		"no end of a list": {"- {tool: x, args: {a: &a [*a, *a]}}\n", "[0].args: is nested deeper than 50 levels"},
		"no client":        {"- {tool: x, on_behalf_of: U0100, proven: true}\n", "f.yaml:1:42: [0].proven: belongs to a call of a client; add client: and its name, or remove proven"},
		"nobody proven":    {"- {tool: x, client: ci, proven: true}\n", "f.yaml:1:33: [0].proven: belongs to a call on behalf of a person; add on_behalf_of: and the person's user id"},
		"no bracket":       {"- {tool: x, args: {a: 1}\n", "f.yaml:1:3: the brace { is never closed"},
	} {
		_, err := config.ParseFixtures("f.yaml", []byte(c.text))
		var problems yamldoc.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	_, err := config.ParseFixtures("f.yaml", []byte("- {args: {}}\n- {tool: x, dm: maybe}\n- {tool: x}\n- {tool: x, agent: 5}\n"))
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("%d problems instead of 3:\n%v", n+1, err)
	}
}

// A few lines of aliases can expand to more data than fits into memory. Such a file is refused.
func TestFixtureBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("- tool: x\n  args:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 20; i++ {
		a := string(rune('a' + i))
		prev := "a0"
		if i > 1 {
			prev = string(rune('a' + i - 1))
		}
		b.WriteString("    " + a + ": &" + a + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+", ", 10), ", ") + "]\n")
	}
	_, err := config.ParseFixtures("f.yaml", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "is longer than 64 KiB") {
		t.Errorf("%v", err)
	}
}

// Arguments can be written as JSON, because JSON is also YAML. Reading does not change the arguments.
func TestFixtureArgumentsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := map[string]any{"args": jsonValue(t, 3)}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(args); err != nil {
			t.Fatal(err)
		}
		got, err := config.ParseFixtures("f.yaml", []byte("- {tool: x, args: "+strings.TrimSpace(text.String())+"}\n"))
		if err != nil {
			t.Fatalf("%s: %v", text.String(), err)
		}
		var back map[string]any
		dec := json.NewDecoder(bytes.NewReader(got[0].Args))
		dec.UseNumber()
		if err := dec.Decode(&back); err != nil || !reflect.DeepEqual(back, args) {
			t.Fatalf("%s became %s (%v)", text.String(), got[0].Args, err)
		}
	})
}

func jsonValue(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return json.Number(rapid.SampledFrom([]string{"0", "-1", "600.50", "12345678901234567890", "1e5", "-2.5E-3", "0.1", "-0.0001"}).Draw(t, "number"))
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return nil
	case 3:
		return rapid.StringMatching(`[a-z *&!%@:,'#{}\[\]"\\<>0-9äß-]{0,12}`).Draw(t, "text")
	case 4:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = jsonValue(t, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "size") {
		object[rapid.StringMatching(`[a-z][a-z_0-9]{0,8}`).Draw(t, "key")] = jsonValue(t, depth-1)
	}
	return object
}
