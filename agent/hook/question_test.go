package hook

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/testkit/fakegateway"
)

// answerIn finds the command in the denial that contains a question.
var answerIn = regexp.MustCompile(`replace TEXT: (.* req_1 0 )'TEXT'\.`)

// shell returns an event before a call of the agent's shell.
func (d *desk) shell(command string) string {
	d.Helper()
	text, err := json.Marshal(command)
	if err != nil {
		d.Fatal(err)
	}
	return d.input(d.before, d.tool, `{"command":`+string(text)+`,"description":"Answer"}`, "")
}

// questioned returns a desk whose first call waits for the agent's answer to a question, and the command that the
// denial of this call contains, without the answer's text.
func questioned(t *testing.T, d *desk) string {
	t.Helper()
	d.OnAsk(func(r *fakegateway.Request) {
		r.Questions = []map[string]any{{"question": 0, "text": "Why now?", "by": "Team Lead"}}
	})
	var denial string
	out := d.ask(d.before)
	for _, text := range texts(t, out.Out) {
		if strings.Contains(text, "Why now?") {
			denial = text
		}
	}
	command := answerIn.FindStringSubmatch(denial)
	if allows(out) || command == nil {
		t.Fatalf("the denial does not contain the command: %s", out.Out)
	}
	d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
	return command[1]
}

// texts returns all texts in a JSON value.
func texts(t *testing.T, raw []byte) (list []string) {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case map[string]any:
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(value)
	return list
}

// questionDesks has a desk for each agent, and a desk whose events arrive over HTTP.
func questionDesks() map[string]func(*testing.T) *desk {
	desks := map[string]func(*testing.T) *desk{"over HTTP": func(t *testing.T) *desk { return newRemoteDesk(t, Control) }}
	for _, a := range Agents() {
		desks[a.Name] = func(t *testing.T) *desk { return newDesk(t, a.Name, Control) }
	}
	return desks
}

// TestAnswerToQuestion answers an approver's question with a call of the agent's shell. The hook sends the answer, and
// the shell call does not run. The repetition of the first call then continues its request.
func TestAnswerToQuestion(t *testing.T) {
	for text, want := range map[string]string{
		`'The release is tonight.'`:       "The release is tonight.",
		"'$(date) `date` \"a\"; b\n&& c'": "$(date) `date` \"a\"; b\n&& c",
		`'It'\''s tonight'`:               "It's tonight",
		`'C:\Kim\'`:                       `C:\Kim\`,
		`"It's tonight"`:                  "It's tonight",
	} {
		for name, newDesk := range questionDesks() {
			t.Run(name+" "+want, func(t *testing.T) {
				d := newDesk(t)
				command := questioned(t, d)
				got := d.run(d.before, d.shell(command+text+"\n"))
				if r := d.Requests(); allows(got) || len(r) != 1 || r[0].Questions[0]["answer"] != want || !strings.Contains(string(got.Out), "The answer arrived") {
					t.Fatalf("%s, with %+v", got.Out, r)
				}
				d.Change("req_1", func(r *fakegateway.Request) { r.Status = "approved" })
				if d.ask(d.before); d.Requests()[0].Status != "running" || len(d.Requests()) != 1 {
					t.Errorf("after the repetition: %+v", d.Requests())
				}
			})
		}
	}
}

// TestProgramInAnswer shows that the command in a denial has the path of the program on the agent's machine.
func TestProgramInAnswer(t *testing.T) {
	for want, program := range map[string][]string{
		"/opt/countersign-hook answer req_1 0 ":         {"/opt/countersign-hook"},
		"/opt/countersign hook answer req_1 0 ":         {"/opt/countersign", "hook"},
		`'/opt/Kim'\''s tools/cs-hook' answer req_1 0 `: {"/opt/Kim's tools/cs-hook"},
		`'/opt/$HOME;x' answer req_1 0 `:                {"/opt/$HOME;x"},
		"countersign hook answer req_1 0 ":              nil,
	} {
		d := newDesk(t, "claude-code", Control)
		d.program = program
		if command := questioned(t, d); command != want {
			t.Errorf("%s, want %s", command, want)
		}
		d.run(d.before, d.shell(want+"'A fix.'"))
		if got := d.Requests()[0].Questions[0]["answer"]; got != "A fix." {
			t.Errorf("%s: the answer is %v", want, got)
		}
	}
}

// TestOtherCommands shows that people are asked about each shell command that is not exactly an answer.
func TestOtherCommands(t *testing.T) {
	const own = "countersign hook answer req_1 0 "
	for _, command := range []string{
		own, own + "text", own + "''", own + `""`, own + "'a' 'b'", own + "'a'b", own + "'a';ls",
		own + "'a' && ls", own + "'a' | sh", own + "'a' > /tmp/x", own + "'a'\nls", own + "'a' # b",
		own + "'a", own + `'a'\''`, own + "'a'; rm -rf '/'", own + `'\''; ls; '`, own + `"$(ls)"`,
		own + "\"`ls`\"", own + `"$HOME"`, own + `"a\"; ls; \""`, own + `"a" "b"`, own + `"a"; ls`,
		own + "$'a'", own + `'a'"b"`, "sudo " + own + "'a'", "ls; " + own + "'a'", "FOO=1 " + own + "'a'",
		"/tmp/" + own + "'a'", "countersign-hook answer req_1 0 'a'", "countersign  hook answer req_1 0 'a'",
		"countersign hook answer req_1 -1 'a'", "countersign hook answer req_1 0x0 'a'", "countersign hook answer $(ls) 0 'a'", "countersign hook answer ../req_1 0 'a'", "countersign hook answer req_1 0\n'a'",
		"countersign hook answer 'req_1' 0 'a'", "countersign hook doctor", "countersign hook answer req_1  0 'a'",
	} {
		d := newDesk(t, "claude-code", Control)
		questioned(t, d)
		got := d.run(d.before, strings.Replace(d.shell(command), "toolu_01", "toolu_02", 1))
		if r := d.Requests(); len(r) != 2 || r[1].Status != "running" || r[0].Questions[0]["answer"] != nil || !allows(got) {
			t.Errorf("%q: %s, with %d requests", command, got.Out, len(r))
		}
	}
	for name, call := range map[string]string{
		"another tool":     `"tool_name":"mcp__host__run","tool_input":{"command":"` + own + `'a'"}`,
		"another argument": `"tool_name":"Bash","tool_input":{"script":"` + own + `'a'"}`,
		"a list":           `"tool_name":"Bash","tool_input":{"command":["` + own + `'a'"]}`,
	} {
		d := newDesk(t, "claude-code", Control)
		questioned(t, d)
		d.run(d.before, fmt.Sprintf(`{"session_id":"s-1","cwd":"/home/kim/shop","hook_event_name":"PreToolUse","tool_use_id":"t2",%s}`, call))
		if r := d.Requests(); len(r) != 2 || r[0].Questions[0]["answer"] != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestAnswerOnlyOwn shows that an agent can answer only questions about the waiting calls of its own session. People are
// not asked about any such answer.
func TestAnswerOnlyOwn(t *testing.T) {
	for name, newDesk := range questionDesks() {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			command := questioned(t, d)
			for want, input := range map[string]string{
				"no call of this session waits with the request req_1": strings.Replace(d.shell(command+"'A fix.'"), "s-1", "s-2", 1),
				"no call of this session waits with the request req_2": d.shell(strings.Replace(command, "req_1", "req_2", 1) + "'A fix.'"),
				"no such question": d.shell(strings.Replace(command, "req_1 0", "req_1 1", 1) + "'A fix.'"),
			} {
				got := d.run(d.before, input)
				if r := d.Requests(); allows(got) || len(r) != 1 || r[0].Questions[0]["answer"] != nil || !strings.Contains(string(got.Out), want) {
					t.Errorf("%s, want %q, with %+v", got.Out, want, r)
				}
			}
		})
	}
}
