package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"countersign/bot"
	"countersign/bot/transport"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

const installPage = "../../docs/install.md"

// The test follows the steps of docs/install.md in the page's order, over both transports, until the first call is
// approved. The test uses the page's policy and commands, and the messages and clicks of people. The workspace already
// has the settings that the page describes for Slack.
func TestInstallPage(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	text, err := os.ReadFile(installPage)
	if err != nil {
		t.Fatal(err)
	}
	socket, http, ok := strings.Cut(string(text), "## Requests over HTTP instead of a socket")
	if !ok {
		t.Fatal("the page has no part on HTTP")
	}
	policy := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(socket)[1]
	dir := t.TempDir()
	for name, part := range map[string]string{"socket": socket, "http": http} {
		script := "workspace\nmodel sk-key\nenv COUNTERSIGN_ADMIN_ADDR=127.0.0.1:0\n"
		if name == "http" { // the HTTP part begins where the other part ended
			script += "shop countersign.yaml\naddress\n"
		}
		script += pageScript(t, part) + "-- countersign.yaml --\n" + policy
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := maps.Clone(scriptCommands)
	commands["subscribe"], commands["firstcall"] = subscribe, firstCall
	testscript.Run(t, testscript.Params{Dir: dir, Cmds: commands, Setup: setUp, RequireExplicitExec: true})
}

// pageScript returns a script with the commands in a section of the page.
func pageScript(t *testing.T, part string) string {
	t.Helper()
	var b strings.Builder
	n := 0
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1) {
		for line := range strings.Lines(m[1]) {
			line = strings.TrimSpace(line)
			n++
			switch {
			case strings.HasPrefix(line, "export ") && strings.Contains(line, "COUNTERSIGN_TRANSPORT=http"):
				b.WriteString("env COUNTERSIGN_TRANSPORT=http\nenv SLACK_SIGNING_SECRET=" + workspace.DemoSigningSecret + "\nenv SLACK_APP_TOKEN=\n")
			case strings.HasPrefix(line, "export "): // the test's workspace and model have already set the variables
			case line == "countersign serve":
				b.WriteString("exec countersign serve &bot&\nup countersign.db.sock\nsubscribe\nfirstcall\n")
			case line == "countersign tools pin --all":
				b.WriteString("exits 0 " + line + " --yes\nstdout issue_refund\n")
			case strings.HasPrefix(line, "countersign doctor"):
				b.WriteString("exits 0 " + strings.Replace(line, "https://bot.example.com", "http://$COUNTERSIGN_HTTP_ADDR", 1) + "\nstdout '^Nothing is missing\\.$'\n")
			case strings.HasPrefix(line, "countersign "):
				b.WriteString("exits 0 " + line + "\n")
			default:
				t.Fatalf("what is this? %s", line)
			}
		}
	}
	if n < 4 {
		t.Fatalf("%d commands", n)
	}
	return b.String() + "kill -INT bot\nwait bot\n"
}

// If the transport is HTTP, subscribe makes the workspace send its requests to the bot's address. In Slack, the app's
// settings contain this address.
func subscribe(ts *testscript.TestScript, _ bool, _ []string) {
	if ts.Getenv("COUNTERSIGN_TRANSPORT") != "http" {
		return
	}
	at := "http://" + ts.Getenv("COUNTERSIGN_HTTP_ADDR")
	body := fmt.Sprintf(`{"events":%q,"interactivity":%q,"options":%q,"commands":%q}`, at+transport.EventsPath, at+transport.InteractionsPath, at+transport.OptionsPath, at+transport.CommandsPath)
	askWorkspace(ts, false, []string{"/app/request_urls", body})
}

// firstCall makes Sam request a refund, makes Teo approve the refund, and waits until the bot has told Sam.
func firstCall(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sam, teo := workspaceclient.Client{Base: base(ts), User: "sam"}, workspaceclient.Client{Base: base(ts), User: "teo"}
	thread := ""
	ts.Check(sam.Await(ctx, "the bot hears", func() (_ bool, err error) { // a bot that has just started may not receive messages yet
		thread, err = sam.Say(ctx, "#support", "", "@Countersign refund ORD-123, it arrived broken")
		return err == nil, err
	}))
	ts.Check(teo.Await(ctx, "a card for Teo", func() (bool, error) {
		messages, err := teo.Messages(ctx, "#support-approvals", "")
		if err != nil || len(messages) == 0 {
			return false, err
		}
		approve, ok := workspaceclient.Button(messages[len(messages)-1].Blocks, "Approve")
		if !ok {
			return false, nil
		}
		return true, teo.Press(ctx, messages[len(messages)-1], approve)
	}))
	ts.Check(sam.Await(ctx, "an answer for Sam", func() (bool, error) {
		messages, err := sam.Messages(ctx, "#support", thread)
		for _, m := range messages {
			if strings.Contains(m.Text, "$49.99") && strings.Contains(strings.ToLower(m.Text), "refunded") {
				return true, err
			}
		}
		return false, err
	}))
}

// docs/install.md lists the same scopes as the manifest.
func TestInstallPageScopes(t *testing.T) {
	testkit.SkipIfShort(t)
	text, err := os.ReadFile(installPage)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, s := range bot.Scopes() {
		fmt.Fprintf(&want, "| `%s` | %s |\n", s.Name, s.For)
	}
	if !strings.Contains(string(text), "| --- | --- |\n"+want.String()+"\n") {
		t.Errorf("docs/install.md does not list the scopes as they are:\n%s", want.String())
	}
}
