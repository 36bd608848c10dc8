package workflow

import (
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// countAsked counts a request for everybody who caused it. If one of them exceeds the policy's cap, approving it needs
// a typed value, to make approvers look at it.
func (t proposalsTx) countAsked(r approvers.Request) (approvers.Request, error) {
	most := t.policy.Caps.Requester
	if most.Count == 0 || r.State != approvers.Pending {
		return r, nil
	}
	for _, who := range r.Facts.Requesters {
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

// called returns the name under which somebody wrote in the request's conversation.
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
