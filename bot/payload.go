package bot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"countersign/store"
)

// The bot declares the parts of Slack's payloads that it reads. A new block or field that the client library does not
// know therefore can't make a whole delivery unreadable.

// envelope is the outer part of an event.
type envelope struct {
	Type              string `json:"type"`
	EventID           string `json:"event_id"`
	App               string `json:"api_app_id"`
	Team              string `json:"team_id"`
	Enterprise        string `json:"enterprise_id"`
	Event             event  `json:"event"`
	ContextTeam       string `json:"context_team_id"`
	ContextEnterprise string `json:"context_enterprise_id"`
	Authorizations    []struct {
		Team       string `json:"team_id"`
		Enterprise string `json:"enterprise_id"`
	} `json:"authorizations"` // installations of the app that receive the event
	LimitedSince int64 `json:"minute_rate_limited"` // for eventsLimited: the minute in which it began, in Unix seconds
}

// eventsLimited says that Slack temporarily sends no events. It contains no event.
const eventsLimited = "app_rate_limited"

// Types of interactions other than clicks.
const (
	interactionForm       = "view_submission"
	interactionShortcut   = "message_action"   // an entry of a message's menu
	interactionSuggestion = "block_suggestion" // a menu asks for its options
)

// event is the inner part of an event.
type event struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	User        json.RawMessage `json:"user"` // an id, or the whole user object
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	At          string          `json:"event_ts"`
	Channel     json.RawMessage `json:"channel"` // an id, or the whole channel object
	ChannelType string          `json:"channel_type"`
	Edited      struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Message    *event          `json:"message"`          // for message_changed: the current version
	Previous   *event          `json:"previous_message"` // for message_changed and message_deleted: the previous version
	DeletedTS  string          `json:"deleted_ts"`
	Tab        string          `json:"tab"` // for app_home_opened
	Files      []attachment    `json:"files"`
	Assistant  assistantThread `json:"assistant_thread"`
	Context    appContext      `json:"context"`     // the viewed channel, for app_context_changed and app_home_opened
	AppContext appContext      `json:"app_context"` // the same, for direct messages
}

func (e event) userID() string    { return idIn(e.User) }
func (e event) channelID() string { return idIn(e.Channel) }

// idIn reads an id, either plain or inside an object.
func idIn(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	var whole struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &whole) != nil {
		return ""
	}
	return whole.ID
}

// interaction is a click, a form or a shortcut.
type interaction struct {
	Type        string    `json:"type"`
	App         string    `json:"api_app_id"`
	TriggerID   string    `json:"trigger_id"`
	Callback    string    `json:"callback_id"` // for shortcuts
	ResponseURL string    `json:"response_url"`
	User        named     `json:"user"`
	Team        named     `json:"team"`
	Enterprise  named     `json:"enterprise"`
	Channel     named     `json:"channel"`
	Actions     []action  `json:"actions"`
	View        modalView `json:"view"`
	Posted      struct {
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Container struct {
		Channel string `json:"channel_id"`
		Message string `json:"message_ts"`
	} `json:"container"`
}

type named struct {
	ID string `json:"id"`
}

// action is the clicked element.
type action struct {
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id"`
	Value    string `json:"value"`
	ActionTS string `json:"action_ts"`
}

// modalView is the view that was submitted or clicked in.
type modalView struct {
	ID         string `json:"id"`
	Type       string `json:"type"` // modal or home
	Hash       string `json:"hash"`
	ExternalID string `json:"external_id"`
	Callback   string `json:"callback_id"`
	Metadata   string `json:"private_metadata"`
	State      struct {
		Values map[string]map[string]input `json:"values"`
	} `json:"state"`
}

// modal reports whether the view is a form, and not a Home tab.
func (v modalView) modal() bool { return v.ID != "" && v.Type != "home" }

// answers returns the value of a block.
func (v modalView) answers(block string) (text string, present bool) {
	for _, in := range v.State.Values[block] {
		return in.text(), true
	}
	return "", false
}

// input is the state of one input.
type input struct {
	Type     string  `json:"type"`
	Value    *string `json:"value"`
	Date     *string `json:"selected_date"`
	Moment   *int64  `json:"selected_date_time"` // in Unix seconds
	User     *string `json:"selected_user"`
	Selected *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	Many []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
}

// text returns the value of an input as text. It is empty if there is none.
func (i input) text() string {
	switch {
	case i.Value != nil:
		return *i.Value
	case i.Date != nil:
		return *i.Date
	case i.User != nil:
		return *i.User
	case i.Moment != nil:
		return strconv.FormatInt(*i.Moment, 10)
	case i.Selected != nil:
		return i.Selected.Value
	}
	var chosen []string
	for _, one := range i.Many {
		chosen = append(chosen, one.Value)
	}
	return strings.Join(chosen, ",")
}

// message returns the channel and ts of the clicked message.
func (i interaction) message() (channel, ts string) {
	channel, ts = i.Container.Channel, i.Container.Message
	if channel == "" {
		channel = i.Channel.ID
	}
	if ts == "" {
		ts = i.Posted.TS
	}
	return channel, ts
}

var errPayload = errors.New("the payload can't be read")

func readEnvelope(raw []byte) (e envelope, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("%w: %w", errPayload, err)
	}
	if e.Event.Type == "" && e.Type != eventsLimited {
		return e, fmt.Errorf("%w: no event in it", errPayload)
	}
	e.Event = e.Event.plain()
	return e, nil
}

// readInteraction parses an interaction. raw is the JSON: the form field's value over HTTP, the payload over a socket.
func readInteraction(raw []byte) (i interaction, err error) {
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, fmt.Errorf("%w: %w", errPayload, err)
	}
	if i.Type == "" || i.User.ID == "" {
		return i, fmt.Errorf("%w: no type or no user in it", errPayload)
	}
	return i, i.shaped()
}

// deliveryID returns an ID that identifies repeated deliveries. For events parts is Slack's id; otherwise it is the
// fields that make the delivery unique.
func deliveryID(kind store.InboxKind, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return string(kind) + ":" + hex.EncodeToString(sum[:16])
}

func (i interaction) id(raw []byte) string {
	if i.TriggerID == "" {
		return deliveryID(store.InboxInteraction, string(bytes.TrimSpace(raw)))
	}
	parts := []string{i.Type, i.User.ID, i.TriggerID, i.View.ID, i.View.Hash}
	for _, a := range i.Actions {
		parts = append(parts, a.ActionID, a.BlockID, a.ActionTS)
	}
	return deliveryID(store.InboxInteraction, parts...)
}

func (e event) dm() bool {
	return e.ChannelType == "im" || e.ChannelType == "" && strings.HasPrefix(e.channelID(), "D")
}
