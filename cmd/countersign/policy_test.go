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

	"countersign/approvers"
	"countersign/cmd/countersign/policyfile"
	"countersign/store"
)

// The function "changed" returns the demo's policy with one text replaced.
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

// A stricter policy applies to waiting requests. The card shows the change, and one person alone can't approve the
// call. A looser policy does not apply to waiting requests.
func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, demoPolicy)
	hangup := make(chan os.Signal)
	h := openDemoHarness(t, t.TempDir(), func(s *setup) {
		ps, err := policyfile.Open(path, s.tools, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ps.Hangup, s.policies = hangup, ps
	})
	becomes := func(data []byte) {
		write(t, path, data)
		hangup <- syscall.SIGHUP
		hangup <- syscall.SIGHUP // the second signal is received only after the first one was handled
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
	if why := h.setup.policies.State(t.Context()); why == nil || !strings.Contains(why.Error(), path+":3:24: ") {
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

// serve reloads a changed policy file when it gets a SIGHUP. Without a signal, serve notices the change by itself.
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
	if status, body := get(t, admin+"/readyz?wait=5"); status != http.StatusOK || !strings.Contains(body, "policy: the file was refused at ") || !strings.Contains(body, "countersign.yaml:1:10: ") {
		t.Errorf("/readyz answers %d: %s", status, body)
	}
	write(t, p.policy(), bytes.ReplaceAll(served, []byte(refundHigh), []byte(refundTwo)))
	if err := bot.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	bot.says(`(the policy changed and is in force).* old=[0-9a-f]{64} new=[0-9a-f]{64}`)
	teo.sees("countersign", "", "Refund of $49.99 for order ORD-123", "Then Finance Director")
	if _, body := get(t, admin+"/readyz?wait=5"); !strings.Contains(body, "policy: ok\n") {
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
