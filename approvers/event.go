package approvers

import (
	"slices"
	"time"
)

// Event is one change that a transition made to a request. A transition returns the new request and its events, in the
// order in which they happened. Timers, audit records and messages follow only from the events. A transition without
// events changes at most the request's display.
//
// The kinds are listed here. A new kind needs its consequences in approvers/workflow.
type Event interface{ requestEvent() }

type (
	// RequestOpened is the first event of every request.
	RequestOpened struct{}

	// DecisionMade is one person's decision.
	DecisionMade struct{ Decision Decision }

	// ArgsEdited replaces the arguments: the execution, its digest and the plan are new.
	ArgsEdited struct{ Edit Edit }

	// DecisionsFell lists the people whose decisions no longer count, because the arguments or the policy changed.
	DecisionsFell struct{ Of []PersonID }

	// PlanChanged means that a new policy asks for other stages or another risk.
	PlanChanged struct{}

	// LeadsLeft means that, by a new policy, roles added by escalation are no longer leads of the stage.
	LeadsLeft struct{}

	// StageStarted begins the clocks of a stage.
	StageStarted struct {
		Why   StageReason
		From  int   // the stage before, as an index into the plan of that time
		After Stage // the stage before; the zero stage for a new request
		Stage int   // the current stage
	}

	// RequestUnbundled gives a request of a bundle a card of its own.
	RequestUnbundled struct{}

	// RequestApproved is the end of the last stage. The call may run.
	RequestApproved struct{}

	// RequestReopened makes an approved request pending again: the policy became stricter before the call ran.
	RequestReopened struct{}

	// RequestConsumed is the start of the approved run.
	RequestConsumed struct{}

	// RequestClosed ends a request without a run. State is rejected, expired, withdrawn, revoked, voided or refused.
	RequestClosed struct{ State State }

	// Escalated adds a lead to the stage, or notifies everybody again because no lead is left.
	Escalated struct {
		Lead  Role // the zero role when Again is set
		Again bool
	}

	// EscalationEnded means that nobody is left to notify.
	EscalationEnded struct{}

	// ReminderDue lists the people to remind now. The list is empty if all of them are away or in do-not-disturb.
	ReminderDue struct{ People []Identity }

	// PersonInvited adds one person to the stage: a colleague to whom the stage was handed on, or a stand-in for
	// somebody who is away.
	PersonInvited struct{ Invite Invite }

	// AvailabilityResolved is the result of checking who can be reached. If nobody works now, RecheckAt is the time of
	// the next check; otherwise it is zero.
	AvailabilityResolved struct{ RecheckAt time.Time }

	// LeadCalled makes the escalation due now, because nobody of the stage can be reached.
	LeadCalled struct{}

	// RemarkMade is a question, an answer or a comment. Index is its place in Request.Remarks.
	RemarkMade struct{ Index int }

	// SourceEdited means that the message that led to the request was edited or deleted.
	SourceEdited struct{}

	// AnswerEdited means that the message with an answer was edited or deleted afterwards. Index is its place in
	// Request.Remarks.
	AnswerEdited struct{ Index int }

	// ValuesRevealed means that a person was shown the masked values.
	ValuesRevealed struct{ By PersonID }

	// PreviewMade ends a tool preview, with a text or with a fault. Headline is set if the tool preview changed
	// Request.Preview.
	PreviewMade struct{ Headline bool }
)

// StageReason is the reason why a stage starts.
type StageReason string

// The reasons.
const (
	StageOpened   StageReason = "opened"   // the request is new
	StagePassed   StageReason = "passed"   // the stage before it has its quorum
	StageEdited   StageReason = "edited"   // the arguments are new, so the stages start again
	StageReplaced StageReason = "replaced" // the policy's requirements changed, so the stages start again
	StageReopened StageReason = "reopened" // the same, after the request had been approved
)

func (RequestOpened) requestEvent()        {}
func (DecisionMade) requestEvent()         {}
func (ArgsEdited) requestEvent()           {}
func (DecisionsFell) requestEvent()        {}
func (PlanChanged) requestEvent()          {}
func (LeadsLeft) requestEvent()            {}
func (StageStarted) requestEvent()         {}
func (RequestUnbundled) requestEvent()     {}
func (RequestApproved) requestEvent()      {}
func (RequestReopened) requestEvent()      {}
func (RequestConsumed) requestEvent()      {}
func (RequestClosed) requestEvent()        {}
func (Escalated) requestEvent()            {}
func (EscalationEnded) requestEvent()      {}
func (ReminderDue) requestEvent()          {}
func (PersonInvited) requestEvent()        {}
func (AvailabilityResolved) requestEvent() {}
func (LeadCalled) requestEvent()           {}
func (RemarkMade) requestEvent()           {}
func (SourceEdited) requestEvent()         {}
func (AnswerEdited) requestEvent()         {}
func (ValuesRevealed) requestEvent()       {}
func (PreviewMade) requestEvent()          {}

// FindEvent returns the first event of a kind.
func FindEvent[E Event](events []Event) (E, bool) {
	for _, e := range events {
		if found, ok := e.(E); ok {
			return found, true
		}
	}
	var none E
	return none, false
}

// HasEvent reports whether there is an event of a kind.
func HasEvent[E Event](events []Event) bool {
	_, ok := FindEvent[E](events)
	return ok
}

// NetEvents drops events that later events of the same transaction supersede, so that each consequence happens once:
//
//   - Of several StageStarted events the last remains, with From and After of the first. If the request is no longer
//     pending, none remains.
//   - If the arguments were edited, PlanChanged is dropped: the edit has its own plan.
func (r Request) NetEvents(events []Event) []Event {
	var out []Event
	started := -1 // the place of StageStarted in out
	edited := HasEvent[ArgsEdited](events)
	for _, e := range events {
		switch e := e.(type) {
		case PlanChanged:
			if edited {
				continue
			}
		case StageStarted:
			if r.State != Pending {
				continue
			}
			if started >= 0 {
				first := out[started].(StageStarted)
				e.From, e.After = first.From, first.After
				if first.Why != StageReplaced {
					e.Why = first.Why
				}
				out = slices.Delete(out, started, started+1)
			}
			started = len(out)
			out = append(out, e)
			continue
		}
		out = append(out, e)
	}
	return out
}

// Reassigned reports whether the request now waits for other roles or another group than before the stage started.
func (e StageStarted) Reassigned(r Request) bool { return !e.After.AsksLike(r.stage()) }

// Advances reports whether the request advanced: to another stage, or to other arguments. For new and reopened requests
// it returns false, because other events report those.
func (e StageStarted) Advances() bool {
	switch e.Why {
	case StageEdited:
		return true
	case StagePassed, StageReplaced:
		return e.From != e.Stage
	}
	return false
}
