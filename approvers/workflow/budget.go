package workflow

import (
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// spend adds the tokens of a model call to the tokens that the turn's asker has used, if the policy sets a budget.
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

// asker returns the asker of a turn: the person who wrote the turn's last message.
func (t proposalsTx) asker(turn approvers.Turn) (approvers.PersonID, error) {
	conv, err := t.Conversation(turn.Conversation)
	if err != nil {
		return "", err
	}
	facts, err := t.askFacts(turn, conv, nil, "")
	return facts.Asker, err
}

// overBudget returns a sentence for the turn's asker if the asker's tokens for the day are used up. If tokens are left,
// overBudget returns "".
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
		"You can continue from %s. If it can't wait, ask the operator of this bot.", thousands(budget), ends.Format("Monday 15:04 UTC")), nil
}

// spendCall counts a tool call against the asker's budget. If the asker's calls for the day are used up, problem is a
// sentence for the model.
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
		return fmt.Sprintf("the person who asked has used up the %s tool calls that one person has for a day; they can continue from %s. "+
			"Tell them so in a friendly way, and call nothing more for them today", thousands(budget), ends.Format("Monday 15:04 UTC")), nil
	}
	return "", t.AddCounter(store.Counter{Key: counterCalls(asker), At: t.now, ID: call.ID, N: 1})
}

// thousands formats a number with commas, such as 1,000,000.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// countAsked counts a request for each person who caused the request. If a person exceeds the policy's cap, the
// approval of this request needs a typed value. The typed value makes approvers look at the request.
func (t proposalsTx) countAsked(r approvers.Request) (approvers.Request, error) {
	most := t.policy.Caps.Requester
	if most.Count == 0 || r.State != approvers.Pending {
		return r, nil
	}
	for _, who := range countedPeople(r.Facts) {
		if err := t.AddCounter(store.Counter{Key: counterAsked(who), At: t.now, ID: r.ID, N: 1}); err != nil {
			return r, err
		}
		n, err := t.CounterSum(counterAsked(who), t.now.Add(-most.Per))
		if err != nil {
			return r, err
		}
		if n <= most.Count || r.StepUp != "" {
			continue
		}
		name, err := t.called(r, who)
		if err != nil {
			return r, err
		}
		r.StepUp = fmt.Sprintf("%s has caused %d requests %s; the policy's cap is %d", name, n, most.Within(), most.Count)
	}
	return r, nil
}

// countedPeople returns the people whose counters a request increases. A caller's request does not increase the counter
// of the caller's owner.
func countedPeople(f approvers.AskFacts) []approvers.PersonID {
	if f.Caller != nil {
		return []approvers.PersonID{f.Asker}
	}
	return f.Requesters
}

// t.called returns the name that a person had when the person wrote in the request's conversation. If the name is not
// known, called returns a general phrase.
func (t proposalsTx) called(r approvers.Request, who approvers.PersonID) (string, error) {
	if who == r.Facts.Asker && r.Facts.AskerName != "" {
		return r.Facts.AskerName, nil
	}
	messages, err := t.Messages(r.Conversation, 0)
	if err != nil {
		return "", err
	}
	for _, m := range messages {
		if m.Author == who && m.AuthorName != "" {
			return m.AuthorName, nil
		}
	}
	return "One of those who asked", nil
}

// The functions below return the keys of counters. See store.Counter.

// counterAuto returns the key of the counter of a tool's automatic runs. The parameter conversation is the result of autoScope.
func counterAuto(tool, conversation string) string { return "auto/" + tool + "/" + conversation }

// counterAsked returns the key of the counter of the requests that a person caused.
func counterAsked(who approvers.PersonID) string { return "asked/" + string(who) }

// counterTokens returns the key of the counter of the model's tokens that a person used.
func counterTokens(who approvers.PersonID) string { return "tokens/" + string(who) }

// counterCalls returns the key of the counter of the tool calls that a person caused.
func counterCalls(who approvers.PersonID) string { return "calls/" + string(who) }

// counterRetention is how long counters are kept. counterRetention is longer than every period over which a policy can
// count.
const counterRetention = 48 * time.Hour
