package desk

import "countersign/approvers"

// Event is something that became true, for whoever counts such things. Exactly one of Decision, Ended and Ran is set.
type Event struct {
	Tool     string
	Decision *approvers.Decision      // somebody decided
	Ended    approvers.State          // a request came to an end
	Ran      approvers.ExecutionState // a run came to an end: succeeded, failed, or unknown
}

// countMove notes what a request's move made true. A decision is there once, however often the request changes after it.
func (t *tx) countMove(before, r approvers.Request) {
	for _, d := range r.Decisions[len(before.Decisions):] {
		t.events = append(t.events, Event{Tool: r.Tool, Decision: &d})
	}
	if before.State != r.State && !r.State.Open() {
		t.events = append(t.events, Event{Tool: r.Tool, Ended: r.State})
	}
}

// countRun notes that a run came to an end.
func (t *tx) countRun(e approvers.Execution) {
	t.events = append(t.events, Event{Tool: e.Tool, Ran: e.State})
}

// tell hands a transaction's events on, when they are true.
func (d *Desk) tell(events []Event) {
	if d.Count == nil {
		return
	}
	for _, e := range events {
		d.Count(e)
	}
}
