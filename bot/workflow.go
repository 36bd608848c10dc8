package bot

import (
	"context"
	"encoding/json"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Workflow is the part of the workflow that the bot uses, by use case.
type Workflow struct {
	Intake    Intake
	Requests  Requests
	Turns     Turns
	Runs      Runs
	Questions Questions
	Grants    Grants
	People    People
	Outbox    Outbox
	Homes     Homes
	Pauses    Pauses
	Views     Views
	Wake      func()            // makes workers handle everything that is due
	Tell      func(news string) // sends a message to the bots of the other replicas; the message may be lost
}

// Use returns the parts of a workflow that the bot uses.
func Use(w *workflow.Workflow) Workflow {
	return Workflow{
		Intake: w.Intake, Requests: w.Requests, Turns: w.Turns, Runs: w.Runs, Questions: w.Questions, Grants: w.Grants, People: w.People,
		Outbox: w.Outbox, Homes: w.Homes, Pauses: w.Pauses, Views: w.Views, Wake: w.Wake, Tell: w.Tell,
	}
}

// Intake receives deliveries from Slack. Each delivery is stored before it is acknowledged. The transaction that
// handles the delivery also marks it as handled.
type Intake interface {
	Receive(ctx context.Context, row store.Inbox, lane string) (fresh bool, err error)
	Remember(ctx context.Context, row store.Inbox) error
	Done(ctx context.Context, inbox, note string) error
	Defer(ctx context.Context, inbox, cause string) (fresh bool, err error)
	Deadly(inbox string) int
	Abandon(ctx context.Context, inbox, user string) error
	GiveUp(ctx context.Context, inbox, note string) error
	ReceiveMessage(ctx context.Context, u workflow.IncomingMessage) (workflow.MessageResult, error)
	Deleted(ctx context.Context, x workflow.Deletion) error
	ThreadGone(ctx context.Context, conversation string) error
	ChannelLost(ctx context.Context, inbox, channel, cause string, named ...string) error
	ChannelRestored(ctx context.Context, inbox, channel string, named ...string) error
	ChannelJoined(ctx context.Context, inbox, channel string, named ...string) error
	ChannelShared(ctx context.Context, inbox, channel string, named ...string) error
	Received(ctx context.Context, until, open time.Time) error
	Missed(ctx context.Context, quiet bool) error
	StillWaits(ctx context.Context, gap settings.Gap) error
	ChannelRead(ctx context.Context, gap settings.Gap, channel string) error
	CaughtUp(ctx context.Context, gap settings.Gap) error
	JoinedRead(ctx context.Context, timer store.Timer) error
}

// Requests handles people's decisions and remarks about requests.
type Requests interface {
	Decide(ctx context.Context, click workflow.Click) (approvers.Request, error)
	DecideAll(ctx context.Context, click workflow.Click, shown []store.Shown) (approvers.Request, error)
	Unbundle(ctx context.Context, click workflow.Click) (approvers.Request, error)
	Reveal(ctx context.Context, click workflow.Click, secrets []string, body []byte) error
	Revoke(ctx context.Context, click workflow.Click) (approvers.Request, error)
	Say(ctx context.Context, click workflow.Click, kind approvers.RemarkKind) (approvers.Request, error)
	Reply(ctx context.Context, click workflow.Click, question int) (approvers.Request, error)
	HandOn(ctx context.Context, click workflow.Click, to approvers.Identity) (approvers.Request, error)
	Withdraw(ctx context.Context, click workflow.Click) (approvers.Request, error)
	WithdrawSome(ctx context.Context, click workflow.Click, requests []string) (approvers.Request, error)
	WithdrawAll(ctx context.Context, click workflow.Click) error
	Refuse(ctx context.Context, click workflow.Click, denied *approvers.Denied, anew string, named ...string) error
}

// Turns handles people's actions on a turn, and the messages that show a step while the model writes it.
type Turns interface {
	TryAgain(ctx context.Context, click workflow.Click) error
	StopBy(ctx context.Context, click workflow.Click) error
	AddFeedback(ctx context.Context, click workflow.Click, good bool) error
	Drafted(ctx context.Context, s store.OutboxMessage, said string) error
	Draft(ctx context.Context, turn string, step int) (s store.OutboxMessage, conv store.Conversation, who approvers.PersonID, err error)
}

// Runs handles runs whose outcome is unknown.
type Runs interface {
	Report(ctx context.Context, click workflow.Click, what workflow.Report) error
	RetryUnknown(ctx context.Context, click workflow.Click) error
}

// Questions handles people's answers to the model and to running tools.
type Questions interface {
	Answer(ctx context.Context, click workflow.Click, option int) error
	Respond(ctx context.Context, click workflow.Click, values json.RawMessage) error
	Decline(ctx context.Context, click workflow.Click) error
}

// Grants handles grants. Under a grant, calls may run without approval for a limited time.
type Grants interface {
	Give(ctx context.Context, click workflow.Click, a approvers.Allowance) (approvers.Request, error)
	Accept(ctx context.Context, click workflow.Click) (approvers.Grant, error)
	Decline(ctx context.Context, click workflow.Click) (approvers.Grant, error)
	Revoke(ctx context.Context, click workflow.Click) (approvers.Grant, error)
	Send(ctx context.Context, inbox string, who approvers.PersonID, grants []string) error
}

// People handles availability. The bot looks up the people, and the workflow decides about the consequences.
type People interface {
	ResolveAvailability(ctx context.Context, timer store.Timer, stage view.StageSnapshot, people []approvers.Presence) error
	Remind(ctx context.Context, timer store.Timer, stage view.StageSnapshot, people []approvers.Presence) error
	SetAway(ctx context.Context, m workflow.Departure) (approvers.Absence, error)
	Back(ctx context.Context, inbox string, who approvers.Identity) (approvers.Absence, error)
	AbsenceChanged(ctx context.Context, timer store.Timer, who approvers.Identity) error
	AccountChanged(ctx context.Context, inbox string, who approvers.PersonID, roles []string) error
	GroupChanged(ctx context.Context, inbox string, roles []string, is func(group string) bool) error
}

// Outbox tracks the messages that Slack must show, and their delivery.
type Outbox interface {
	Made(s store.OutboxMessage) (made bool, since time.Time)
	Delivered(ctx context.Context, s store.OutboxMessage, p workflow.SentMessage) error
	Unchanged(ctx context.Context, s store.OutboxMessage) error
	Removed(ctx context.Context, s store.OutboxMessage) error
	Replace(ctx context.Context, s store.OutboxMessage) error
	LeftOver(ctx context.Context, message, channel, ts, cause string) error
	TriedLeftovers(ctx context.Context, message string, tried []workflow.TriedDeletion) error
	Unreachable(ctx context.Context, message, cause, lost string) error
	Expand(ctx context.Context, message string, members []approvers.Identity) error
	MarkLost(ctx context.Context, s store.OutboxMessage) error
	RepostLost(ctx context.Context, messages []store.OutboxMessage) (n int, err error)
	RetryUnreached(ctx context.Context) error
	Viewed(ctx context.Context, v workflow.Viewing) (rendering string, err error)
	Looked(ctx context.Context, c workflow.Click, redraw string) error
	Refused(ctx context.Context, refusal settings.Refusal) error
}

// Homes tracks people's Home tabs.
type Homes interface {
	Open(ctx context.Context, inbox, user, part string, page int) error
	Shown(ctx context.Context, s store.OutboxMessage, p workflow.SentMessage, looks string) error
	Unchanged(ctx context.Context, s store.OutboxMessage) error
	Refused(ctx context.Context, s store.OutboxMessage, why string) error
}

// Pauses begins and ends a pause of all work.
type Pauses interface {
	PauseBy(ctx context.Context, click workflow.Click) error
	ResumeBy(ctx context.Context, click workflow.Click) error
}

// Views reads the data that the bot shows. Each call reads one snapshot of the store. *view.Reader implements this
// interface.
type Views interface {
	Policy() *approvers.Policy
	Request(ctx context.Context, id string) (req approvers.Request, err error)
	Execution(ctx context.Context, id string) (e approvers.Execution, err error)
	RequestsOf(ctx context.Context, who approvers.PersonID, before store.RequestCursor, limit int) (list []approvers.Request, err error)
	Elicitation(ctx context.Context, id string) (q approvers.Elicitation, err error)
	Chain(ctx context.Context, request string) (records []approvers.AuditRecord, err error)
	Message(ctx context.Context, message string) (view.Model, error)
	Turn(ctx context.Context, turn string) (view.Model, error)
	AddNamed(ctx context.Context, m *view.Model, ref string) error
	Answer(ctx context.Context, answer string, steps []int) (view.Model, error)
	PendingItems(ctx context.Context) (list []view.PendingItem, more bool, err error)
	Locate(ctx context.Context, w view.PendingItem) (conv store.Conversation, messages []store.OutboxMessage, err error)
	Paused(ctx context.Context) (p settings.Pause, err error)
	Refusals(ctx context.Context) (list []settings.Refusal, err error)
	PauseImpact(ctx context.Context) (s view.PauseImpact, p settings.Pause, err error)
	Inbox(ctx context.Context, id string) (row store.Inbox, err error)
	Received(ctx context.Context) (settings.Received, error)
	ConversationsSince(ctx context.Context, at time.Time, limit int) ([]store.Conversation, error)
	TurnAt(ctx context.Context, team, channel, thread string) (turn string, err error)
	HasConversation(ctx context.Context, team, channel, thread string) (bool, error)
	Grants(ctx context.Context, who approvers.PersonID) (out []view.ListedGrant, err error)
	StageSnapshot(ctx context.Context, request string) (view.StageSnapshot, error)
	Away(ctx context.Context) (away map[string]approvers.Absence, err error)
	Absence(ctx context.Context, who approvers.PersonID) (a approvers.Absence, err error)
	StandsInFor(ctx context.Context, who approvers.PersonID) (list []approvers.Absence, err error)
	Delivery(ctx context.Context, channel, ts string) (s store.OutboxMessage, shown store.Rendering, err error)
	Rendering(ctx context.Context, message string, post uint64) (shown store.Rendering, err error)
	StepOf(ctx context.Context, call string) (message string, err error)
	Leftovers(ctx context.Context, message string) (list []view.Deletion, err error)
	Untold(ctx context.Context, turn string) (steps []store.OutboxMessage, err error)
	HasViewed(ctx context.Context, request string, who approvers.PersonID, body []byte) (rendering string, yes bool, err error)
}
