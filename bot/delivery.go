package bot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign/store"
)

// These are the parts of Slack's payloads that the bot reads. They are its own, so that a block or a field that is new to
// the client library never makes a whole delivery unreadable.

// envelope is the outer part of an event.
type envelope struct {
	EventID string `json:"event_id"`
	Team    string `json:"team_id"`
	Event   event  `json:"event"`
}

// event is the inner part.
type event struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	User        json.RawMessage `json:"user"` // an id, or the whole user
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Channel     json.RawMessage `json:"channel"` // an id, or the whole channel
	ChannelType string          `json:"channel_type"`
	Files       []struct {
		Name string `json:"name"`
	} `json:"files"`
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
	TriggerID   string   `json:"trigger_id"`
	ResponseURL string   `json:"response_url"`
	User        named    `json:"user"`
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
	Hash       string `json:"hash"`
	ExternalID string `json:"external_id"`
	Callback   string `json:"callback_id"`
	Metadata   string `json:"private_metadata"`
	State      struct {
		Values map[string]map[string]input `json:"values"`
	} `json:"state"`
}

// input is what was filled in.
type input struct {
	Type     string  `json:"type"`
	Value    *string `json:"value"`
	Date     *string `json:"selected_date"`
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
	case i.Selected != nil:
		return i.Selected.Value
	}
	return ""
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
	if e.Event.Type == "" {
		return e, fmt.Errorf("%w: no event in it", errPayload)
	}
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

// lane keeps what belongs together in order: the messages of one thread.
func (e envelope) lane() string {
	thread := e.Event.ThreadTS
	if thread == "" && !e.Event.dm() {
		thread = e.Event.TS
	}
	return "thread:" + e.Event.channelID() + "/" + thread
}

func (e event) dm() bool {
	return e.ChannelType == "im" || e.ChannelType == "" && strings.HasPrefix(e.channelID(), "D")
}

// lane keeps one person's clicks in order.
func (i interaction) lane() string { return personLane(i.User.ID) }

func personLane(user string) string { return "person:" + user }
