package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
)

// If the model is down or refuses the key, the bot starts only if a request waits. People can then decide the request.
func TestReachWithoutModel(t *testing.T) {
	h := openDemoHarness(t, t.TempDir(), nil)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	wants := map[string]int{"http://127.0.0.1:1/v1": cli.ExitFailed, refuses.URL + "/v1": cli.ExitUsage}
	reaches := func(url string) error {
		away := h.bot.parts
		away.agent = agent.New(agent.Config{
			Turns: h.bot.workflow.Turns, Runs: h.bot.workflow.Runs, Questions: h.bot.workflow.Questions, Results: h.bot.workflow.Views, Tools: h.setup.tools.Registry, Log: h.setup.log, Model: agent.Model{BaseURL: url, Key: "k", Name: "m"},
		})
		return reach(within(t), away, slog.New(slog.DiscardHandler))
	}
	for url, want := range wants {
		if err := reaches(url); cli.Code(err) != want {
			t.Errorf("%s: nothing waits: %v (exit %d), want exit %d", url, err, cli.Code(err), want)
		}
	}
	h.watcher("sam").says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	h.watcher("teo").sees("countersign", "", "Refund of $49.99")
	for url := range wants {
		if err := reaches(url); err != nil {
			t.Errorf("%s: a card waits: %v", url, err)
		}
	}
}

// systemd starts the bot again after exit code 3, but not after exit code 2. So only an address that can never be right
// ends with code 2.
func TestListenExitCodes(t *testing.T) {
	for addr, want := range map[string]int{
		"192.0.2.1:9090": cli.ExitFailed, "no..such..host:9090": cli.ExitFailed, "127.0.0.1:99999": cli.ExitUsage, "127.0.0.1:no-such-port": cli.ExitUsage, "127.0.0.1": cli.ExitUsage,
	} {
		l, err := listen("the admin server", "COUNTERSIGN_ADMIN_ADDR", addr)
		if err == nil {
			l.Close()
		}
		if cli.Code(err) != want {
			t.Errorf("%s: %v (exit %d), want exit %d", addr, err, cli.Code(err), want)
		}
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
