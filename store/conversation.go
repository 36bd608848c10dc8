package store

import (
	"encoding/json"
	"time"

	"countersign/approvers"
)

// Conversation is one Slack thread with the agent, or the top level of a direct message for a while.
type Conversation struct {
	ID        string    `json:"id"` // random
	Version   uint64    `json:"version"`
	Place     string    `json:"place"`            // where it is: unique among the current conversations; a new one at the same place replaces the old
	Team      string    `json:"team"`             //
	Channel   string    `json:"channel"`          // channel id, a direct message's included
	Name      string    `json:"name,omitempty"`   // the channel's name, for people
	Thread    string    `json:"thread,omitempty"` // ts of the thread's root; empty at the top level of a direct message
	DM        bool      `json:"dm,omitempty"`
	Gone      bool      `json:"gone,omitempty"` // nobody can write there any more: the thread went with its only message
	Agent     string    `json:"agent"`
	Turn      string    `json:"turn,omitempty"` // the turn under way; empty: none
	Messages  uint64    `json:"messages"`       // how many were written; the next message's Seq is one more
	CreatedAt time.Time `json:"created_at"`
	LastAt    time.Time `json:"last_at"` // of the last message
}

// MessageRole says who wrote a message.
type MessageRole string

// The roles of messages. Tool results are not messages: they belong to their Call.
const (
	RoleUser      MessageRole = "user"
	RoleAssistant MessageRole = "assistant"
)

// MessageState says whether the model has been given a message.
type MessageState string

// The states of a message.
const (
	MessageQueued MessageState = "queued" // waits until the turn under way ends
	MessageTaken  MessageState = "taken"  // part of the history that the model is given
	MessageAnswer MessageState = "answer" // answers a question of the model's: it is given as that call's result
	MessageGone   MessageState = "gone"   // was deleted before the model was given it
)

// Message is one entry of a conversation's history.
type Message struct {
	Conversation string             `json:"conversation"`
	Seq          uint64             `json:"seq"` // from 1, rising
	Turn         string             `json:"turn,omitempty"`
	Step         int                `json:"step,omitempty"` // for RoleAssistant
	Role         MessageRole        `json:"role"`
	State        MessageState       `json:"state"`
	Author       approvers.PersonID `json:"author,omitempty"`
	AuthorName   string             `json:"author_name,omitempty"`
	Text         string             `json:"text"`
	Attached     string             `json:"attached,omitempty"` // what came along with the words, for the model only
	TS           string             `json:"ts,omitempty"`       // Slack's, for RoleUser
	Edited       string             `json:"edited,omitempty"`   // Slack's ts of the edit since which it reads so; empty: it reads as it was written
	Calls        int                `json:"calls,omitempty"`    // how many tool calls the step asked for
	At           time.Time          `json:"at"`
	// Reworded is what became of it in Slack after the model was given it; nil: nothing. Text is what the model was given.
	Reworded *approvers.Reworded `json:"reworded,omitempty"`
}

// Call is one tool call of a step, and its one result.
type Call struct {
	ID           string             `json:"id"` // random
	Version      uint64             `json:"version"`
	Conversation string             `json:"conversation"`
	Turn         string             `json:"turn"`
	Step         int                `json:"step"`
	Index        int                `json:"index"`    // order within the step
	ModelID      string             `json:"model_id"` // the model's call id, made unique within the step
	Tool         string             `json:"tool"`
	Args         string             `json:"args"`                // the raw argument text as the model wrote it
	Execution    string             `json:"execution,omitempty"` // the current one; empty: never to be run
	Request      string             `json:"request,omitempty"`   // empty: nobody was asked
	Preview      string             `json:"preview,omitempty"`   // what it would do, for people; made before anything was decided
	Secrets      []string           `json:"secrets,omitempty"`   // arguments that are masked wherever it is shown
	Inquiry      *approvers.Inquiry `json:"inquiry,omitempty"`   // for a question of the model's to the person
	Outcome      approvers.Outcome  `json:"outcome,omitempty"`   // empty: no result yet
	Result       string             `json:"result,omitempty"`    // what the model is given
	CreatedAt    time.Time          `json:"created_at"`
	ReturnedAt   time.Time          `json:"returned_at,omitzero"`
}

// Tally marks something that is counted over a time: an automatic run of a tool in a conversation, a call or tokens of a
// person, a request that somebody caused. The desk makes the keys.
type Tally struct {
	Key string
	At  time.Time
	ID  string // what was counted; counted once for each key and time
	N   int    // how much it counts for, at least 1
}

// Setting keys. Values are JSON.
const (
	SettingPause   = "pause"    // who paused everything, when and why; its state is the desk's Pause
	SettingSeal    = "seal"     // what the next head is made from; its state is the desk's
	SettingPolicy  = "policy"   // which policy and tools everything waiting was held against last
	SettingRoom    = "room"     // nothing: it is written to see whether there is space
	SettingLine    = "line/"    // with an address: the cards that are open there, and the requests that wait behind them
	SettingPlace   = "place/"   // with a channel's id or name: whether the bot can't write there any more, and what stands there as it was then
	SettingHomes   = "homes"    // nothing: it names the one timer by which Home tabs follow what changes
	SettingTrust   = "trust/"   // with an agent and a tool: how often its calls were approved as they were, in a row
	SettingRatings = "ratings/" // with an agent: what people thought of its answers; its state is the desk's Ratings
)

// Setting is a small value of the installation as a whole.
type Setting struct {
	Key     string          `json:"key"`
	Version uint64          `json:"version"`
	Value   json.RawMessage `json:"value"`
}
