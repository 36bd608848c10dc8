package store

import "time"

// TimerKind says what falls due. Everything that has to be done is a timer: a process that starts reads what is due and goes on.
type TimerKind string

// The kinds of timer, with what Ref names.
const (
	TimerInbox    TimerKind = "inbox"    // handle what came from Slack; Ref: an inbox row
	TimerThink    TimerKind = "think"    // call the model; Ref: a turn
	TimerRun      TimerKind = "run"      // claim and run; Ref: an execution. It stays until the run is finished
	TimerExpire   TimerKind = "expire"   // reject an undecided request, or one not started in time; Ref: a request
	TimerEscalate TimerKind = "escalate" // tell the next lead; Ref: a request
	TimerRemind   TimerKind = "remind"   // remind those who have not decided; Ref: a request
	TimerMuster   TimerKind = "muster"   // look who of a stage can be reached now; Ref: a request
	TimerAway     TimerKind = "away"     // an absence begins: look who of the stages that wait can be reached now; Ref: a person
	TimerInquiry  TimerKind = "inquiry"  // give up on a question of the model's that nobody answered; Ref: a call
	TimerElicit   TimerKind = "elicit"   // give up on what a tool asked in the middle of its run; Ref: an elicitation
	TimerPreview  TimerKind = "preview"  // ask a tool what a call would do; Ref: a request
	TimerLeave    TimerKind = "leave"    // tell the model that an outcome stays unknown; Ref: an execution
	TimerGrant    TimerKind = "grant"    // end a grant, or an offer of one, whose time is over; Ref: a grant
	TimerPause    TimerKind = "pause"    // show to everybody who waits that everything was paused, or goes on; Ref: SettingPause
	TimerPlace    TimerKind = "place"    // move what is open in a channel that the bot lost; Ref: the channel's id or name
	TimerHome     TimerKind = "home"     // somebody has not looked at their Home tab for a while: it is shown without buttons from then on; Ref: its surface
	TimerHomes    TimerKind = "homes"    // something changed that the Home tabs which people look at may show; Ref: SettingHomes
	TimerRepost   TimerKind = "repost"   // post again what vanished, before its deadline; Ref: a surface
	// Make Slack show a surface; Ref: a surface. Each rank has its own, so that what is ranked first never stands behind the rest.
	TimerShowFirst TimerKind = "show_first"
	TimerShow      TimerKind = "show"
	TimerShowLast  TimerKind = "show_last"
)

// ShowTimers are the kinds of timer that make Slack show surfaces, in order of rank.
var ShowTimers = []TimerKind{TimerShowFirst, TimerShow, TimerShowLast}

// Timer is a row with a deadline. There is at most one of a kind for each Ref; setting it again replaces it.
type Timer struct {
	Kind  TimerKind `json:"kind"`
	Ref   string    `json:"ref"`
	Due   time.Time `json:"due"`
	Lane  string    `json:"lane,omitempty"`  // timers of a kind and lane are handled one after the other, in order of Due; empty: no order
	Tries int       `json:"tries,omitempty"` // how often handling it failed
	// PutOff is when it was put off until Due, if it was.
	PutOff time.Time `json:"put_off,omitzero"`
}

// InboxKind says what came from Slack.
type InboxKind string

// The kinds of inbox rows.
const (
	InboxEvent       InboxKind = "event"
	InboxInteraction InboxKind = "interaction"
	InboxCommand     InboxKind = "command"
)

// Inbox is what came from Slack. It is durable before Slack is told that it was received, and
// remembered after it was handled, so that a redelivery changes nothing.
type Inbox struct {
	ID         string    `json:"id"` // Slack's event id, or what else names the delivery
	Version    uint64    `json:"version"`
	Kind       InboxKind `json:"kind"`
	ReceivedAt time.Time `json:"received_at"`
	Payload    []byte    `json:"payload,omitempty"` // as Slack sent it; dropped once handled
	HandledAt  time.Time `json:"handled_at,omitzero"`
	Note       string    `json:"note,omitempty"` // why it was set aside, if it was
}
