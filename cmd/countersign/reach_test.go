package main

import (
	"log/slog"
	"testing"

	"countersign/agent"
)

// A model that is away keeps a new set-up from starting, and nobody who waits for a decision from being decided.
func TestReachWithoutModel(t *testing.T) {
	h := openHouse(t, t.TempDir(), nil)
	away := h.bot.parts
	away.agent = agent.New(agent.Config{
		Desk: h.bot.desk, Tools: h.setup.tools.Registry, Log: h.setup.log, Model: agent.Model{BaseURL: "http://127.0.0.1:1/v1", Key: "k", Name: "m"},
	})
	log := slog.New(slog.DiscardHandler)
	if err := reach(within(t), away, log); exitCode(err) != exitFailed {
		t.Errorf("nothing waits: %v (exit %d), want exit %d", err, exitCode(err), exitFailed)
	}
	h.watcher("sam").says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	h.watcher("teo").sees("countersign", "", "Refund of $49.99")
	if err := reach(within(t), away, log); err != nil {
		t.Errorf("a card waits: %v", err)
	}
}
