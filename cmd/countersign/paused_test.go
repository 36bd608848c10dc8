package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"countersign/agent"
	"countersign/approvers"
)

// A pause survives the kill of the bot's process. No call runs, the card says why, and /readyz and the metric report
// the pause. An approved call runs when somebody ends the pause.
func TestPauseSurvivesAKill(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	text, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.policy(), append(text, "\npaused_by: [team-lead]\n"...))
	bot, _ := p.serve()
	sam, teo := p.watcher("sam"), p.watcher("teo")
	root := sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	sam.sees("#support", root, "Waits for Team Lead")
	if _, err := teo.Command(t.Context(), "countersign", "/countersign", "pause wrong refunds"); err != nil {
		t.Fatal(err)
	}
	teo.clicks("countersign", "", "Pause everything", "Pause everything?")
	teo.sees("countersign", "", "Refund of $49.99 for order ORD-123", "Everything has been paused by")
	teo.clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123", "Everything has been paused by")
	sam.sees("#support", root, "It starts when the pause ends")
	bot.end(syscall.SIGKILL)

	bot, admin := p.serve()
	if status, body := get(t, admin+"/readyz?wait=5"); status != 200 || !strings.Contains(body, "running: everything has been paused by T0001/U0002 since ") || !strings.Contains(body, ": wrong refunds\n") {
		t.Errorf("/readyz answers %d: %s", status, body)
	}
	if _, body := get(t, admin+"/metrics"); !strings.Contains(body, "\ncountersign_paused 1\n") {
		t.Error("the metric does not say that everything is paused")
	}
	// The bot answers a message in a new thread by reporting the pause. When this answer appears, the bot has also had
	// enough time to start a run.
	second := sam.says("#support", "", "@Countersign where is order ORD-124?")
	sam.sees("#support", second, "Everything has been paused by", "wrong refunds")
	sam.sees("#support", root, "It starts when the pause ends")
	teo.clicks("countersign", "", "Resume", "Everything has been paused by")
	sam.sees("#support", root, "I refunded $49.99")
	sam.sees("#support", second, "ORD-124")
	if _, body := get(t, admin+"/metrics"); !strings.Contains(body, "\ncountersign_paused 0\n") {
		t.Error("the metric still says that everything is paused")
	}
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Errorf("asked to stop, the bot ended with %v", err)
	}
}

// A tool that runs when a pause begins is cancelled immediately. If the tool can't tell whether it acted, the bot asks
// people, even during the pause.
func TestPauseInterruptsATool(t *testing.T) {
	running := make(chan struct{})
	h := openDemoHarness(t, t.TempDir(), func(s *setup) {
		err := s.tools.Register(agent.Tool{
			Name: "fragile", Description: "Takes long.", Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.Unprotected,
			Run: func(ctx context.Context, _ agent.Invocation) (string, error) {
				close(running)
				<-ctx.Done()
				return "", ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	sam, kenji := h.watcher("sam"), h.watcher("kenji")
	root := sam.says("#support", "", "@Countersign call fragile {}")
	kenji.clicks("countersign", "", "Approve", "fragile")
	kenji.fills("typed", "fragile")
	<-running
	if _, err := kenji.Command(t.Context(), "countersign", "/countersign", "pause an incident"); err != nil {
		t.Fatal(err)
	}
	kenji.clicks("countersign", "", "Pause everything", "1 tool run is interrupted")
	sam.sees("#support", root, "Did this happen?")
	kenji.sees("countersign", "", "Did this happen?")
}
