package main

import (
	"log/slog"
	"testing"

	"countersign/agent/catalog"
	"countersign/cmd/countersign/policyfile"
	"countersign/store"
)

// TestEveryTimerHasAWorker checks that the workflow, the bot and the agent together have exactly one worker for each
// kind of timer.
func TestEveryTimerHasAWorker(t *testing.T) {
	c, err := catalog.New(catalog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := setup{store: emptyStore(t), tools: c, policies: &policyfile.Source{Tools: c}, log: slog.New(slog.DiscardHandler)}.assemble()
	inner, edges := p.workflow.Workers(), p.workers()
	for _, kind := range store.TimerKinds {
		_, own := inner[kind]
		if _, edge := edges[kind]; own == edge {
			t.Errorf("timers %q: a worker of the workflow: %t; one of the bot or the agent: %t", kind, own, edge)
		}
	}
	if n := len(inner) + len(edges); n != len(store.TimerKinds) {
		t.Errorf("%d workers for %d kinds of timer", n, len(store.TimerKinds))
	}
}
