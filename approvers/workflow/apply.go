package workflow

import (
	"context"
	"log/slog"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// apply writes the request that a transition returned, and the consequences of the transition's events. Every
// transition of a request goes through apply. Each consequence is a function that turns events into rows. Most of these
// functions are in the files apply_*.go. The order of the functions determines the order in the audit chain: the
// decision, the request's new stage or state, the result for the model.
func (t *tx) apply(r approvers.Request, events []approvers.Event) error {
	events = r.NetEvents(events)
	r, events = leaveBundle(r, events)
	r, dequeued, err := t.cards.leaveCardQueues(r, approvers.HasEvent[approvers.RequestUnbundled](events))
	if err != nil {
		return err
	}
	if err := t.PutRequest(r); err != nil {
		return err
	}
	for _, consequence := range []func(approvers.Request, []approvers.Event) error{
		t.turns.updateCall,        // the call's execution and preview
		t.timers.updateTimers,     // deadlines, reminders, the run
		t.records.auditEvents,     // the request's chain
		t.countEvents,             // metrics, the log, and the streak of unchanged approvals
		t.notices.refreshMessages, // everything that shows the request
		t.notices.notifyPeople,    // messages to the people whom an event concerns
		t.callers.follow,          // the caller, if another agent asked
		t.operators.follow,        // the operators, if the cards reach nobody
	} {
		if err := consequence(r, events); err != nil {
			return err
		}
	}
	if err := t.notices.showCards(r, events, dequeued); err != nil {
		return err
	}
	return t.turns.updateTurn(r, events)
}

// countEvents reports decisions and changes of the request's state to the metrics, and logs decisions and closed
// requests. When a person edits or rejects the call, or takes an approval back, countEvents also ends the tool's streak
// of unchanged approvals.
func (t *tx) countEvents(r approvers.Request, events []approvers.Event) error {
	doubted := false
	for _, e := range events {
		switch e := e.(type) {
		case approvers.RequestOpened:
			t.happened(Event{Turn: r.Turn, Tool: r.Tool, Request: &r, Asked: true})
		case approvers.DecisionMade:
			t.happened(Event{Turn: r.Turn, Tool: r.Tool, Request: &r, Decision: &e.Decision})
			t.noteRequest("a request was decided", r, "decision", string(e.Decision.Kind), "role", e.Decision.Role, "after", e.Decision.Took.Round(time.Millisecond))
			doubted = doubted || e.Decision.Kind != approvers.Approve
		case approvers.ArgsEdited:
			doubted = true
		case approvers.RequestApproved:
			t.happened(Event{Turn: r.Turn, Tool: r.Tool, Request: &r, Approved: true})
		case approvers.RequestConsumed:
			t.happened(Event{Turn: r.Turn, Tool: r.Tool, Request: &r, Ended: r.State})
		case approvers.RequestClosed:
			t.happened(Event{Turn: r.Turn, Tool: r.Tool, Request: &r, Ended: r.State})
			t.noteRequest("a request ended", r, "state", string(r.State))
			doubted = doubted || e.State == approvers.Revoked
		}
	}
	if !doubted {
		return nil
	}
	return t.grants.resetStreak(r.Agent, r.Tool, time.Time{})
}

// Event is something that happened, for metrics and traces. Exactly one of the fields below Request is set.
type Event struct {
	At      time.Time // the time of the transaction
	Turn    string    // the id of the turn to which the event belongs
	Tool    string
	Request *approvers.Request // the request after the event, if the event is about a request

	Began    *TurnBegan               // a turn began
	Asked    bool                     // a request was opened
	Decision *approvers.Decision      // a person decided
	Approved bool                     // a request was approved
	Ended    approvers.State          // a request ended, or its run started
	Ran      approvers.ExecutionState // a run ended: succeeded, failed, or unknown
	Over     *approvers.Turn          // a turn ended
	Answer   *AnswerShown             // Slack shows an answer, or the sentence with which a turn stopped
}

// TurnBegan is the beginning of a turn.
type TurnBegan struct {
	Since  time.Time // when the turn's first message was stored
	Caller bool      // the turn is the request of another agent
}

// t.happened adds an event to the transaction. The event is reported after the commit.
func (t *tx) happened(e Event) {
	e.At = t.now
	t.events = append(t.events, e)
}

// AnswerShown tells how long the requesters waited for an answer.
type AnswerShown struct {
	SinceEnd time.Duration // from the end of the turn to the time when Slack showed the answer
	SinceRun time.Duration // from the end of the turn's last run to the same time; zero: the turn had no runs
}

// countAnswer counts an answer when Slack first shows it.
func (t outboxTx) countAnswer(s store.OutboxMessage) error {
	if s.Kind != store.OutboxAnswer && s.Kind != store.OutboxProblem || s.Posts > 0 {
		return nil
	}
	turn, err := t.Turn(s.Ref)
	if err != nil || turn.EndedAt.IsZero() { // the turn was resumed meanwhile
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
		if store.IgnoreNotFound(err) != nil { // without its record, a run is not counted
			return err
		}
		if e.FinishedAt.After(ran) {
			ran, shown.SinceRun = e.FinishedAt, t.now.Sub(e.FinishedAt)
		}
	}
	t.happened(Event{Turn: turn.ID, Answer: &shown})
	return nil
}

// noteRequest logs what happened to a request. The log line has the request's ids, but no text that people wrote.
func (t *tx) noteRequest(what string, r approvers.Request, more ...any) {
	t.note(slog.LevelInfo, what, append([]any{"request", r.ID, "conversation", r.Conversation, "tool", r.Tool}, more...)...)
}

// countRun counts a run that ended.
func (t runsTx) countRun(e approvers.Execution) {
	t.happened(Event{Turn: e.Turn, Tool: e.Tool, Ran: e.State})
}

// tell passes the events of a committed transaction to Config.Count.
func (w *core) tell(ctx context.Context, events []Event) {
	if w.Count == nil {
		return
	}
	for _, e := range events {
		w.Count(ctx, e)
	}
}
