package view

import (
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Model has all data from which an outbox message is rendered. The data are from one snapshot of the store.
type Model struct {
	Message      store.OutboxMessage
	Conversation store.Conversation
	Turn         approvers.Turn           // CanRetry is false if a newer turn has taken messages
	Request      *approvers.Request       // for a card, an escalation, a question, a notice, and a run that was approved
	Execution    *approvers.Execution     // the request's current execution, the run whose outcome is unknown, or the run that returned the file; nil: its record is lost
	Call         *store.Call              // call of the request or the execution, with the result that the model received
	Later        *approvers.Request       // for a run with an unknown outcome: the request for a retry
	Earlier      []store.OutboxMessage    // for a retry's request: the messages in Slack about the earlier run
	LeaveAt      time.Time                // for an unknown outcome: when the model is told that the outcome is unknown; zero: the model was told already, or is never told
	Cards        []store.OutboxMessage    // for a question and a notice: the request's cards that Slack shows; if Later is set: the cards of Later
	Absence      *approvers.Absence       // for a notice to a stand-in: the absence in its current state
	Calls        []Call                   // for a step: the step's calls in order; for a bundle: the calls that the bundle shows
	Grant        *approvers.Grant         // for a grant
	Stalled      string                   // for a grant in force: why no call can run under it now
	CardQueue    *CardQueue               // for a queue's notice; nil: the notice is out of date
	Queued       []store.Message          // for OutboxQueued: the messages that wait
	MessageEdit  *store.Message           // the turn's last message that was edited or deleted after the model had read it
	Gap          *approvers.Gap           // the last gap in which a message of the conversation was written; nil: none
	Text         string                   // the model's text in a step, or the model's answer
	Steps        []Step                   // for an answer: the steps that the answer reports, in order
	Elicitation  *approvers.Elicitation   // a tool's question to a person
	File         *store.File              // for a file that a run returned
	Data         []byte                   // the file's bytes
	Head         *store.Head              // for the message with signed heads: the newest head
	Report       *settings.Report         // for the weekly report
	Notice       *settings.OperatorNotice // for a notice for the operators; nil: the store no longer has the notice
	Pause        settings.Pause           // whether everything is paused
	Policy       *approvers.Policy
	Now          time.Time
}

// Call is one call of a step. Its data show why the call waits.
type Call struct {
	Call      store.Call
	Execution *approvers.Execution // nil: there is none, or its record is lost
	Request   *approvers.Request
	Cards     []store.OutboxMessage // the request's cards that Slack shows
	Grant     *approvers.Grant      // the grant under which the call ran
	Queued    bool                  // the request's card waits in a queue
	Asks      bool                  // the call's run waits for an answer from the person who asked
}

// Settled reports whether the call has its final outcome. The message about the call's step then shows the call in its
// final form.
func (c Call) Settled() bool {
	return c.Call.Outcome != "" && c.Call.Outcome != approvers.OutcomeUnknown && (c.Execution == nil || c.Execution.State != approvers.ExecutionUnknown)
}

// Step is a step of a turn. The message with the turn's answer describes the step below the answer.
type Step struct {
	Step  int
	Text  string // the model's text in this step
	Calls []Call
}
