package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"countersign/internal/testkit/sdks"
)

// deployTool is a tool that only the clients have. A deployment of the docs needs nobody. A deployment of late is
// decided by nobody.
const deployTool = `
  deploy:
    risk: low
    preview: "Deploy {{.service}} {{.version}}"
    rules:
      - {when: args.service == "late", stages: [{approver: team-lead, expires_after: 1s}]}
      - {when: '!(args.service in ["docs", "late"])', risk: high}
`

// sdkAgent is an agent that is built with an SDK. Each agent is a client of its own, with the agent's name.
type sdkAgent struct {
	*testing.T
	programs sdks.Programs
	host     *sdks.Host
	name     string
	gate     string
	teo      watcher
}

func (a *sdkAgent) call(build string, calls ...string) sdks.Run {
	return sdks.Run{Gate: a.gate, Token: "cs_" + a.name, Build: a.name + "-" + build, Calls: calls}
}

func TestSDKs(t *testing.T) {
	t.Parallel()
	programs := sdks.Compile(t, "../..")
	p, bot, ci := openGateway(t, func(policy string) string {
		policy = strings.Replace(policy, "\ntools:\n", "\ntools:"+deployTool, 1)
		policy = strings.Replace(policy, "send_email, delete_account]", `send_email, delete_account, deploy]`, 1)
		for name := range sdks.Texts(t, "../..") {
			policy += fmt.Sprintf("  %s: {title: Agent %s, token: \"sha256:%s\", agent: support, owner: U0100, tools: [deploy]}\n", name, name, tokenHash("cs_"+name))
		}
		return policy
	})
	_ = bot
	_ = syscall.SIGKILL
	_ = http.MethodGet
	a := &sdkAgent{T: t, programs: programs, host: programs.Host(t, "openai"), name: "openai", gate: ci.base, teo: p.watcher("teo")}
	run := a.host.Start(a.call("approved", `{ "service":"shop",  "version":"1.4.2" }`))
	a.teo.clicks("countersign", "", "Approve", "Agent openai", "Deploy shop 1.4.2")
	t.Log(run())
	t.Log(a.host.Start(a.call("low", `{"service":"docs","version":"1"}`))())
	t.Log(a.host.Start(a.call("late", `{"service":"late","version":"1"}`))())
	t.Log(a.host.Start(a.call("malformed", `{"service":"late","ver`))())
	t.Log(a.host.Start(a.call("approved", `{ "service":"shop",  "version":"1.4.2" }`))())
	t.Log(commands{t, p.dir, p.env}.run("audit", "export", "--payloads"))
	t.Log(commands{t, p.dir, p.env}.run("audit", "list"))
	t.Log(programs.Ran(t, a.name+"-approved"))
}
