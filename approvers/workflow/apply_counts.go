package workflow

import (
	"countersign/approvers"
)

// countEvents counts decisions and ends for the metrics. It ends the tool's streak of unchanged approvals when somebody
// edits or rejects the call, or takes an approval back.
func (t *tx) countEvents(r approvers.Request, events []approvers.Event) error {
	doubted := false
	for _, e := range events {
		switch e := e.(type) {
		case approvers.DecisionMade:
			t.events = append(t.events, Event{Tool: r.Tool, Decision: &e.Decision})
			doubted = doubted || e.Decision.Kind != approvers.Approve
		case approvers.ArgsEdited:
			doubted = true
		case approvers.RequestConsumed:
			t.events = append(t.events, Event{Tool: r.Tool, Ended: r.State})
		case approvers.RequestClosed:
			t.events = append(t.events, Event{Tool: r.Tool, Ended: r.State})
			doubted = doubted || e.State == approvers.Revoked
		}
	}
	if !doubted {
		return nil
	}
	return t.grants.resetStreak(r.Agent, r.Tool)
}
