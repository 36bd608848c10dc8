package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"countersign/internal/testkit"
	"countersign/internal/testkit/npm"
)

const toolsPage = "../../docs/tools.md"

// walkthrough contains the steps that docs/tools.md asks a newcomer to do: the policy, the commands, and Sam's message.
type walkthrough struct {
	policy   string
	commands []string
	says     []string
}

func readWalkthrough(t *testing.T) (w walkthrough) {
	t.Helper()
	text, err := os.ReadFile(toolsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## Walk-through\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(part, -1) {
		lines := strings.Split(strings.TrimSpace(m[2]), "\n")
		switch m[1] {
		case "yaml":
			w.policy = m[2]
		case "sh":
			w.commands = append(w.commands, lines...)
		case "text":
			w.says = append(w.says, lines...)
		}
	}
	if w.policy == "" || len(w.commands) != 5 || len(w.says) != 2 {
		t.Fatalf("the page has another walk-through: %+v", w)
	}
	return w
}

// The test follows the walk-through of docs/tools.md. It pins an MCP server from npm. In the browser, a person then
// requests a call to that server's tool. The call waits until the Team Lead approves it. After the call, the file is on
// the disk. In the walk-through, npx downloads the server. The test starts an installed copy of the same version instead.
func TestBrowserServer(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	_, tool := npm.Require(t, "a gated call of an MCP server from npm, in the browser, was")
	modules := npm.Installed(t, tool, "../../agent/mcp/npmtest", "mcp-servers")
	program := programPath(t)
	w := readWalkthrough(t)
	server := regexp.MustCompile(`npx, -y, "@modelcontextprotocol/server-filesystem@([^"]*)"`).FindStringSubmatch(w.policy)
	lock, err := os.ReadFile("../../agent/mcp/npmtest/package.json")
	if err != nil || server == nil || !strings.Contains(string(lock), `"@modelcontextprotocol/server-filesystem": "`+server[1]+`"`) {
		t.Fatalf("%v: the page names the server %q, and the tests install another one", err, server)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "countersign.yaml"), []byte(strings.Replace(w.policy, server[0], "mcp-server-filesystem", 1)))
	env := []string{"PATH=" + filepath.Dir(program) + ":" + filepath.Join(modules, "node_modules", ".bin") + ":" + os.Getenv("PATH")}
	run := func(line, stdin string) string {
		t.Helper()
		cmd := exec.CommandContext(within(t), "sh", "-c", line)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, append(plainEnv(), env...), strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	run(w.commands[0], "")
	if said := run(w.commands[1]+" --yes", ""); !strings.Contains(said, "files.write_file") {
		t.Errorf("%s says\n%s", w.commands[1], said)
	}
	if said := run(w.commands[2], ""); !regexp.MustCompile(`files\.write_file +high +Team Lead`).MatchString(said) || strings.Contains(said, "warning") {
		t.Errorf("%s says\n%s", w.commands[2], said)
	}

	flags := strings.Fields(strings.TrimPrefix(w.commands[3], "countersign "))
	demo := launch(t, dir, env, append(flags, "--no-browser", "--addr", "127.0.0.1:0")...)
	b := openBrowserTest(t, demo.says(`The workspace +(http://[^/]+)/`))
	demo.says(`The policy's servers are there too: (files)\.`)

	b.become("U0100", "C0001")
	b.write("composer", w.says[0])
	b.click("replies", "")
	b.sees(inThread, "Buy stamps")
	b.Shot("server-01-read")
	b.become("U0100", "C0001")
	b.write("composer", w.says[1])
	b.Until("the second thread has an answer", `document.querySelectorAll("[data-testid=replies]").length === 2`)
	b.click("replies", "")
	b.sees(inThread, "Waits for Team Lead")
	b.sees(inThread, "Write hello.txt")
	b.Shot("server-02-asker-waiting")
	file := filepath.Join(dir, "notes", "hello.txt")
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is there before anybody approved it")
	}
	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Write hello.txt")
	b.sees(inMessages, "Hello from Slack")
	b.sees(inMessages, "files.write_file")
	b.Shot("server-03-card")
	b.click("button", "Approve")
	b.sees("[data-testid=confirm]", "Write hello.txt")
	b.Shot("server-04-confirm")
	b.press("confirm-accept")
	b.sees(inMessages, "Approved by")
	b.Shot("server-05-approved")
	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "Successfully wrote to")
	b.Shot("server-06-answer")
	if said := run(w.commands[4], ""); said != "Hello from Slack" {
		t.Errorf("%s says %q", w.commands[4], said)
	}
	if err := demo.end(syscall.SIGINT); err != nil {
		t.Errorf("asked to stop, the demo ended with %v", err)
	}
}
