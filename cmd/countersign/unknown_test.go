package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/approvers"
)

// A run whose end nobody knows is put to those who approved it and to whoever asked; what a person reports reaches the
// model as such.
func TestUnknownIsAskedOfApprovers(t *testing.T) {
	h := openHouse(t, t.TempDir(), func(s *setup) {
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
