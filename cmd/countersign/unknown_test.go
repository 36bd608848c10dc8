package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/approvers"
	"countersign/internal/visitor"
)

// sees waits until a person sees a message of the bot with a text in a channel, and returns the message.
func (h *house) sees(user, channel, thread, text string) visitor.Message {
	h.Helper()
	v := visitor.Visitor{Base: h.base, User: user}
	var found visitor.Message
	err := v.Await(within(h.T), fmt.Sprintf("%s to see %q in %s", user, text, channel), func() (bool, error) {
		messages, err := v.Messages(h.Context(), channel, thread)
		for _, m := range messages {
			if m.User == "U0BOT" && strings.Contains(m.Text, text) {
				found = m
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// A run whose end nobody knows is put to those who approved it and to whoever asked; what a person reports reaches the model as such.
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
	sam, kenji := visitor.Visitor{Base: h.base, User: "sam"}, visitor.Visitor{Base: h.base, User: "kenji"}
	ts, err := sam.Say(within(t), "#support", "", "@Countersign call fragile {}")
	if err != nil {
		t.Fatal(err)
	}
	card := h.sees("kenji", "U0BOT", "", "fragile")
	approve, ok := visitor.Button(card.Blocks, "Approve")
	if !ok {
		t.Fatalf("no Approve on the card: %s", card.Blocks)
	}
	if err := kenji.Press(within(t), card, approve); err != nil {
		t.Fatal(err)
	}
	h.fills("kenji", "typed", "fragile")
	h.sees("ingrid", "U0BOT", "", "Did this happen?")
	h.sees("sam", "#support", ts, "Did this happen?")
	question := h.sees("kenji", "U0BOT", "", "Did this happen?")
	button, ok := visitor.Button(question.Blocks, "It did not")
	if !ok {
		t.Fatalf("no button on the question: %s", question.Blocks)
	}
	if err := kenji.Press(within(t), question, button); err != nil {
		t.Fatal(err)
	}
	var result string
	err = sam.Await(within(t), "the model to be told", func() (bool, error) {
		calls, err := h.calls(ts)
		if err != nil || len(calls) == 0 {
			return false, err
		}
		result = calls[0].Result
		return result != "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(result, "a person reported") || !strings.Contains(result, `"status":"error"`) {
		t.Errorf("the model was told %s", result)
	}
}
