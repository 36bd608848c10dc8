package approvers

import (
	"slices"
	"time"
)

// Event is one change that a transition made to a request. A transition returns the new request and its events, in the
// order in which they happened. The workflow makes audit records and messages from the events. Some changes have no
// event, such as changes of the request's times.
//
// The following types are the kinds of events. Package approvers/workflow turns events into rows, so it must handle
// each new kind.
type Event interface{ requestEvent() }

type (
	// RequestOpened is the first event of every request.
	RequestOpened struct{}

	// DecisionMade is one person's decision.
	DecisionMade struct{ Decision Decision }

	// ArgsEdited means that the arguments were replaced. The execution, its digest and the plan are new.
	ArgsEdited struct{ Edit Edit }

	// DecisionsFell lists the people whose decisions no longer count, because the arguments or the policy changed.
	DecisionsFell struct{ Of []PersonID }

	// PlanChanged means that a new policy changed the request's stages or risk, or made an approval invalid.
	// Restarted reports whether the stages started again, so that the earlier decisions no longer count.
	PlanChanged struct{ Restarted bool }

	// LeadsLeft means that roles were removed from the stage. Escalation had added these roles as leads, but under
	// the new policy, they are not leads of the stage's roles.
	LeadsLeft struct{}

	// StageStarted means that a stage begins, and that its clocks start.
	StageStarted struct {
		Why   StageReason
		From  int   // the index of the previous stage in the plan before the transition
		After Stage // the previous stage; the zero Stage for a new request
		Stage int   // the current stage
	}

	// RequestUnbundled means that a request gets its own card. Before this event, the request shared a card with the
	// other requests of its bundle.
	RequestUnbundled struct{}

	// RequestApproved means that the last stage has its quorum. The call may run.
	RequestApproved struct{}

	// RequestReopened means that an approved request becomes pending. The policy became stricter before the call ran.
	RequestReopened struct{}

	// RequestConsumed means that the run of an approved call starts.
	RequestConsumed struct{}

	// RequestClosed means that a request ended without a run. State is rejected, expired, withdrawn, revoked, voided or
	// refused.
	RequestClosed struct{ State State }

	// Escalated means that a lead was added to the stage. If there are no more leads, Escalated means that all people
	// are notified once more.
	Escalated struct {
		Lead  Role // the zero role when Again is set
		Again bool
	}

	// EscalationEnded means that escalation has nobody left to notify.
	EscalationEnded struct{}

	// ReminderDue lists the people to remind now. If all people are away or in do-not-disturb, the list is empty.
	ReminderDue struct{ People []Identity }

	// PersonInvited means that one person was added to the stage. The person is a stand-in for an absent person, or a
	// colleague to whom the stage was handed on.
	PersonInvited struct{ Invite Invite }

	// AvailabilityResolved means that the workflow has checked who can be reached. RecheckAt is the time of the next
	// check. If no check is needed, RecheckAt is zero.
	AvailabilityResolved struct{ RecheckAt time.Time }

	// LeadCalled means that the escalation is due now, although its time has not come. For example, no person of the stage
	// can be reached.
	LeadCalled struct{}

	// RemarkMade is a question, an answer or a comment. Index is the remark's index in Request.Remarks.
	RemarkMade struct{ Index int }

	// SourceEdited means that the message that led to the request was edited or deleted.
	SourceEdited struct{}

	// AnswerEdited means that the message with an answer was edited or deleted afterwards. Index is the answer's
	// index in Request.Remarks.
	AnswerEdited struct{ Index int }

	// ValuesRevealed means that a person was shown the masked values.
	ValuesRevealed struct{ By PersonID }

	// PreviewMade means that a tool preview is ready or has failed. Headline reports whether the tool preview changed
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
	StageReopened StageReason = "reopened" // the policy's requirements changed after the request had been approved, so the stages start again
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

// NetEvents drops events that later events of the same transaction replace. So each consequence happens only once.
// These are the rules:
//
//   - If there are several StageStarted events, only the last of them remains. It gets From and After of the first
//     event. It also gets Why of the first event, except if this Why is StageReplaced.
//   - If the request is not pending after the transaction, NetEvents drops all StageStarted events.
//   - If the arguments were edited, NetEvents drops PlanChanged, because an edit includes a new plan.
func (r Request) NetEvents(events []Event) []Event {
	var out []Event
	started := -1 // the index of StageStarted in out
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

// Reassigned reports whether the current stage names other roles, or another group, than the previous stage.
func (e StageStarted) Reassigned(r Request) bool { return !e.After.AsksLike(r.stage()) }

// Advances reports whether the request is at another stage or has other arguments. Advances returns false for new and
// reopened requests, because other events report these two cases.
func (e StageStarted) Advances() bool {
	switch e.Why {
	case StageEdited:
		return true
	case StagePassed, StageReplaced:
		return e.From != e.Stage
	}
	return false
}
