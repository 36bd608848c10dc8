package store

import (
	"time"

	"countersign/approvers"
)

// TimerKind names the work of a timer. Each piece of pending work has a timer in the store. A new process reads the due
// timers and continues the work.
type TimerKind string

// These are the kinds of timers. Each comment also gives the meaning of Ref.
const (
	TimerInbox         TimerKind = "inbox"    // handle a delivery from Slack; Ref: an inbox row
	TimerThink         TimerKind = "think"    // call the model; Ref: a turn
	TimerRun           TimerKind = "run"      // claim an execution and run it; Ref: an execution. The timer stays until the run is finished
	TimerExpire        TimerKind = "expire"   // end a request that nobody decided in time, or whose run did not start in time; Ref: a request
	TimerEscalate      TimerKind = "escalate" // notify the next lead; Ref: a request
	TimerRemind        TimerKind = "remind"   // remind approvers who have not decided; Ref: a request
	TimerAvailability  TimerKind = "muster"   // check which approvers of a stage are available; Ref: a request
	TimerAway          TimerKind = "away"     // at the beginning of an absence: check who is available; at its end: show the person the waiting cards; Ref: a person
	TimerModelQuestion TimerKind = "inquiry"  // end a question from the model that nobody answered; Ref: a call
	TimerElicit        TimerKind = "elicit"   // end a tool's question that nobody answered; Ref: an elicitation
	TimerPreview       TimerKind = "preview"  // ask a tool what a call would do; Ref: a request
	TimerLeave         TimerKind = "leave"    // tell the model that the outcome of a run stays unknown; Ref: an execution
	TimerOutcome       TimerKind = "outcome"  // end an automatic approval that the caller did not claim, or ask people how a caller's run ended; Ref: an execution
	TimerWebhook       TimerKind = "webhook"  // tell a caller's webhook about a change; Ref: a call; Lane: the caller's name
	TimerGrant         TimerKind = "grant"    // end an expired grant or offer; Ref: a grant
	TimerPause         TimerKind = "pause"    // update messages after a pause or resume; Ref: SettingPause
	TimerChannel       TimerKind = "place"    // move open messages out of a channel that the bot lost; Ref: the channel's id or name
	TimerHome          TimerKind = "home"     // empty a Home tab that its owner has not opened for a while; Ref: its outbox message
	TimerHomes         TimerKind = "homes"    // refresh Home tabs in use after a change; Ref: SettingHomes
	TimerRepost        TimerKind = "repost"   // post a lost message again, before its deadline; Ref: an outbox message
	TimerLeftover      TimerKind = "leftover" // delete messages whose deletion Slack refused before; Ref: their outbox message
	TimerCatchUp       TimerKind = "catch_up" // read messages that were written while the bot received nothing; Ref: SettingReceived, or a channel that the bot has joined
	// The next four kinds deliver an outbox message to Slack. Their Ref is an outbox message. Each rank of outbox
	// messages has its own kind, so messages of a lower rank do not occupy the workers of a higher rank.
	TimerShowFirst  TimerKind = "show_first"
	TimerShow       TimerKind = "show"
	TimerShowAnswer TimerKind = "show_answer"
	TimerShowLast   TimerKind = "show_last"
)

// ShowTimers lists the kinds of timer that deliver outbox messages, in order of rank.
var ShowTimers = []TimerKind{TimerShowFirst, TimerShow, TimerShowAnswer, TimerShowLast}

// TimerKinds lists all kinds of timer.
var TimerKinds = append([]TimerKind{
	TimerInbox, TimerThink, TimerRun, TimerExpire, TimerEscalate, TimerRemind, TimerAvailability, TimerAway,
	TimerModelQuestion, TimerElicit, TimerPreview, TimerLeave, TimerOutcome, TimerWebhook, TimerGrant, TimerPause, TimerChannel, TimerHome, TimerHomes,
	TimerRepost, TimerLeftover, TimerCatchUp,
}, ShowTimers...)

// Timer is a stored piece of work with a due time. There is at most one timer for each Kind and Ref. Setting a timer
// replaces an existing timer with the same Kind and Ref.
type Timer struct {
	Kind  TimerKind `json:"kind"`
	Ref   string    `json:"ref"`
	Due   time.Time `json:"due"`
	Lane  string    `json:"lane,omitempty"`  // timers of a kind and lane run one at a time, in order of Due; empty: no order
	Tries int       `json:"tries,omitempty"` // how many attempts failed
	// Affinity is the same text for related timers, such as "conversation:" and the id of a conversation. All timers
	// with the same Affinity are in the same share, so one replica handles them: see Timer.Share.
	Affinity string `json:"affinity,omitempty"`
	// PutOff is the time at which the timer was last postponed. If the timer was never postponed, PutOff is zero. Due
	// is the time to which the timer was postponed.
	PutOff time.Time `json:"put_off,omitzero"`
}

// LostTimer returns the timer of an execution that has not ended, for a backend that has lost the timer. The timers
// TimerOutcome and TimerLeave wait for a deadline that is not in the execution. Their Due is the time at which the
// deadline began to run. So they are due at once, and their handlers compute the deadline again. The Due of TimerRun is
// zero.
func LostTimer(e approvers.Execution) Timer {
	switch {
	case e.State == approvers.ExecutionUnknown:
		return Timer{Kind: TimerLeave, Ref: e.ID, Due: e.FinishedAt}
	case e.Caller == "":
		return Timer{Kind: TimerRun, Ref: e.ID, Affinity: ToConversation + e.Conversation}
	case e.State == approvers.ExecutionNone:
		return Timer{Kind: TimerOutcome, Ref: e.ID, Due: e.CreatedAt}
	}
	return Timer{Kind: TimerOutcome, Ref: e.ID, Due: e.StartedAt}
}

// InboxKind is the kind of a delivery from Slack.
type InboxKind string

// The kinds of inbox rows.
const (
	InboxEvent       InboxKind = "event"
	InboxInteraction InboxKind = "interaction"
	InboxCommand     InboxKind = "command"
)

// Inbox is a stored delivery from Slack, or a stored message that the bot has read from a channel's history. The bot
// acknowledges a delivery to Slack only after the row is durable. A handled row is kept, so a repeated delivery has no
// effect.
type Inbox struct {
	ID         string    `json:"id"` // Slack's event id, or another id of the delivery
	Version    uint64    `json:"version"`
	Kind       InboxKind `json:"kind"`
	ReceivedAt time.Time `json:"received_at"`
	Payload    []byte    `json:"payload,omitempty"` // the bytes from Slack; deleted when the row was handled
	HandledAt  time.Time `json:"handled_at,omitzero"`
	Note       string    `json:"note,omitempty"`     // why the row can't be handled; empty: the row was handled, or will be handled
	Deferred   *Deferral `json:"deferred,omitempty"` // set if the row waits because Slack has not told the bot who sent the message; nil: the row does not wait
}

// Deferral says why a delivery can't be handled yet. The delivery's timer repeats the attempt.
type Deferral struct {
	Since time.Time `json:"since"`
	Cause string    `json:"cause"` // Slack's reason
}
