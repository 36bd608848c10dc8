package workflow

import (
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// spend counts the tokens of a model call against the asker's budget, if there is one.
func (t proposalsTx) spend(turn approvers.Turn, tokens int) error {
	if tokens <= 0 || t.policy.BudgetFor(turn.Agent).Tokens == 0 {
		return nil
	}
	asker, err := t.asker(turn)
	if err != nil || asker == "" {
		return err
	}
	return t.AddCounter(store.Counter{Key: counterTokens(asker), At: t.now, ID: fmt.Sprintf("%s/%d", turn.ID, turn.Step), N: tokens})
}

// asker returns the person who wrote last in a turn.
func (t proposalsTx) asker(turn approvers.Turn) (approvers.PersonID, error) {
	conv, err := t.Conversation(turn.Conversation)
	if err != nil {
		return "", err
	}
	facts, err := t.askFacts(turn, conv, nil)
	return facts.Asker, err
}

// overBudget returns the sentence for people when the day's tokens are used up, or "".
func (t proposalsTx) overBudget(turn approvers.Turn, agent approvers.Agent) (string, error) {
	budget := t.policy.BudgetFor(agent.Name).Tokens
	if budget == 0 {
		return "", nil
	}
	asker, err := t.asker(turn)
	if err != nil {
		return "", err
	}
	began, ends := approvers.Day(t.now)
	spent, err := t.CounterSum(counterTokens(asker), began.Add(-time.Microsecond))
	if err != nil || spent < budget {
		return "", err
	}
	return fmt.Sprintf("That was all for today: you have used up the %s tokens of the model that one person has for a day. "+
		"You can go on from %s. If it can't wait, ask whoever runs me.", thousands(budget), ends.Format("Monday 15:04 UTC")), nil
}

// spendCall counts a tool call against the asker's budget. If the day's calls are used up, problem is a sentence for
// the model.
func (t proposalsTx) spendCall(turn approvers.Turn, call store.Call, asker approvers.PersonID) (problem string, err error) {
	budget := t.policy.BudgetFor(turn.Agent).Calls
	if asker == "" || budget == 0 {
		return "", nil
	}
	began, ends := approvers.Day(t.now)
	made, err := t.CounterSum(counterCalls(asker), began.Add(-time.Microsecond))
	if err != nil {
		return "", err
	}
	if made >= budget {
		return fmt.Sprintf("the person who asked has used up the %s tool calls that one person has for a day; they can go on from %s. "+
			"Tell them so in a friendly way, and call nothing more for them today", thousands(budget), ends.Format("Monday 15:04 UTC")), nil
	}
	return "", t.AddCounter(store.Counter{Key: counterCalls(asker), At: t.now, ID: call.ID, N: 1})
}

// thousands formats a number for people.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
