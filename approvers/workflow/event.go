package workflow

import (
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Event is something that happened, for metrics. Exactly one of Decision, Ended, Ran and Answer is set.
type Event struct {
	Tool     string
	Decision *approvers.Decision      // somebody decided
	Ended    approvers.State          // a request ended
	Ran      approvers.ExecutionState // a run ended: succeeded, failed, or unknown
	Answer   *AnswerShown             // Slack shows an answer, or the sentence with which a turn stopped
}

// AnswerShown is how long the requesters waited for an answer.
type AnswerShown struct {
	SinceEnd time.Duration // since the turn ended: the time that Slack took
	SinceRun time.Duration // since the turn's last run was recorded; zero: it had no runs
}

// countAnswer counts an answer that Slack shows for the first time.
func (t outboxTx) countAnswer(s store.OutboxMessage) error {
	if s.Kind != store.OutboxAnswer && s.Kind != store.OutboxProblem || s.Posts > 0 {
		return nil
	}
	turn, err := t.Turn(s.Ref)
	if err != nil || turn.EndedAt.IsZero() { // the turn was tried again meanwhile
		return err
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return err
	}
	shown := AnswerShown{SinceEnd: t.now.Sub(turn.EndedAt)}
	var ran time.Time
	for _, c := range calls {
		if c.Execution == "" {
			continue
		}
		e, err := t.Execution(c.Execution)
		if err != nil {
			return err
		}
		if e.FinishedAt.After(ran) {
			ran, shown.SinceRun = e.FinishedAt, t.now.Sub(e.FinishedAt)
		}
	}
	t.events = append(t.events, Event{Answer: &shown})
	return nil
}

// countRun counts a run that ended.
func (t runsTx) countRun(e approvers.Execution) {
	t.events = append(t.events, Event{Tool: e.Tool, Ran: e.State})
}

// tell passes the events of a committed transaction to the counters.
func (w *core) tell(events []Event) {
	if w.Count == nil {
		return
	}
	for _, e := range events {
		w.Count(e)
	}
}
