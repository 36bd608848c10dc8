package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/agent/hook"
	"countersign/approvers"
	"countersign/config"
	"countersign/config/check"
)

// calls has one call to each tool with a preview, and the expected sentence on the card.
var calls = []struct{ tool, args, want string }{
	{"claude-code.Bash", `{"command":"make deploy","description":"Deploy","working_folder":"/home/kim/shop"}`, `In /home/kim/shop: “make deploy”`},
	{"claude-code.Bash", `{"command":"cd /srv\nrm -rf build","working_folder":"/w"}`, `In /w: “cd /srv ⏎ rm -rf build”`},
	{"claude-code.Edit", `{"file_path":"/w/a.go","old_string":"a := 1","new_string":"a := 2","working_folder":"/w"}`, "Edit /w/a.go: a := 1 → a := 2"},
	{"claude-code.Edit", `{"file_path":"/w/a.go","old_string":"a\nb\nc","new_string":"a\nB\nc","working_folder":"/w"}`, "Edit /w/a.go: 1 line added, 1 line removed: + B, − b"},
	{"claude-code.MultiEdit", `{"file_path":"/w/a.go","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"c\nd"}]}`, "Edit /w/a.go in 2 places: a → b; 1 line added: + d"},
	{"claude-code.MultiEdit", `{"file_path":"/w/a.go","edits":[` + strings.Repeat(`{"old_string":"a","new_string":"`+strings.Repeat("b", 70)+`"},`, 9) + `{"old_string":"c","new_string":""}]}`,
		"Edit /w/a.go in 10 places: " + strings.Repeat("; a → "+strings.Repeat("b", 59)+"…", 3)[2:] + "; …"},
	{"claude-code.Write", `{"file_path":"/w/a.go","content":"package a"}`, `Write /w/a.go: “package a”`},
	{"codex.apply_patch", `{"command":"*** Begin Patch\n*** Delete File: a.go\n*** End Patch","working_folder":"/w"}`, `Apply a patch in /w: deletes a.go`},
	{"codex.apply_patch", `{"command":"*** Begin Patch\n*** Add File: new.go\n+package x\n*** Update File: a.go\n*** Move to: b.go\n@@ func f()\n a\n-b\n+B\n*** End of File\n*** Delete File: c.go\n*** End Patch","working_folder":"/w"}`,
		`Apply a patch in /w: new file new.go: 1 line added: + package x; moves a.go to b.go: 1 line added, 1 line removed: + B, − b; deletes c.go`},
	{"codex.apply_patch", `{"command":"git apply","working_folder":"/w"}`, `Apply a patch in /w: “git apply”`},
	{"copilot.apply_patch", `{"text":"*** Begin Patch\n*** Update File: a.go\n-b\n+B\n*** End Patch\n","working_folder":"/w"}`, `Apply a patch in /w: a.go: 1 line added, 1 line removed: + B, − b`},
	{"gemini.write_file", `{"file_path":"/w/a.go","content":"package a"}`, `Write /w/a.go: “package a”`},
	{"claude-code.Monitor", `{"command":"tail -f log","description":"d","timeout_ms":1,"working_folder":"/w"}`, `Watch in /w: “tail -f log”`},
	{"claude-code.Monitor", `{"ws":{"url":"wss://a.example"},"description":"d","timeout_ms":1,"working_folder":"/w"}`, `Watch in /w: “a WebSocket”`},
	{"claude-code.CronCreate", `{"cron":"5 4 * * *","prompt":"Check the build"}`, `At “5 4 * * *”, give the agent this prompt: “Check the build”`},
	{"claude-code.Workflow", `{"script":"export const meta = {}"}`, `Run a workflow: “export const meta = {}”`},
	{"claude-code.Workflow", `{"name":"release"}`, `Run a workflow: “release”`},
	{"claude-code.RemoteTrigger", `{"action":"run","trigger_id":"t"}`, "Triggers that run agents elsewhere: run"},
	{"claude-code.Artifact", `{"file_path":"/w/a.html"}`, `Pages at claude.ai: publish “/w/a.html”`},
	{"claude-code.Projects", `{"method":"project_delete","path":"a"}`, "Projects at claude.ai: project_delete"},
	{"claude-code.ClaudeDesign", `{"operation":"list","arguments":{}}`, "Claude Design: list"},
	{"claude-code.SendFeedback", `{"type":"bug","title":"t","details":"It broke"}`, `Send to Anthropic: “It broke”`},
	{"gemini.replace", `{"file_path":"/w/a.go","instruction":"i","old_string":"x","new_string":"y"}`, "Edit /w/a.go: x → y"},
	{"copilot.edit", `{"path":"/w/a.go","old_str":"x","new_str":"y"}`, "Edit /w/a.go: x → y"},
	{"copilot.create", `{"path":"/w/a.go","file_text":"package a"}`, `Write /w/a.go: “package a”`},
	{"cursor.Write", `{"file_path":"/w/a.go","content":"package a"}`, `Write /w/a.go: “package a”`},
	{"cursor.Write", `{"path":"/w/a.go","contents":"package a"}`, `Write /w/a.go: “package a”`},
	{"cursor.Write", `{"file_path":"/w/a.go","old_string":"x","new_string":"y"}`, "Edit /w/a.go: x → y"},
	{"cursor.StrReplace", `{"path":"/w/a.go","old_string":"x","new_string":"y"}`, "Edit /w/a.go: x → y"},
	{"cursor.Delete", `{"path":"/w/a.go"}`, "Delete /w/a.go"},
	{"cursor.Shell", `{"command":"ls","cwd":"","working_folder":"/w"}`, `In /w: “ls”`},
}

// TestPolicies reads each policy, and makes previews of calls.
func TestPolicies(t *testing.T) {
	for _, a := range hook.Agents() {
		t.Run(a.Name, func(t *testing.T) {
			text, err := Policy(a)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "countersign.yaml")
			rest := "version: 1\napprovers:\n  lead: {title: Lead, members: [U0001], max_risk: critical, can_approve: [\"*\"], cards: dm}\n"
			if err := os.WriteFile(path, []byte(rest+text), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := check.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range file.Policy.Tools {
				if !strings.HasPrefix(tool.Name, a.Name+".") {
					t.Errorf("%s is not a tool of %s", tool.Name, a.Title)
				}
			}
			for _, c := range calls {
				if !strings.HasPrefix(c.tool, a.Name+".") {
					continue
				}
				if got := sentence(t, file, c.tool, c.args); got != c.want {
					t.Errorf("%s %s\ngot  %s\nwant %s", c.tool, c.args, got, c.want)
				}
			}
		})
	}
}

// builtIn lists the names in BUILTIN_TOOL_NAMES of the npm package @anthropic-ai/claude-agent-sdk 0.3.330.
const builtIn = `Agent Artifact AskUserQuestion Bash ClaudeDesign CronCreate CronDelete CronList Edit EndConversation EnterPlanMode
EnterWorktree ExitPlanMode ExitWorktree Glob Grep ListAgents ListMcpResourcesTool LSP Monitor NotebookEdit OfferChromeSetup PowerShell
Projects propose_skills PushNotification Read ReadMcpResourceDirTool ReadMcpResourceTool ReadNotifications RemoteTrigger ReportFindings
ScheduleWakeup SendFeedback SendMessage SendUserFile SendUserMessage SetGoal ShareOnboardingGuide ShowOnboardingRolePicker Skill
SubagentHandback TaskCreate TaskGet TaskList TaskStop TaskUpdate TodoWrite ToolSearch WaitForMcpServers WebFetch WebSearch Workflow Write`

// TestPolicyOfClaudeCode checks that the policy names all tools of Claude Code, because a missing tool has the highest
// risk by default. Tools that start commands or other agents must have a high risk.
func TestPolicyOfClaudeCode(t *testing.T) {
	a, _ := hook.Find("claude-code")
	text, err := Policy(a)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "countersign.yaml")
	write(t, path, "version: 1\napprovers:\n  lead: {title: Lead, members: [U0001], max_risk: critical, can_approve: [\"*\"], cards: dm}\n"+text)
	file, err := check.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	risks := map[string]approvers.Risk{}
	for _, tool := range file.Policy.Tools {
		risks[strings.TrimPrefix(tool.Name, "claude-code.")] = tool.Risk
	}
	for _, name := range strings.Fields(builtIn) {
		if _, ok := risks[name]; !ok {
			t.Errorf("the policy lacks %s", name)
		}
	}
	for _, name := range []string{"Bash", "PowerShell", "Monitor", "CronCreate", "CronDelete", "Workflow", "RemoteTrigger"} {
		if risks[name] < approvers.High {
			t.Errorf("%s has the risk %s", name, risks[name])
		}
	}
}

// sentence returns the preview of a call.
func sentence(t *testing.T, file *config.File, tool, args string) string {
	t.Helper()
	for _, p := range file.Policy.Tools {
		if p.Name != tool {
			continue
		}
		var values map[string]any
		if err := json.Unmarshal([]byte(args), &values); err != nil {
			t.Fatal(err)
		}
		text, err := p.Preview.Render(values)
		if err != nil {
			t.Errorf("%s %s: %v", tool, args, err)
		}
		return text
	}
	t.Fatalf("the policy has no %s", tool)
	return ""
}
