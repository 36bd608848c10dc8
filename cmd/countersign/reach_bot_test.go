package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
)

// If the model is down, the bot starts only if a request waits. People can then decide the request.
func TestReachWithoutModel(t *testing.T) {
	h := openDemoHarness(t, t.TempDir(), nil)
	away := h.bot.parts
	away.agent = agent.New(agent.Config{
		Turns: h.bot.workflow.Turns, Runs: h.bot.workflow.Runs, Questions: h.bot.workflow.Questions, Results: h.bot.workflow.Views, Tools: h.setup.tools.Registry, Log: h.setup.log, Model: agent.Model{BaseURL: "http://127.0.0.1:1/v1", Key: "k", Name: "m"},
	})
	log := slog.New(slog.DiscardHandler)
	if err := reach(within(t), away, log); cli.Code(err) != cli.ExitFailed {
		t.Errorf("nothing waits: %v (exit %d), want exit %d", err, cli.Code(err), cli.ExitFailed)
	}
	h.watcher("sam").says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	h.watcher("teo").sees("countersign", "", "Refund of $49.99")
	if err := reach(within(t), away, log); err != nil {
		t.Errorf("a card waits: %v", err)
	}
}

// A command on a missing store says that the store is missing. If the store's signed heads exist, the command also says
// that the store existed earlier.
func TestMissingStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countersign.db")
	t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
	for _, args := range [][]string{{"pending"}, {"audit", "list"}, {"store", "compact"}} {
		if _, err := runCommand(t, args...); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "there is no store at "+path+"; set COUNTERSIGN_STORE") {
			t.Errorf("%v: %v", args, err)
		}
	}
	head := approvers.Head{Origin: "countersign-x", Number: 3, Size: 9, At: time.Unix(1, 0)}
	note, err := head.Sign(newKey(t, head.Origin))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".heads", []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"pending"}, {"audit", "list"}, {"store", "compact"}} {
		if _, err := runCommand(t, args...); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), path+".heads end with head 3: the store's file was removed or renamed") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
