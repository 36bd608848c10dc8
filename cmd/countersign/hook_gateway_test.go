package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"countersign/agent/hook"
	hooksetup "countersign/agent/hook/setup"
)

// hooksPolicy has the tools of Claude Code. Teo decides calls. Teo also owns the client "phone", and answers the
// dialogs of the agent on this client's machine.
const hooksPolicy = `version: 1
%s
approvers:
  lead: {title: Team Lead, members: [U0002], max_risk: critical, can_approve: ["*"]}
agents:
  coding: {channels: ["#support"], prompt: "Unused: coding agents have their own.", tools: ["*"]}
clients:
  laptop: {title: Sam's laptop, token: "sha256:%s", agent: coding, owner: U0100, tools: ["*"]}
  phone: {title: Teo's laptop, token: "sha256:%s", agent: coding, owner: U0002, tools: ["*"]}
`

// coder is a machine on which Claude Code runs.
type coder struct {
	*testing.T
	home string
}

// hook starts the hook as Claude Code does. The returned function waits until the hook ends, and returns the hook's
// output.
func (c coder) hook(input string) func() string {
	c.Helper()
	path := programPath(c)
	cmd := exec.Command(path, "hook", "claude-code", "--timeout", "3600s")
	cmd.Env = append(plainEnv(), "HOME="+c.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=")
	cmd.Stdin = strings.NewReader(input)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { cmd.Process.Kill() }) // no effect if the process has ended
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func() string {
		c.Helper()
		if err := <-ended; err != nil {
			c.Fatalf("the hook: %v\n%s", err, out.String())
		}
		return out.String()
	}
}

// The method "interrupted" starts a hook, and calls the function in the parameter after. Then it ends the hook with the
// signal that Claude Code sends when the user answers the agent's dialog.
func (c coder) interrupted(input string, after func()) string {
	c.Helper()
	path := programPath(c)
	cmd := exec.Command(path, "hook", "claude-code")
	cmd.Env = append(plainEnv(), "HOME="+c.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=")
	cmd.Stdin = strings.NewReader(input)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	after()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		c.Fatalf("the hook: %v", err)
	}
	return out.String()
}

func newCoder(t *testing.T, gate, token string, profile hook.Profile) coder {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "countersign")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "token"), []byte(token))
	if err := os.Chmod(filepath.Join(dir, "token"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "hook.json"), fmt.Appendf(nil, `{"address": %q, "token_file": "token", "profile": %q}`, gate, profile))
	return coder{t, home}
}

// bashCall returns an event about a call of Claude Code's shell.
func bashCall(event, id, command, extra string) string {
	return fmt.Sprintf(`{"session_id":"s-1","cwd":"/home/sam/shop","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":%q,"description":"Deploy"},"tool_use_id":%q%s}`, event, command, id, extra)
}

// openHooks starts a bot whose gateway answers the hooks of two laptops: see hooksPolicy.
func openHooks(t *testing.T) (p *processHarness, bot *program, admin, gate string) {
	t.Helper()
	p = openProcessHarness(t)
	a, _ := hook.Find("claude-code")
	tools, err := hooksetup.Policy(a)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(tools, "claude-code.Edit: {risk: medium", "claude-code.Edit: {self_approval: true, risk: high", 1)
	write(t, p.policy(), fmt.Appendf(nil, hooksPolicy, own, tokenHash("cs_laptop"), tokenHash("cs_phone")))
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0")
	bot, admin = p.serve()
	return p, bot, admin, "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
}

// answerIn finds the command that answers an approver's question in a denial.
var answerIn = regexp.MustCompile(`replace TEXT: (\S.* req_[0-9A-Za-z]+ [0-9]+ )'TEXT'`)

// answersQuestion asks a question about a call. The agent answers with the command in the denial, and nobody is asked
// about this command. The parameter hook starts an event, as coder.hook does.
func answersQuestion(t *testing.T, teo watcher, hook func(string) func() string) {
	t.Helper()
	answer := hook(bashCall("PreToolUse", "q1", "make release", ""))
	teo.clicks("countersign", "", "Details…", "make release")
	teo.clicksInForm("Ask…")
	teo.fills("reason", "Is it tested?")
	out := answer()
	command := answerIn.FindStringSubmatch(out)
	if command == nil {
		t.Fatalf("the denial has no command: %s", out)
	}
	if out := hook(bashCall("PreToolUse", "q2", command[1]+"'Yes, all of it.'", ""))(); !denied(out) || !strings.Contains(out, "The answer arrived") {
		t.Errorf("the answer: %s", out)
	}
	teo.sees("countersign", "", "make release", "Is it tested?", "Yes, all of it.")
	answer = hook(bashCall("PreToolUse", "q3", "make release", ""))
	teo.clicks("countersign", "", "Approve", "make release")
	if out := answer(); !allowed(out) {
		t.Errorf("approved after the answer: %s", out)
	}
}

// A coding agent's calls wait for real clicks. Calls are approved and rejected, and a call of low risk needs no click.
// In the profile comfort, the user answers on the phone, or answers earlier in the agent's dialog.
func TestHooksOfClaudeCode(t *testing.T) {
	t.Parallel()
	p, _, _, gate := openHooks(t)
	teo := p.watcher("teo")
	laptop := newCoder(t, gate, "cs_laptop", hook.Control)

	const long = "set -e\ncd build && make deploy ENV=staging\nrm -rf /tmp/cache"
	answer := laptop.hook(bashCall("PreToolUse", "t1", long, ""))
	card := teo.sees("countersign", "", "make deploy ENV=staging", "/home/sam/shop", "rm -rf /tmp/cache", "Sam's laptop", "runs this itself")
	if !strings.Contains(card.Text+string(card.Blocks), "Modify…") {
		t.Error("the card offers no edit, although the agent takes edits back")
	}
	teo.clicks("countersign", "", "Approve", "make deploy ENV=staging")
	if out := answer(); !strings.Contains(out, `"permissionDecision":"allow"`) || !strings.Contains(out, "Approved by Team Lead") {
		t.Errorf("approved: %s", out)
	}
	if out := laptop.hook(bashCall("PostToolUse", "t1", long, `,"tool_response":{}`))(); out != "{}\n" {
		t.Errorf("the report: %s", out)
	}
	teo.sees("countersign", "", "make deploy ENV=staging", "The client laptop says", "it ran")

	answer = laptop.hook(bashCall("PreToolUse", "t2", "rm -rf /", ""))
	teo.clicks("countersign", "", "Reject…", "rm -rf /")
	teo.fills("reason", "never")
	if out := answer(); !strings.Contains(out, `"permissionDecision":"deny"`) || !strings.Contains(out, "Team Lead rejected this call: never") {
		t.Errorf("rejected: %s", out)
	}
	if out := laptop.hook(bashCall("PreToolUse", "t3", "rm -rf /", ""))(); !strings.Contains(out, "never") {
		t.Errorf("the repeat of a rejected call: %s", out)
	}

	low := `{"session_id":"s-1","cwd":"/home/sam/shop","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"/home/sam/shop/a.go"},"tool_use_id":"t4"}`
	if out := laptop.hook(low)(); out != "{}\n" {
		t.Errorf("low risk: %s", out)
	}

	answersQuestion(t, teo, laptop.hook)

	phone := newCoder(t, gate, "cs_phone", hook.Comfort)
	edit := func(was string) string {
		return fmt.Sprintf(`{"session_id":"s-2","cwd":"/home/teo/shop","hook_event_name":"PermissionRequest","tool_name":"Edit","tool_input":{"file_path":"/home/teo/shop/a.go","old_string":%q,"new_string":"x := 2"}}`, was)
	}
	answer = phone.hook(edit("x := 1"))
	teo.clicks("countersign", "", "Approve", "Edit /home/teo/shop/a.go: x := 1 → x := 2")
	if out := answer(); !strings.Contains(out, `"behavior":"allow"`) {
		t.Errorf("approved on the phone: %s", out)
	}
	out := phone.interrupted(edit("x := 3"), func() { teo.sees("countersign", "", "x := 3 → x := 2", "Approve") })
	if strings.Contains(out, "allow") {
		t.Errorf("interrupted: %s", out)
	}
	card = teo.sees("countersign", "", "x := 3 → x := 2", "Withdrawn", "It was answered at the agent")
	if strings.Contains(string(card.Blocks), "Approve") {
		t.Errorf("the card of a request that was answered elsewhere has buttons: %s", card.Blocks)
	}
}
