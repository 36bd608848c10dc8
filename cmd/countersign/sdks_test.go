package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/sdks"
)

// deployTool is a tool that only the clients have. A deployment of the service "docs" needs no approval. A deployment
// of the service "late" expires, because nobody decides within a second.
const deployTool = `
  deploy:
    risk: low
    preview: "Deploy {{.service}} {{.version}}"
    rules:
      - {when: args.service == "late", stages: [{approver: team-lead, expires_after: 1s}]}
      - {when: '!(args.service in ["docs", "late"])', risk: high}
`

// sdkTokens has the tokens of the agents. Each agent is a client with the agent's name. The agent "stranger" may not
// deploy.
var sdkTokens = map[string]string{"openai": "cs_openai", "ai": "cs_ai", "langchain": "cs_langchain", sdks.Without: "cs_without", "stranger": "cs_stranger"}

func withAgents(policy string) string {
	policy = strings.Replace(policy, "\ntools:\n", "\ntools:"+deployTool, 1)
	policy = strings.Replace(policy, "send_email, delete_account]", "send_email, delete_account, deploy]", 1)
	for name, token := range sdkTokens {
		tool := "deploy"
		if name == "stranger" {
			tool = "search_orders"
		}
		policy += fmt.Sprintf("  %s: {title: Agent %s, token: \"sha256:%s\", agent: support, owner: U0100, tools: [%s]}\n", name, name, tokenHash(token), tool)
	}
	return policy
}

// sdkAgent is an agent that is built with an SDK.
type sdkAgent struct {
	*processHarness
	programs sdks.Programs
	host     *sdks.Host
	sdk      string
	gate     string // the gateway's address
	teo      watcher
}

func deployment(service, version string) string {
	return fmt.Sprintf(`{"service":%q,"version":%q}`, service, version)
}

// starts starts the agent's program, whose model makes the calls of each step. The build identifies the run.
func (a *sdkAgent) starts(build string, steps ...[]string) (wait func() sdks.Ended) {
	a.Helper()
	return a.host.Start(sdks.Run{Gate: a.gate, Token: sdkTokens[a.sdk], Build: a.sdk + "-" + build, Calls: steps})
}

// The method "hears" waits for the end of the program. It checks that the model was told the words, and that the tool
// ran with the arguments in the parameter ran. If this parameter is "", the tool must not have run.
func (a *sdkAgent) hears(wait func() sdks.Ended, words, build, ran string) {
	a.Helper()
	if end := wait(); end.Failed || !strings.Contains(end.Out, words) {
		a.Errorf("%s, %s: the model is not told %q: %s", a.sdk, build, words, end.Out)
	}
	a.ran(build, ran)
}

func (a *sdkAgent) ran(build, want string) {
	a.Helper()
	if got := a.programs.Ran(a.T, a.sdk+"-"+build); got != want {
		a.Errorf("%s, %s: the tool ran with %q, want %q", a.sdk, build, got, want)
	}
}

// state returns the files in which a program has saved its state.
func (a *sdkAgent) state(build string) map[string][]byte {
	a.Helper()
	out := map[string][]byte{}
	for _, kind := range []string{".state", ".checkpoints"} {
		file := filepath.Join(a.programs.Dir, a.sdk+"-"+build+kind)
		if content, err := os.ReadFile(file); err == nil {
			out[file] = content
		}
	}
	if len(out) == 0 {
		a.Fatalf("%s, %s: the program has saved no state", a.sdk, build)
	}
	return out
}

// clicks clicks a button of a card of the agent.
func (a *sdkAgent) clicks(label, call string) {
	a.Helper()
	a.teo.clicks("countersign", "", label, call, "Agent "+a.sdk+" asks")
}

// fills submits the form that the click on a card opens.
func (a *sdkAgent) fills(label, call, field, value string) {
	a.Helper()
	a.clicks(label, call)
	a.teo.fills(field, value)
}

// restarts kills the process of the agent, and starts a new process.
func (a *sdkAgent) restarts() {
	a.Helper()
	a.host.Kill()
	a.host = a.programs.Host(a.T, a.sdk)
}

// The programs of docs/sdks.md run with the SDKs from npm and scripted models, and ask a real bot. People decide in the
// workspace. Programs and the bot are killed.
func TestSDKs(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	programs := sdks.Compile(t, "../..")
	p, bot, ci := openGateway(t, withAgents)
	var agents []*sdkAgent
	for _, sdk := range []string{"openai", "ai", "langchain"} {
		a := &sdkAgent{p, programs, programs.Host(t, sdk), sdk, ci.base, p.watcher("teo")}
		agents = append(agents, a)
		a.decisions(ci)
		a.kills()
	}
	without := &sdkAgent{p, programs, programs.Host(t, sdks.Without), sdks.Without, ci.base, p.watcher("teo")}
	agents = append(agents, without)
	without.question()

	// The bot is killed while a program of each SDK waits.
	var waits []func() sdks.Ended
	for _, a := range agents {
		waits = append(waits, a.starts("bot-killed", []string{deployment("shop", "1.4.2")}))
		a.teo.sees("countersign", "", "Deploy shop 1.4.2", "Agent "+a.sdk+" asks", "Waits for Team Lead")
	}
	if err := bot.end(syscall.SIGKILL); err == nil {
		t.Fatal("the killed bot ended without an error")
	}
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR="+strings.TrimPrefix(ci.base, "http://"))
	p.serve()
	for i, a := range agents {
		a.clicks("Approve", "Deploy shop 1.4.2")
		a.hears(waits[i], "deployed shop 1.4.2", "bot-killed", deployment("shop", "1.4.2"))
	}
	wait := without.starts("rejected")
	without.fills("Reject…", "Deploy shop 1.4.2", "reason", "once is enough")
	without.hears(wait, "\nThe call was rejected by Team Lead, and did not run: once is enough", "rejected", "")

	// In the history, each approval was claimed once by its client, and each outcome was reported once.
	launch(t, p.dir, p.env, "audit", "verify").says("(the history is whole)")
	var want []string
	ran := func(what string) string { return "executing executed:succeeded: deployed " + what }
	for _, sdk := range []string{"openai", "ai", "langchain"} {
		asked, both, unfit := deployment("shop", "1.0"), "approve "+ran("shop 1.6"), "the changed arguments don't fit the tool: Invalid input: expected string, received number"
		switch sdk {
		case "openai":
			asked = spaced
		case "langchain":
			both = "approve closed:withdrawn" // LangChain runs none of the calls
			unfit = `Error invoking tool 'deploy' with kwargs {"service":7,"version":"1"} with error: Error: Received tool input did not match expected schema`
		}
		want = append(want,
			sdk+" "+deployment("docs", "1")+": "+ran("docs 1"),
			sdk+" "+asked+": approve "+ran("shop 1.0"),
			sdk+" "+deployment("shop", "1.1")+": reject closed:rejected",
			sdk+" "+deployment("shop", "1.2")+": modify "+ran("shop 0.9"),
			sdk+" "+deployment("shop", "1.3")+": modify executing executed:failed: "+unfit,
			sdk+" "+deployment("broken", "1")+": approve executing executed:failed: the service is broken",
			sdk+" "+deployment("shop", "1.5")+": closed:withdrawn",
			sdk+" "+deployment("late", "1")+": closed:expired",
			sdk+" "+deployment("shop", "1.6")+": "+both,
			sdk+" "+deployment("blog", "2")+": reject closed:rejected",
			sdk+" "+deployment("slow", "1")+": approve executing",
			sdk+" "+deployment("shop", "1.4.2")+": approve "+ran("shop 1.4.2"),
		)
	}
	for _, end := range []string{"remarked remarked approve " + ran("shop 1.4.2"), "approve " + ran("shop 1.4.2"), "reject closed:rejected"} {
		want = append(want, "without "+deployment("shop", "1.4.2")+": "+end)
	}
	slices.Sort(want)
	got := histories(t, p)
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("in the history: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("not in the history: %s", line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the history has %d calls, want %d", len(got), len(want))
	}
}

// spaced is a call with the bytes of the model. An encoder would change these bytes.
const spaced = `{ "service":"shop",  "version":"1.0" }`

// The method "decisions" shows the decisions and ends of calls.
func (a *sdkAgent) decisions(ci caller) {
	// Nobody is asked about the first call. The second call waits. Then the process stops after the run, before it saves
	// the result.
	steps := [][]string{{deployment("docs", "1")}, {spaced}}
	ran := deployment("docs", "1") + "\n" + deployment("shop", "1.0")
	wait := a.starts("approved", steps...)
	a.teo.sees("countersign", "", "Deploy shop 1.0", "Agent "+a.sdk+" asks")
	before := a.state("approved")
	a.clicks("Approve", "Deploy shop 1.0")
	a.hears(wait, "heard: deployed docs 1 | deployed shop 1.0", "approved", ran)
	for file, content := range before {
		write(a.T, file, content)
	}
	a.hears(a.starts("approved", steps...), "heard: deployed docs 1 | This call ran before, and was not made again. Its result: deployed shop 1.0", "approved", ran)

	wait = a.starts("rejected", []string{deployment("shop", "1.1")})
	a.fills("Reject…", "Deploy shop 1.1", "reason", "not on a Friday")
	a.hears(wait, "heard: The call was rejected by Team Lead, and did not run: not on a Friday", "rejected", "")

	wait = a.starts("edited", []string{deployment("shop", "1.2")})
	a.fills("Modify…", "Deploy shop 1.2", "arguments", deployment("shop", "0.9"))
	a.hears(wait, "An approver changed the arguments of the call to "+deployment("shop", "0.9"), "edited", deployment("shop", "0.9"))

	wait = a.starts("unfit", []string{deployment("shop", "1.3")})
	a.fills("Modify…", "Deploy shop 1.3", "arguments", `{"service":7,"version":"1"}`)
	wait() // each SDK has its own words for the model
	a.ran("unfit", "")

	wait = a.starts("failed", []string{deployment("broken", "1")})
	a.clicks("Approve", "Deploy broken 1")
	if end := wait(); end.Failed != (a.sdk == "langchain") { // the error of a tool ends an agent of LangChain
		a.Errorf("%s: after the error of the tool, the program failed: %t: %s", a.sdk, end.Failed, end.Out)
	}
	a.ran("failed", deployment("broken", "1"))

	wait = a.starts("withdrawn", []string{deployment("shop", "1.5")})
	a.teo.sees("countersign", "", "Deploy shop 1.5", "Agent "+a.sdk+" asks")
	id := launch(a.T, a.dir, a.env, "pending").says(`(req_\w+) · deploy`)
	ci.token = sdkTokens[a.sdk]
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", `{"reason":"the build is old"}`), http.StatusOK, "withdrawn")
	a.hears(wait, "heard: The call was withdrawn, and did not run: the build is old", "withdrawn", "")

	a.hears(a.starts("late", []string{deployment("late", "1")}), "heard: The call expired, and did not run: nobody decided in time", "late", "")

	wait = a.starts("two", []string{deployment("shop", "1.6"), deployment("blog", "2")})
	a.clicks("Approve", "Deploy shop 1.6")
	a.fills("Reject…", "Deploy blog 2", "reason", "not now")
	both := deployment("shop", "1.6")
	if a.sdk == "langchain" { // LangChain runs none of the calls
		both = ""
	}
	a.hears(wait, "The call was rejected by Team Lead, and did not run: not now", "two", both)

	stranger := sdks.Run{Gate: a.gate, Token: sdkTokens["stranger"], Build: a.sdk + "-stranger", Calls: [][]string{{deployment("docs", "1")}}}
	a.hears(a.host.Start(stranger), "the policy does not let this client ask for the tool", "stranger", "")
}

// The method "kills" shows that a program that was killed and started again continues with its call, and that no tool
// acts twice.
func (a *sdkAgent) kills() {
	slow := deployment("slow", "1")
	a.starts("killed", []string{slow})
	a.teo.sees("countersign", "", "Deploy slow 1", "Agent "+a.sdk+" asks")
	a.restarts() // while people think
	a.starts("killed", []string{slow})
	a.clicks("Approve", "Deploy slow 1")
	a.teo.wait("the run of the tool", func(context.Context) (bool, error) {
		return a.programs.Ran(a.T, a.sdk+"-killed") != "", nil
	})
	a.restarts() // while the tool runs
	a.hears(a.starts("killed", []string{slow}), "its outcome is not known", "killed", slow)
}

// question shows that an approver's question reaches a program without an SDK, which answers the question.
func (a *sdkAgent) question() {
	wait := a.starts("asked")
	a.clicks("Details…", "Deploy shop 1.4.2")
	a.teo.clicksInForm("Ask…")
	a.teo.fills("reason", "Was it tested?")
	a.teo.sees("countersign", "", "Was it tested?", "The agent was asked: Was it tested?")
	a.clicks("Approve", "Deploy shop 1.4.2")
	a.hears(wait, " waits for Team Lead\ndeployed shop 1.4.2", "asked", deployment("shop", "1.4.2"))
}

// The function "histories" returns the history of each call of a client in one line: the client, the arguments, the
// decisions, the claims and the end.
func histories(t *testing.T, p *processHarness) []string {
	t.Helper()
	export := launch(t, p.dir, p.env, "audit", "export", "--payloads")
	select {
	case <-export.gone:
	case <-time.After(patience):
		t.Fatal("the export does not end")
	}
	if export.err != nil {
		t.Fatalf("the export: %v", export.err)
	}
	calls := map[string]string{}
	for line := range strings.Lines(export.text()) {
		var r struct {
			approvers.AuditRecord
			Payload string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		word := ""
		switch r.Kind {
		case approvers.AuditProposed:
			calls[r.Chain] = r.Facts["runs"] + " " + r.Payload + ":"
		case approvers.AuditDecided:
			word = r.Facts["kind"]
		case approvers.AuditExecuting, approvers.AuditRemarked:
			word = string(r.Kind)
		case approvers.AuditClosed:
			word = string(r.Kind) + ":" + r.Facts["state"]
		case approvers.AuditExecuted:
			result, _, _ := strings.Cut(r.Payload, "\n")
			word = string(r.Kind) + ":" + r.Facts["state"] + ": " + result
		}
		if word != "" {
			calls[r.Chain] += " " + word
		}
	}
	return slices.Sorted(maps.Values(calls))
}
