package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
)

// After an unknown outcome, the bot asks the approvers and the requester. The model gets their report, with the note
// that it is a report.
func TestUnknownIsAskedOfApprovers(t *testing.T) {
	t.Parallel()
	h := openDemoHarness(t, t.TempDir(), func(s *setup) {
		err := s.tools.Register(agent.Tool{
			Name: "fragile", Description: "Breaks off.", Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.Unprotected,
			Run: func(context.Context, agent.Invocation) (string, error) {
				return "", fmt.Errorf("no answer came: %w", agent.ErrOutcomeUnknown)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	sam, kenji, ingrid := h.watcher("sam"), h.watcher("kenji"), h.watcher("ingrid")
	root := sam.says("#support", "", "@Countersign call fragile {}")
	kenji.clicks("countersign", "", "Approve", "fragile")
	kenji.fills("typed", "fragile")
	ingrid.sees("countersign", "", "Did this happen?")
	sam.sees("#support", root, "Did this happen?")
	kenji.clicks("countersign", "", "It did not", "Did this happen?")
	var result string
	sam.wait("the model to be told", func(context.Context) (bool, error) {
		calls, err := h.calls(root)
		if err != nil || len(calls) == 0 {
			return false, err
		}
		result = calls[0].Result
		return result != "", nil
	})
	if !strings.Contains(result, "a person reported") || !strings.Contains(result, `"status":"error"`) {
		t.Errorf("the model was told %s", result)
	}
}

// A bot in its own process is killed during a run of a tool that must not run twice. The kill comes before or after the
// tool acts. The next process does not run the tool by itself. The process asks the requesters and the approvers, and
// acts on each answer. A repeated call needs another approval, and runs once more.
func TestKilledInTheMiddleOfATool(t *testing.T) {
	t.Parallel()
	const told = "The bot stopped while act was running"
	for n, c := range []struct {
		name   string
		order  string // act runs without approval, ask waits for the team lead
		point  string
		who    string // the person who answers
		button string
		runs   int // number of runs at the end
		seen   []string
	}{
		{"asked by the requester whether it happened", "act", toolActed, "sam", "It happened…", 1, []string{"Reported by <@U0100>: it happened"}},
		{"asked by the approver whether it happened", "ask", toolCalled, "teo", "It did not", 0, []string{"Reported by <@U0002>: it did not happen"}},
		{"left by the requester", "ask", toolActed, "sam", "Leave it", 1, []string{"The agent was told so"}},
		{"asked again by the approver", "ask", toolCalled, "teo", "Ask again", 1, []string{"Asked again by <@U0002>", "Done."}},
		{"asked again by the requester, of what ran by itself", "act", toolActed, "sam", "Ask again", 2, []string{"Asked again by <@U0100>", "Done."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := openKillHarness(t, 1)
			if n%2 == 1 {
				k.offerWitnesses()
			}
			person := func(name string) watcher { return watcher{t, workspaceclient.Client{Base: k.conf.Base, User: name}} }
			sam, ingrid := person("sam"), person("ingrid")
			bot := k.start(t.Context(), killPoint{c.point, 1})
			k.awaitUp(bot)
			root := sam.says("#support", "", "@Countersign do "+c.order+" #1001")
			if c.order == "ask" {
				card := ingrid.sees("#support-approvals", "", "Waits for Team Lead")
				approve, _ := workspaceclient.Button(card.Blocks, "Approve")
				_ = ingrid.Press(t.Context(), card, approve) // the bot may be dead before it has acknowledged the click
			}
			select {
			case <-bot.gone:
			case <-time.After(patience):
				t.Error("the bot was not killed")
			}
			k.killed(bot)
			bot = k.start(t.Context(), killPoint{})
			k.awaitUp(bot)
			sam.sees("#support", root, "Did this happen?", told, "It may have acted")
			where, thread := "#support", root
			if c.who == "teo" {
				where, thread = "#support-approvals", ""
			}
			person(c.who).clicks(where, thread, c.button, "Did this happen?", told)
			if c.button == "It happened…" {
				person(c.who).fills("result", "line 1 of the file")
			}
			if c.button == "Ask again" {
				ingrid.clicks("#support-approvals", "", "Approve", "This may have happened already.", "Asked again by")
			}
			sam.sees("#support", root, c.seen...)
			sam.sees("#support", root, finished("1001"))
			if err := bot.end(syscall.SIGTERM); err != nil {
				t.Errorf("asked to stop, the bot ended with %v\n%s", err, k.tail())
			}
			seen, err := os.ReadFile(k.conf.Seen)
			if runs := strings.Count(string(seen), toolAct+" "); err != nil || runs != c.runs {
				t.Errorf("it ran %d times, want %d (%v)", runs, c.runs, err)
			}
		})
	}
}
