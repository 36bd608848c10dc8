package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/shop"
	"countersign/store"
)

// changed returns the demo's policy with one text replaced.
func changed(t *testing.T, old, new string) []byte {
	t.Helper()
	if !bytes.Contains(demoPolicy, []byte(old)) {
		t.Fatalf("the demo's policy does not say %q", old)
	}
	return bytes.ReplaceAll(demoPolicy, []byte(old), []byte(new))
}

const (
	refundHigh = "issue_refund:\n    risk: high\n    confirm: true"
	refundTwo  = "issue_refund:\n    risk: high\n    confirm: true\n    stages: [team-lead, finance-director]"
	refundAuto = "issue_refund:\n    risk: low\n    confirm: false"
)

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A stricter policy applies to waiting requests. The card shows the change, and a person who could approve alone no
// longer can. A looser policy does not apply to waiting requests.
func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, demoPolicy)
	hangup := make(chan os.Signal)
	h := openDemoHarness(t, t.TempDir(), func(s *setup) {
		ps, err := openPolicies(path, s.tools, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ps.hangup, s.policies = hangup, ps
	})
	becomes := func(data []byte) {
		write(t, path, data)
		hangup <- syscall.SIGHUP
		hangup <- syscall.SIGHUP // sent again, because this one is received only after the first was handled
	}
	sam, teo, ingrid := h.watcher("sam"), h.watcher("teo"), h.watcher("ingrid")
	first := sam.says("#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	teo.sees("countersign", "", "Refund of $20.00 for order ORD-131", "Waits for Team Lead")

	becomes(changed(t, refundHigh, refundTwo))
	teo.sees("countersign", "", "Refund of $20.00 for order ORD-131", "Waits for Team Lead", "Then Finance Director")
	teo.clicks("countersign", "", "Approve", "Refund of $20.00 for order ORD-131")
	ingrid.sees("countersign", "", "Refund of $20.00 for order ORD-131", "Waits for Finance Director")
	if r := h.request(first); r.State != approvers.Pending || r.Stage != 1 {
		t.Errorf("%s at stage %d after the Team Lead alone", r.State, r.Stage)
	}

	inForce := h.setup.tools.Policy().Hash
	becomes([]byte("version: 1\ntools:\n  issue_refund: {risk: hihg}\n"))
	if now := h.setup.tools.Policy().Hash; now != inForce {
		t.Errorf("after a broken file %s is in force, want %s", now, inForce)
	}
	if why := h.setup.policies.state(t.Context()); why == nil || !strings.Contains(why.Error(), path+":3:24: ") {
		t.Errorf("it is not said where the file is broken: %v", why)
	}

	becomes(changed(t, refundHigh, refundAuto))
	if r := h.request(first); r.State != approvers.Pending || r.Stage != 1 {
		t.Errorf("%s at stage %d after the policy became looser", r.State, r.Stage)
	}
	second := sam.says("#support", "", "@Countersign refund 30 USD of order ORD-129, scratched")
	sam.sees("#support", second, "I refunded $30.00") // under the new policy, nobody is asked about a new refund
	ingrid.clicks("countersign", "", "Approve", "Refund of $20.00 for order ORD-131")
	sam.sees("#support", first, "I refunded $20.00")
	becomes(bytes.ReplaceAll(changed(t, "agents:\n  support:", "agents:\n  sales:"), []byte("agent: support"), []byte("agent: sales")))
	sam.says("#support", first, "refund 10 USD of order ORD-131, the box was damaged") // another agent now answers in the channel
	teo.sees("countersign", "", "Refund of $10.00 for order ORD-131", "Waits for")
}

// A changed file is loaded when its content has stopped changing. An invalid file is reported once.
func TestPolicyFileWatched(t *testing.T) {
	tools, err := catalog.New(shopCatalog(shop.New(time.Now), "http://127.0.0.1:1/"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, demoPolicy)
	var said bytes.Buffer
	ps, err := openPolicies(path, tools, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := ps.tools.Policy().Hash
	step := func(name string, data []byte, changed, shown bool, lines int) {
		t.Helper()
		if data == nil {
			os.Remove(path)
		} else {
			write(t, path, data)
		}
		said.Reset()
		if got, err := ps.look(t.Context(), false); err != nil || got != changed {
			t.Errorf("%s: changed %t, want %t (error %v)", name, got, changed, err)
		}
		if n := strings.Count(said.String(), "\n"); n != lines {
			t.Errorf("%s: %d lines in the log, want %d:\n%s", name, n, lines, said.String())
		}
		if got := ps.state(t.Context()) != nil; got != shown {
			t.Errorf("%s: a refusal is shown: %t, want %t", name, got, shown)
		}
	}
	stricter := changed(t, refundHigh, refundTwo)
	step("nothing happened", demoPolicy, false, false, 0)
	step("half of it is written", stricter[:len(stricter)/2], false, false, 0)
	step("all of it is written", stricter, false, false, 0)
	step("it has stopped changing", stricter, true, false, 1)
	second := ps.tools.Policy().Hash
	if first == second {
		t.Error("the same policy is in force")
	}
	broken := []byte("version: 1\ntool: {}\n")
	step("broken", broken, false, false, 0)
	step("still broken", broken, false, true, 2)
	step("as broken as before", broken, false, true, 0)
	step("gone", nil, false, true, 0)
	step("still gone", nil, false, true, 2)
	step("as gone as before", nil, false, true, 0)
	step("there again", stricter, false, false, 1)
	if ps.tools.Policy().Hash != second {
		t.Error("another policy is in force than the last good one")
	}
	write(t, path, demoPolicy)
	if changed, err := ps.look(t.Context(), true); err != nil || !changed || ps.tools.Policy().Hash != first {
		t.Error("asked to, it did not take the file up immediately")
	}
	write(t, pins.Beside(path), []byte("{"))
	if _, err := openPolicies(path, tools, ps.log); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), pins.FileName) {
		t.Errorf("with a broken lock file: %v (code %d)", err, cli.Code(err))
	}
}

// The real program reloads at SIGHUP, and by itself.
func TestServeReloads(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	bot, admin := p.serve()
	sam, teo := p.watcher("sam"), p.watcher("teo")
	sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	teo.sees("countersign", "", "Refund of $49.99 for order ORD-123", "Waits for Team Lead")

	served, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.policy(), []byte("version: 2\n"))
	bot.says(`level=ERROR msg="(policy: countersign.yaml:1:10: )`)
	if status, body := get(t, admin+"/readyz"); status != http.StatusOK || !strings.Contains(body, "policy: the file was refused at ") || !strings.Contains(body, "countersign.yaml:1:10: ") {
		t.Errorf("/readyz answers %d: %s", status, body)
	}
	write(t, p.policy(), bytes.ReplaceAll(served, []byte(refundHigh), []byte(refundTwo)))
	if err := bot.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	bot.says(`(the policy changed and is in force).* old=[0-9a-f]{64} new=[0-9a-f]{64}`)
	teo.sees("countersign", "", "Refund of $49.99 for order ORD-123", "Then Finance Director")
	if _, body := get(t, admin+"/readyz"); !strings.Contains(body, "policy: ok\n") {
		t.Errorf("/readyz: %s", body)
	}
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Errorf("asked to stop, the bot ended with %v", err)
	}
}

// request returns the request of the first call in a thread of #support.
func (h *demoHarness) request(ts string) (out approvers.Request) {
	h.Helper()
	calls, err := h.calls(ts)
	if err != nil || len(calls) == 0 {
		h.Fatalf("no calls in the thread: %v", err)
	}
	err = h.store.View(h.Context(), func(r store.Reader) (err error) {
		out, err = r.Request(calls[0].Request)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return out
}
