//go:build linux

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"countersign/cmd/countersign/cli"
	"countersign/internal/testkit"
)

// A bot was stopped, and its policy file can't be used. Commands use the policy in force, as the running bot did.
func TestBrokenPolicyOfStoppedBot(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	m := newMoving(t)
	m.ok(m.bot.end(syscall.SIGTERM))
	text := readText(t, m.policy())
	write(t, m.policy(), []byte(text+"\nnonsense: 1\n"))
	out := m.exits(cli.ExitDone, "pending")
	id := regexp.MustCompile(`req_\w+`).FindString(out)
	if !strings.Contains(out, "the policy in force is used") || !strings.Contains(out, "nonsense: is not a key") {
		t.Errorf("the command does not say which policy it uses:\n%s", out)
	}
	if whole := m.exits(cli.ExitDone, "pending", id); !strings.Contains(whole, "1. team-lead (U0002)") {
		t.Errorf("the stage is not that of the policy in force:\n%s", whole)
	}
	m.exits(cli.ExitDone, "decide", id, "reject", "--reason", "not now")
	write(t, m.policy(), []byte(text))
	m.bot, m.admin = m.serve()
	m.sam.sees("#support", m.thread, "not now")
	m.ok(m.bot.end(syscall.SIGTERM))
}

// While a stopping bot waits for a tool, it still answers commands, and a pause interrupts the tool.
func TestCommandsWhileStopping(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	begun, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client goes away
		begun <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	t.Cleanup(slow.Close) // after the bot has ended
	m := &moving{processHarness: openProcessHarness(t), resident: newResident(t)}
	write(t, m.policy(), []byte(`version: 1
http:
  crawl: {description: Slow., method: POST, url: "`+slow.URL+`/x", arguments: {type: object, properties: {a: {type: string}}}, timeout: 10m, allow: [127.0.0.0/8]}
tools:
  crawl: {risk: low}
approvers:
  team-lead: {title: Team Lead, members: [U0002], max_risk: high, can_approve: ["*"], lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: Help., tools: ["*"]}
`))
	m.ok(os.Remove(m.dir + "/countersign.lock"))
	m.env = append(m.env, "COUNTERSIGN_STOP_WAIT=10m")
	m.bot, m.admin = m.serve()
	m.watcher("sam").says("#support", "", "@Countersign call crawl a=1")
	<-begun
	m.ok(m.bot.cmd.Process.Signal(syscall.SIGTERM))
	m.bot.says(`(the process is being stopped; it waits for this tool)`)
	m.exits(cli.ExitDone, "pending")
	m.exits(cli.ExitDone, "pause", "--reason", "stop the tool")
	if t.Failed() {
		return // the tool would run on
	}
	<-gone
	<-m.bot.gone
	m.ok(m.bot.err)
	m.exits(cli.ExitDone, "pending")
}
