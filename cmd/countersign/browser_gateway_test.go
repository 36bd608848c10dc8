package main

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"countersign/agent/client"
	"countersign/agent/gateway"
	"countersign/agent/hook"
	hooksetup "countersign/agent/hook/setup"
	"countersign/cmd/countersign/policyfile"
	"countersign/internal/testkit"
)

// The method "pictures" saves screenshots of the page, as a laptop and as a phone show it, in the light and the dark
// theme.
func (b *browser) pictures(name string) {
	b.Helper()
	for _, screen := range []struct {
		name          string
		width, height int64
	}{{"laptop", 1280, 900}, {"phone", 390, 844}} {
		b.Do("resize", chromedp.EmulateViewport(screen.width, screen.height))
		for _, theme := range []string{"light", "dark"} {
			b.Until("the page is "+theme, fmt.Sprintf(`(() => { document.documentElement.dataset.theme = %q; [...document.querySelectorAll("`+inMessages+`")].at(-1)?.scrollIntoView({block: "end"}); return true; })()`, theme))
			b.Until("all colours are there", `document.getAnimations().length === 0`)
			b.Shot(name + "-" + screen.name + "-" + theme)
		}
	}
	b.Do("resize", chromedp.EmulateViewport(1280, 900))
}

// The test shows the calls of other agents in a real browser. A pipeline requests a deployment over HTTP. A coding
// agent requests a command and an edit over its hook. The cards name the requester and the agent that runs the call.
// They also show the whole command and the whole edit.
func TestBrowserGateway(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	a, _ := hook.Find("claude-code")
	tools, err := hooksetup.Policy(a)
	if err != nil {
		t.Fatal(err)
	}
	tools = strings.Replace(tools, "claude-code.Edit: {risk: medium", "claude-code.Edit: {risk: high", 1) +
		"  deploy: {risk: high, preview: \"Deploy {{.service}} {{.version}}\"}\n"
	policy := fmt.Sprintf(hooksPolicy, tools, tokenHash("cs_laptop"), tokenHash("cs_phone")) +
		fmt.Sprintf("  ci: {title: CI bot, token: \"sha256:%s\", agent: coding, owner: U0100, tools: [deploy]}\n", tokenHash("cs_ci"))
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, []byte(policy))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := openDemoHarness(t, t.TempDir(), func(s *setup) {
		if s.policies, err = policyfile.Open(file, s.tools, s.log); err != nil {
			t.Fatal(err)
		}
		s.gateway, s.receiptKey = l, gateway.NewReceiptKey()
	})
	gate := "http://" + l.Addr().String()
	ci, err := client.New(gate, "cs_ci")
	if err != nil {
		t.Fatal(err)
	}
	call := client.Call{Tool: "deploy", Args: json.RawMessage(`{"service":"shop","version":"1.4.2"}`), Accepts: client.All, Summary: "All 214 tests passed on main"}
	asked, err := ci.Ask(within(t), "build-4711", "decide", call)
	if err != nil || asked.Status != client.Pending {
		t.Fatalf("%+v, %v", asked, err)
	}

	b := openBrowserTest(t, h.base)
	b.become("U0002", "U0BOT")
	for _, text := range []string{
		"Deploy shop 1.4.2", "CI bot asks, another agent (client ci, owner @Sam)", "All 214 tests passed on main", "CI bot runs this itself; Countersign can't stop it.",
	} {
		b.sees(inMessages, text)
	}
	b.pictures("gateway-1-asked")
	b.click("button", "Approve")
	b.press("confirm-accept")
	b.sees(inMessages, "CI bot may run it until")
	b.pictures("gateway-2-approved")
	approved, err := ci.Wait(within(t), asked, nil)
	if err != nil || approved.Status != client.Approved {
		t.Fatalf("%+v, %v", approved, err)
	}
	if _, err := ci.Claim(within(t), approved); err != nil {
		t.Fatal(err)
	}
	b.sees(inMessages, "The client ci is running it.")
	if _, err := ci.Report(within(t), approved.ID, approved.Run, client.Succeeded, "shop 1.4.2 is live"); err != nil {
		t.Fatal(err)
	}
	b.sees(inMessages, "The client ci says: it ran")
	b.sees(inMessages, "shop 1.4.2 is live")
	b.pictures("gateway-3-ran")

	laptop := newCoder(t, gate, "cs_laptop", hook.Control)
	const command = "set -e\ncd build && make deploy ENV=production\nrm -rf /tmp/cache # café"
	answer := laptop.hook(bashCall("PreToolUse", "t1", command, ""))
	for _, text := range []string{"make deploy ENV=production", "rm -rf /tmp/cache # café", "/home/sam/shop", "Sam's laptop runs this itself; Countersign can't stop it."} {
		b.sees(inMessages, text)
	}
	b.pictures("gateway-4-command")
	b.click("button", "Approve")
	b.press("confirm-accept")
	if out := answer(); !strings.Contains(out, `"permissionDecision":"allow"`) {
		t.Errorf("approved: %s", out)
	}
	laptop.hook(bashCall("PostToolUse", "t1", command, `,"tool_response":{}`))()
	answer = laptop.hook(`{"session_id":"s-1","cwd":"/home/sam/shop","hook_event_name":"PreToolUse","tool_name":"Edit","tool_use_id":"t2","tool_input":` +
		`{"file_path":"/home/sam/shop/price.go","old_string":"func price(n int) int {\n\treturn n * 100\n}","new_string":"func price(n int) int {\n\treturn n * 90 // ten percent off\n}"}}`)
	b.sees(inMessages, "ten percent off")
	b.sees(inMessages, "⇥ return n * 90")
	b.Until("tabs are no warning", `![...document.querySelectorAll("`+inMessages+`")].some(e => e.innerText.includes("can't be seen"))`)
	b.pictures("gateway-5-edit")
	b.click("button", "Reject…")
	b.sees(inForm, "Reject")
	b.enter(inForm+" textarea", "Ask the shop's team first")
	b.press("modal-submit")
	if out := answer(); !strings.Contains(out, "Ask the shop's team first") {
		t.Errorf("rejected: %s", out)
	}
	b.sees(inMessages, "Rejected")
	b.pictures("gateway-6-rejected")
	b.become("U0100", "home")
	b.pictures("gateway-7-owner")
}
