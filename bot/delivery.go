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

// These are the parts of Slack's payloads that the bot reads. They are its own, so that a block or a field that is new to
// the client library never makes a whole delivery unreadable.

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
	} `json:"authorizations"` // where the app hears it
	LimitedSince int64 `json:"minute_rate_limited"` // of eventsLimited: the minute in which it began, in Unix seconds
}

// eventsLimited says that Slack sends no events for a while. It bears none.
const eventsLimited = "app_rate_limited"

// What an interaction may be, besides a click.
const (
	interactionForm       = "view_submission"
	interactionShortcut   = "message_action"   // an entry of a message's menu
	interactionSuggestion = "block_suggestion" // a menu asks for its options
)

// event is the inner part.
type event struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	User        json.RawMessage `json:"user"` // an id, or the whole user
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	At          string          `json:"event_ts"`
	Channel     json.RawMessage `json:"channel"` // an id, or the whole channel
	ChannelType string          `json:"channel_type"`
	Edited      struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Message    *event          `json:"message"`          // of message_changed: as it is now
	Previous   *event          `json:"previous_message"` // of message_changed and message_deleted: as it was
	DeletedTS  string          `json:"deleted_ts"`
	Tab        string          `json:"tab"` // of app_home_opened
	Files      []attachment    `json:"files"`
	Assistant  assistantThread `json:"assistant_thread"`
	Context    appContext      `json:"context"`     // what they look at: of app_context_changed and app_home_opened
	AppContext appContext      `json:"app_context"` // the same, of a direct message
}

func (e event) userID() string    { return idIn(e.User) }
func (e event) channelID() string { return idIn(e.Channel) }

// idIn reads an id that stands alone or inside an object.
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

// interaction is a click or a submitted form.
type interaction struct {
	Type        string   `json:"type"`
	App         string   `json:"api_app_id"`
	TriggerID   string   `json:"trigger_id"`
	Callback    string   `json:"callback_id"` // of a shortcut
	ResponseURL string   `json:"response_url"`
	User        named    `json:"user"`
	Team        named    `json:"team"`
	Enterprise  named    `json:"enterprise"`
	Channel     named    `json:"channel"`
	Actions     []action `json:"actions"`
	View        view     `json:"view"`
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

// action is what was clicked.
type action struct {
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id"`
	Value    string `json:"value"`
	ActionTS string `json:"action_ts"`
}

// view is the modal that was submitted or clicked in.
type view struct {
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

// modal reports whether it is a form, and not somebody's Home tab.
func (v view) modal() bool { return v.ID != "" && v.Type != "home" }

// input is what was filled in.
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

// text is what was filled in, as text; empty where nothing was.
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

// message is the channel and ts of the message that was clicked.
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

// readInteraction reads an interaction. Over HTTP it comes in a form field, over a socket as it is; raw is the JSON.
func readInteraction(raw []byte) (i interaction, err error) {
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, fmt.Errorf("%w: %w", errPayload, err)
	}
	if i.Type == "" || i.User.ID == "" {
		return i, fmt.Errorf("%w: no type or no user in it", errPayload)
	}
	return i, nil
}

// deliveryID names a delivery, so that the same one is known when it comes again: events by Slack's id, everything else by
// what makes it unique.
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

// lane keeps what belongs together in order: the messages of one thread, and what one person does.
func (e envelope) lane() string {
	if e.Event.homeOpened() {
		return personLane(e.Event.userID())
	}
	return "thread:" + e.Event.channelID() + "/" + e.Event.thread()
}

func (e event) dm() bool {
	return e.ChannelType == "im" || e.ChannelType == "" && strings.HasPrefix(e.channelID(), "D")
}

// lane keeps one person's clicks in order.
func (i interaction) lane() string { return personLane(i.User.ID) }

func personLane(user string) string { return "person:" + user }
