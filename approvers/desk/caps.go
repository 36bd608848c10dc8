package desk

import (
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// countAsked counts a request for everybody who caused it. Where that is more than the policy's cap for one person, approving it asks for
// a typed value: whoever decides many in a row looks at this one.
func (t *tx) countAsked(r approvers.Request) (approvers.Request, error) {
	most := t.policy.Caps.Requester
	if most.Count == 0 || r.State != approvers.Pending {
		return r, nil
	}
	for _, who := range r.Facts.Requesters {
		if err := t.AddTally(store.Tally{Key: tallyAsked(who), At: t.now, ID: r.ID, N: 1}); err != nil {
			return r, err
		}
		n, err := t.CountTally(tallyAsked(who), t.now.Add(-most.Per))
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

// called is the name under which somebody spoke in the conversation that a request comes from.
func (t *tx) called(r approvers.Request, who approvers.PersonID) (string, error) {
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
