package render

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/store"
)

func TestAnswers(t *testing.T) {
	base := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	base.Message.Kind, base.Message.Ref = store.OutboxAnswer, "turn_1"
	for name, text := range map[string]string{
		"answer_markdown": "# Refunds\nThe refund of **$49.99** for `ORD-123` was *rejected* by Team Lead.\n\n" +
			"1. Ask again\n2. Offer a ~~voucher~~ replacement\n   - red\n   - blue\n3. Wait\n\n> quoted\n> words\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSee [the policy](https://example.com/p) or https://example.com/q.\n---\nBye",
		"answer_hostile": "<!channel> <@U0003> [click](javascript:alert(1)) [bank](https://evil.example/) @here \u202etxt.exe &lt;!here&gt; ![x](https://evil.example/pixel.png)",
		"answer_empty":   "  \n",
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			s.Text = text
			bottest.Golden(t, name, drawn(t, s).Messages[0])
		})
	}
}

// An answer begins with the steps that had no message of their own: the calls, who allowed them, and their outcomes.
func TestAnswerWithSteps(t *testing.T) {
	approved := bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0)
	approved.State, approved.ClosedBy, approved.ClosedName, approved.ClosedRole, approved.ClosedAt = approvers.Consumed, approvers.Who("T0001", "U0002"), "Teo", "team-lead", bottest.Noon
	s := bottest.ViewModel(approved)
	s.Message.Kind, s.Message.Ref, s.Message.Step, s.Message.Steps = store.OutboxAnswer, "turn_1", 3, []int{1, 2}
	call := func(id string, outcome approvers.Outcome, result string) store.Call {
		return store.Call{ID: id, Tool: "issue_refund", Preview: approved.Preview, Args: bottest.RefundArgs, Outcome: outcome, Result: result}
	}
	s.Text = "I have *refunded* it."
	s.Steps = []view.Step{
		{Step: 1, Calls: []view.Call{{Call: call("c1", approvers.OutcomeError, `{"status":"error","reason":"no such order"}`), Execution: &approvers.Execution{State: approvers.ExecutionFailed}}}},
		{Step: 2, Text: "Let me try it once more.", Calls: []view.Call{{Call: call("c2", approvers.OutcomeExecuted, "{}"), Request: &approved, Execution: &approvers.Execution{State: approvers.ExecutionSucceeded}}}},
	}
	bottest.Golden(t, "answer_steps", drawn(t, s).Messages[0])
}
