package store

import (
	"encoding/json"
	"time"

	"countersign/approvers"
)

// Conversation is a Slack thread with the agent, or a series of messages at the top level of a direct message. A
// Conversation can also be a single request of a caller: a program outside Slack that asks for the approval of its
// calls.
type Conversation struct {
	ID        string    `json:"id"` // random
	Version   uint64    `json:"version"`
	Place     string    `json:"place"`            // see the function Place; for a caller's request, the fingerprint of the call. A new conversation replaces the old one
	Team      string    `json:"team"`             //
	Channel   string    `json:"channel"`          // channel id, also for a direct message
	Name      string    `json:"name,omitempty"`   // the channel's name, for people
	Thread    string    `json:"thread,omitempty"` // ts of the thread's root; empty at the top level of a direct message
	DM        bool      `json:"dm,omitempty"`
	Gone      bool      `json:"gone,omitempty"` // the thread's only message was deleted, so nobody can write in the thread
	Agent     string    `json:"agent"`
	Turn      string    `json:"turn,omitempty"` // the current turn; empty: none
	Messages  uint64    `json:"messages"`       // number of messages; the next message's Seq is one more
	CreatedAt time.Time `json:"created_at"`
	LastAt    time.Time `json:"last_at"` // the time of the last message

	Caller *CallerRequest `json:"caller,omitempty"` // nil: a conversation in Slack
}

// CallerRequest describes the request of a caller, without the tool call itself.
type CallerRequest struct {
	Caller      approvers.Caller `json:"caller"`
	Request     string           `json:"request"` // the id that the caller uses: the id of the call, and also of its first approval request if there is one
	Body        string           `json:"body"`    // SHA-256 of the request's body in hex; a repeated request must have the same body
	Summary     string           `json:"summary,omitempty"`
	ClientState string           `json:"state,omitempty"` // a text from the caller; each answer to the caller contains the text unchanged
	Run         string           `json:"run,omitempty"`   // of a conversation that only refers to a request: the run that it refers to
	Told        string           `json:"told,omitempty"`  // the last change that the caller's webhook was told; see view.Change

	// Repeatable marks a request that the caller sent without an idempotency key. Until the result is delivered, an
	// identical request of the same caller counts as a repetition of this request.
	Repeatable bool      `json:"repeatable,omitempty"`
	Delivered  time.Time `json:"delivered,omitzero"` // when the request's final state was sent to the caller; zero: not yet sent
}

// MessageRole says who wrote a message.
type MessageRole string

// These are the roles of messages. Tool results are not messages: each Call has its own result.
const (
	RoleUser      MessageRole = "user"
	RoleAssistant MessageRole = "assistant"
)

// MessageState says whether the model has received a message.
type MessageState string

// The states of a message.
const (
	MessageQueued MessageState = "queued" // waits until the current turn ends
	MessageTaken  MessageState = "taken"  // part of the history sent to the model
	MessageAnswer MessageState = "answer" // answers the model's question; sent to the model as the result of the call that asks the question
	MessageStop   MessageState = "stop"   // stopped the turn; not sent to the model
	MessageGone   MessageState = "gone"   // deleted before the model received it
)

// Message is one entry of a conversation's history.
type Message struct {
	Conversation string             `json:"conversation"`
	Seq          uint64             `json:"seq"` // from 1, rising
	Turn         string             `json:"turn,omitempty"`
	Step         int                `json:"step,omitempty"` // for RoleAssistant: the number of the model's step
	Role         MessageRole        `json:"role"`
	State        MessageState       `json:"state"`
	Author       approvers.PersonID `json:"author,omitempty"`
	AuthorName   string             `json:"author_name,omitempty"`
	Text         string             `json:"text"`
	Attached     string             `json:"attached,omitempty"` // text of attachments, for the model only
	TS           string             `json:"ts,omitempty"`       // for RoleUser: the ts of the Slack message
	Edited       string             `json:"edited,omitempty"`   // Slack's ts of the edit that produced Text; empty: never edited
	Calls        int                `json:"calls,omitempty"`    // number of tool calls in the step
	At           time.Time          `json:"at"`
	Gap          *approvers.Gap     `json:"gap,omitempty"` // the period without deliveries in which the message was written; nil: the bot received the message in time
	// MessageEdit records that a person edited or deleted the message in Slack after the model received it. Otherwise,
	// MessageEdit is nil. Text is always the text that the model received.
	MessageEdit *approvers.MessageEdit `json:"reworded,omitempty"`
	// Reasoning is for RoleAssistant. If the model's endpoint added nothing to its answer, Reasoning is nil.
	Reasoning *Reasoning `json:"reasoning,omitempty"`
}

// Reasoning has the parts of a model's answer that are neither text nor calls. Some endpoints refuse a history without
// them. Nobody else gets them.
type Reasoning struct {
	Source string   `json:"source"`          // identifies the endpoint and the model
	Text   string   `json:"text,omitempty"`  // the model's reasoning
	Calls  []string `json:"calls,omitempty"` // for each call of the step, the JSON that the endpoint added to it; empty: nothing
}

// Call is one tool call of a step, with one result.
type Call struct {
	ID            string                   `json:"id"` // random
	Version       uint64                   `json:"version"`
	Conversation  string                   `json:"conversation"`
	Turn          string                   `json:"turn"`
	Step          int                      `json:"step"`
	Index         int                      `json:"index"`    // order within the step
	ModelID       string                   `json:"model_id"` // the model's call id, made unique within the step
	Tool          string                   `json:"tool"`
	Args          string                   `json:"args"`                // the raw argument text as the model wrote it
	Asked         *Asked                   `json:"asked,omitempty"`     // who asked for the call; nil: another agent, or the call is from 0.1.0 or was rebuilt after damage
	Execution     string                   `json:"execution,omitempty"` // the current execution; empty: the call never runs
	Request       string                   `json:"request,omitempty"`   // the call's approval request; empty: nobody was asked
	Preview       string                   `json:"preview,omitempty"`   // what the call would do, for people; made before any decision
	Secrets       []string                 `json:"secrets,omitempty"`   // arguments that are masked wherever the call is shown
	ModelQuestion *approvers.ModelQuestion `json:"inquiry,omitempty"`   // set if the call is a question from the model
	Outcome       approvers.Outcome        `json:"outcome,omitempty"`   // empty: the call has no result yet
	Result        string                   `json:"result,omitempty"`    // the text sent to the model
	Unrun         bool                     `json:"unrun,omitempty"`     // the call's run failed before the tool was called
	CreatedAt     time.Time                `json:"created_at"`
	ReturnedAt    time.Time                `json:"returned_at,omitzero"`
}

// Asked records who asked for a call when the model proposed it. The turn may take further messages later, which did not
// lead to the call.
type Asked struct {
	MessageTS  string               `json:"message_ts"` // the ts of the last message that the model had received in the turn
	Requesters []approvers.PersonID `json:"requesters"`
	Authors    []approvers.PersonID `json:"authors"` // the authors of all messages in the prompt
}

// Counter is one counted event, such as an automatic run of a tool, or the tokens that a person used. The workflow
// chooses the keys.
type Counter struct {
	Key string
	At  time.Time
	ID  string // identifies the event; an event counts once for each key and time
	N   int    // the amount that the event adds to the sum, at least 1
}

// Setting keys. Values are JSON.
const (
	SettingPause        = "pause"     // who paused everything, when and why; the value is a settings.Pause
	SettingSeal         = "seal"      // the state from which the next signed head is computed; only the workflow reads and writes it
	SettingReport       = "report"    // the newest weekly report; its value is a settings.Report
	SettingOperators    = "operators" // the notices for the operators; its value is a settings.Operators
	SettingPolicy       = "policy"    // the policy and the tools against which waiting requests were last checked
	SettingDiskSpace    = "room"      // without content; written only to test whether the disk has space
	SettingCardQueue    = "line/"     // followed by an address: the open cards at the address, and the requests that wait behind them
	SettingChannelState = "place/"    // followed by a channel's id or name: whether the bot lost the channel, and which messages it left there
	SettingHomes        = "homes"     // not stored as a setting; the Ref of the one timer that refreshes Home tabs
	SettingTrust        = "trust/"    // followed by an agent and a tool: how many calls in a row were approved unchanged
	SettingReceived     = "heard"     // the time up to which the bot received all messages, and the gap whose messages the bot is reading now; the value is a settings.Received
	SettingFeedback     = "ratings/"  // followed by an agent: how people rated its answers; the value is a settings.Feedback
	SettingRefusals     = "refused"   // what Slack refuses in this workspace, such as a kind of block
	SettingCaller       = "caller/"   // followed by a caller's name: the caller's waiting requests and hang-ups; the value is a settings.Caller
	SettingReceiptKeys  = "receipts"  // the public keys that verify receipts; its value is a settings.ReceiptKeys
	SettingWebhook      = "webhook/"  // followed by a caller's name: the failures of deliveries to the caller's webhook since the last success; the value is a settings.Webhook
	SettingSlackToken   = "token"     // the encrypted bot token of an app with token rotation; its value is a settings.SlackToken
	SettingRetention    = "retention" // the time of the last round of retention; its value is a settings.Retention
	SettingInstallation = "app"       // the installation of the Slack app to which the store belongs; its value is a settings.Installation
	SettingDemo         = "demo"      // without content; marks the store of a demo (option --store), which has no data of a real bot
)

// Setting is a small value that belongs to the whole installation.
type Setting struct {
	Key     string          `json:"key"`
	Version uint64          `json:"version"`
	Value   json.RawMessage `json:"value"`
}
