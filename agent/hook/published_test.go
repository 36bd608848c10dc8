package hook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/testkit/fakegateway"
)

// published is an event as its agent's maker describes it.
type published struct {
	agent, event string
	needed       map[string]string // the fields without which no call may run, with their values
	other        map[string]string // the other fields, whether they are optional or not
	answer       map[string]string // the fields that an answer may have, with the patterns of their values
}

// folder is the end of the arguments of each request.
const folder = `,"working_folder":"/w"}`

// sessionValue is a value that is replaced by a new session in each test case.
const sessionValue = `"SESSION"`

// with returns a copy of a table with more members. If a value is empty, the copy lacks the member.
func with(table map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for name, value := range table {
		out[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		if out[more[i]] = more[i+1]; more[i+1] == "" {
			delete(out, more[i])
		}
	}
	return out
}

// Patterns of values in answers.
const (
	anyText   = `^".+"$`
	anyObject = `^\{.*\}$`
)

var (
	// The types are those of sdk.d.ts in @anthropic-ai/claude-agent-sdk 0.3.330.
	claudeNeeded = map[string]string{"session_id": sessionValue, "cwd": `"/w"`, "hook_event_name": "EVENT", "tool_name": `"Bash"`, "tool_input": bash}
	claudeOther  = map[string]string{
		"transcript_path": `"/t.jsonl"`, "prompt_id": `"6f1c"`, "permission_mode": `"bypassPermissions"`, "agent_id": `"a-1"`, "agent_type": `"general-purpose"`, "effort": `{"level":"high"}`,
		"mcp_server": `{"name":"shop","scope":"project"}`,
	}
	claudeAsks = map[string]string{
		"systemMessage": anyText, "hookSpecificOutput.hookEventName": `^"PreToolUse"$`, "hookSpecificOutput.permissionDecision": `^"(allow|deny|ask|defer)"$`,
		"hookSpecificOutput.permissionDecisionReason": anyText, "hookSpecificOutput.updatedInput": anyObject,
	}
	claudeDialog = map[string]string{
		"systemMessage": anyText, "hookSpecificOutput.hookEventName": `^"PermissionRequest"$`, "hookSpecificOutput.decision.behavior": `^"(allow|deny)"$`,
		"hookSpecificOutput.decision.message": anyText, "hookSpecificOutput.decision.updatedInput": anyObject,
	}
	claudeReports = map[string]string{"systemMessage": anyText}

	// The types are those of codex-rs/hooks/src/schema.rs in openai/codex.
	codexNeeded = with(claudeNeeded, "tool_input", `{"command":"rm -rf build && make deploy"}`)
	codexOther  = map[string]string{
		"transcript_path": `"/t.jsonl"`, "turn_id": `"t-1"`, "model": `"m"`, "permission_mode": `"default"`, "agent_id": `"a-1"`, "agent_type": `"worker"`, "tool_use_id": `"call_01"`,
	}

	// The types are those of docs/hooks/reference.md in google-gemini/gemini-cli.
	geminiOther = map[string]string{"transcript_path": `"/t.json"`, "timestamp": `"2026-11-26T10:00:00Z"`, "mcp_context": `{"server_name":"shop","tool_name":"refund"}`}

	// The types are those of content/copilot/reference/hooks-reference.md in github/docs.
	copilotNeeded = map[string]string{"sessionId": sessionValue, "cwd": `"/w"`, "toolName": `"bash"`, "toolArgs": bash}
	copilotOther  = map[string]string{"timestamp": "1764151200000"}

	// The types are those of cursor.com/docs/hooks.
	cursorNeeded = map[string]string{"conversation_id": sessionValue, "workspace_roots": `["/w"]`, "hook_event_name": "EVENT", "tool_name": `"Shell"`, "tool_input": `{"command":"rm -rf build"}`}
	cursorOther  = map[string]string{
		"generation_id": `"g-1"`, "model": `"default"`, "cursor_version": `"3.9.16"`, "user_email": `"kim@example.com"`, "transcript_path": `"/t.jsonl"`, "tool_use_id": `"d024a132"`, "cwd": `""`,
		"agent_message": `"I build it."`,
	}
	cursorAsks = map[string]string{"permission": `^"(allow|deny|ask)"$`, "user_message": anyText, "updated_input": anyObject}
)

var publishedEvents = []published{
	{"claude-code", "PreToolUse", claudeNeeded, with(claudeOther, "tool_use_id", `"toolu_01"`), claudeAsks},
	{"claude-code", "PermissionRequest", claudeNeeded, with(claudeOther, "permission_suggestions", `[{"type":"setMode","mode":"acceptEdits","destination":"session"}]`), claudeDialog},
	{"claude-code", "PostToolUse", claudeNeeded, with(claudeOther, "tool_use_id", `"toolu_01"`, "tool_response", `{"stdout":"done"}`, "duration_ms", "12"), claudeReports},
	{"claude-code", "PostToolUseFailure", claudeNeeded, with(claudeOther, "tool_use_id", `"toolu_01"`, "error", `"exit status 1"`, "is_interrupt", "false", "duration_ms", "12"), claudeReports},
	{"claude-code", "PermissionDenied", claudeNeeded, with(claudeOther, "tool_use_id", `"toolu_01"`, "reason", `"It deletes files."`), claudeReports},
	{"claude-code", "Stop", with(claudeNeeded, "tool_name", "", "tool_input", "", "cwd", ""),
		with(claudeOther, "cwd", `"/w"`, "stop_hook_active", "true", "last_assistant_message", `"Done."`, "background_tasks", "[]", "session_crons", "[]"), claudeReports},
	{"claude-code", "SessionEnd", with(claudeNeeded, "tool_name", "", "tool_input", "", "cwd", ""), with(claudeOther, "cwd", `"/w"`, "reason", `"prompt_input_exit"`), claudeReports},

	{"codex", "PreToolUse", codexNeeded, codexOther, claudeAsks},
	{"codex", "PreToolUse", with(codexNeeded, "tool_name", `"apply_patch"`, "tool_input", `{"command":"*** Begin Patch\n*** Delete File: a\n*** End Patch"}`), codexOther, claudeAsks},
	{"codex", "PermissionRequest", with(codexNeeded, "tool_input", bash), with(codexOther, "tool_use_id", ""), with(claudeDialog, "hookSpecificOutput.decision.updatedInput", "")},
	{"codex", "PostToolUse", codexNeeded, with(codexOther, "tool_response", `"done"`), claudeReports},
	{"codex", "Stop", with(codexNeeded, "tool_name", "", "tool_input", "", "cwd", ""), with(codexOther, "cwd", `"/w"`, "stop_hook_active", "false", "last_assistant_message", `"Done."`), claudeReports},

	{"gemini", "BeforeTool", with(claudeNeeded, "tool_name", `"run_shell_command"`), geminiOther, map[string]string{
		"systemMessage": anyText, "decision": `^"(allow|deny|block)"$`, "reason": anyText, "hookSpecificOutput.hookEventName": `^"BeforeTool"$`, "hookSpecificOutput.tool_input": anyObject,
	}},
	{"gemini", "AfterTool", with(claudeNeeded, "tool_name", `"run_shell_command"`), with(geminiOther, "tool_response", `{"llmContent":"done","returnDisplay":"done","error":{"message":"no","type":"x"}}`), claudeReports},

	{"copilot", "preToolUse", copilotNeeded, copilotOther, copilotAsks},
	{"copilot", "preToolUse", with(copilotNeeded, "toolArgs", string(quotedJSON(bash))), copilotOther, copilotAsks},
	{"copilot", "preToolUse", with(copilotNeeded, "toolName", `"apply_patch"`, "toolArgs", `"*** Begin Patch\n*** Delete File: <a>\n*** End Patch"`), copilotOther, with(copilotAsks, "modifiedArgs", "")},
	{"copilot", "permissionRequest", with(copilotNeeded, "toolArgs", "", "toolInput", bash), with(copilotOther, "permissionSuggestions", "[]"), map[string]string{"behavior": `^"(allow|deny)"$`, "message": anyText}},
	{"copilot", "postToolUse", copilotNeeded, with(copilotOther, "toolResult", `{"resultType":"success","textResultForLlm":"done"}`), nil},
	{"copilot", "postToolUseFailure", copilotNeeded, with(copilotOther, "error", `"exit status 1"`), nil},
	{"copilot", "agentStop", with(copilotNeeded, "toolName", "", "toolArgs", "", "cwd", ""), with(copilotOther, "cwd", `"/w"`, "transcriptPath", `"/t"`, "stopReason", `"end_turn"`, "stop_hook_active", "false"), nil},
	{"copilot", "sessionEnd", with(copilotNeeded, "toolName", "", "toolArgs", "", "cwd", ""), with(copilotOther, "cwd", `"/w"`, "reason", `"complete"`), nil},

	{"cursor", "preToolUse", cursorNeeded, cursorOther, cursorAsks},
	{"cursor", "preToolUse", with(cursorNeeded, "workspace_roots", "", "cwd", `"/w"`, "tool_name", `"MCP:refund"`), with(cursorOther, "cwd", ""), cursorAsks},
	{"cursor", "postToolUse", cursorNeeded, with(cursorOther, "tool_output", `"{\"output\":\"done\"}"`, "duration", "12"), nil},
	{"cursor", "postToolUseFailure", cursorNeeded, with(cursorOther, "error_message", `"exit status 1"`, "failure_type", `"error"`, "duration", "12", "is_interrupt", "false"), nil},
}

var copilotAsks = map[string]string{"permissionDecision": `^"(allow|deny|ask)"$`, "permissionDecisionReason": anyText, "modifiedArgs": anyObject}

// quotedJSON returns a text as a JSON string.
func quotedJSON(text string) []byte {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return out
}

// input writes an event.
func (p published) input(fields map[string]string, session int) string {
	var members []string
	for name, value := range fields {
		switch value {
		case sessionValue:
			value = fmt.Sprintf(`"s-%d"`, session)
		case "EVENT":
			value = fmt.Sprintf("%q", p.event)
		}
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	slices.Sort(members)
	return "{" + strings.Join(members, ",") + "}"
}

// conforms returns an error if an answer has a field that is not in the agent's documented format, or a value that the
// field can't have.
func conforms(out []byte, format map[string]string) error {
	var walk func(path string, raw json.RawMessage) error
	walk = func(path string, raw json.RawMessage) error {
		if pattern, ok := format[path]; ok {
			if !regexp.MustCompile(pattern).Match(raw) {
				return fmt.Errorf("%s is %s", path, raw)
			}
			return nil
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil || path != "" && len(object) == 0 {
			return fmt.Errorf("%s is not in the format", path)
		}
		for name, value := range object {
			if err := walk(strings.TrimPrefix(path+"."+name, "."), value); err != nil {
				return err
			}
		}
		return nil
	}
	if len(out) == 0 {
		return nil
	}
	return walk("", out)
}

// TestPublishedTypes feeds the hook with the events that the agents' makers describe. Each event comes with all its
// fields, with a field that nobody knows, without each of the fields, and with null in place of each of the fields. The
// hook asks about exactly the arguments of the event, and each answer has the documented format. A call runs only if it
// is approved, and the event has all the fields that the hook needs.
func TestPublishedTypes(t *testing.T) {
	for i, p := range publishedEvents {
		t.Run(fmt.Sprint(i, " ", p.agent, " ", p.event), func(t *testing.T) {
			t.Parallel()
			talk := talks[p.agent]
			profile := Control
			if p.event == talk.permission || p.event == "Stop" || p.event == "SessionEnd" || p.event == "agentStop" || p.event == "sessionEnd" {
				profile = Comfort
			}
			d := newDesk(t, p.agent, profile)
			asks := p.event == talk.before || p.event == talk.permission
			all := with(p.needed)
			for name, value := range p.other {
				all[name] = value
			}
			n := 0
			try := func(name string, fields map[string]string, whole bool, decisions ...string) {
				for _, decision := range decisions {
					n++
					edited := ""
					before := len(d.Requests())
					d.OnAsk(func(r *fakegateway.Request) {
						r.Status = decision
						if decision == "edited" {
							r.Status = "approved"
						}
						if decision == "edited" && slices.Contains(r.Accepts, "edit") {
							edited, _ = strings.CutSuffix(strings.NewReplacer("rm -rf", "ls", "Delete File: ", "Delete File: b").Replace(r.Args), folder)
							r.Edited = edited + folder
						}
					})
					d.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
						if decision == "fault" {
							fakegateway.Problem(w, http.StatusServiceUnavailable, "paused", "everything is paused")
						}
						return decision == "fault"
					})
					a := d.run(p.event, p.input(fields, n))
					title := name + ", " + decision
					if err := conforms(a.Out, p.answer); err != nil && a.Code != blocked {
						t.Errorf("%s: %v: %s", title, err, a.Out)
					}
					if a.Code != 0 && (a.Code != blocked || a.Err == "" || whole) {
						t.Errorf("%s: %+v", title, a)
					}
					asked := d.Requests()[before:]
					runs := a.Code == 0 && (strings.Contains(string(a.Out), `"allow"`) || p.agent == "codex" && len(a.Out) == 0)
					denies := a.Code == blocked || strings.Contains(string(a.Out), `"deny"`)
					switch approved := decision == "approved" || decision == "edited"; {
					case !asks && (len(asked) > 0 || a.Code == 0 && (runs || denies) && string(a.Out) != ""):
						t.Errorf("%s: a report is answered with %s", title, a.Out)
					case !asks:
					case whole != (len(asked) == 1) && decision != "fault", runs != (whole && approved):
						t.Errorf("%s: %d requests, and the answer %+v", title, len(asked), a)
					case !runs && !denies && (profile == Control || whole && decision == "rejected"):
						t.Errorf("%s: %+v", title, a)
					}
					if asks && len(asked) == 1 {
						p.checkRequest(t, title, fields, asked[0])
					}
					if !strings.Contains(string(a.Out), edited) {
						t.Errorf("%s: %s does not have the edited arguments %s", title, a.Out, edited)
					}
				}
			}
			for name, fields := range map[string]map[string]string{
				"all fields": all, "only the needed fields": p.needed, "an unknown field": with(all, "new_in_the_next_version", `{"tool_name":"Read","decision":"allow"}`),
			} {
				try(name, fields, true, "approved", "edited", "rejected", "fault")
			}
			for name := range all {
				_, needed := p.needed[name]
				if needed && !asks && name != "hook_event_name" {
					continue // without it, the hook finds no request, and has nothing to report
				}
				try("without "+name, with(all, name, ""), !needed, "approved")
				try(name+" is null", with(all, name, "null"), !needed, "approved")
			}
		})
	}
}

// checkRequest compares a request with the event that caused it.
func (p published) checkRequest(t *testing.T, title string, fields map[string]string, r fakegateway.Request) {
	t.Helper()
	tool, args := fields["tool_name"], fields["tool_input"]
	if p.agent == "copilot" {
		tool, args = fields["toolName"], fields["toolArgs"]+fields["toolInput"]
	}
	var text string
	switch {
	case json.Unmarshal([]byte(args), &text) == nil && strings.HasPrefix(text, "{"):
		args = text
	case text != "":
		args = `{"text":` + args + `}`
	}
	tool = p.agent + "." + strings.Replace(strings.Trim(tool, `"`), "MCP:", "MCP.", 1)
	if want := strings.TrimSuffix(args, "}") + folder; r.Tool != tool || r.Args != want {
		t.Errorf("%s: the request is %s %s, want %s %s", title, r.Tool, r.Args, tool, want)
	}
}
