package bot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/transport"
	"countersign/store"
)

// The bot declares the parts of Slack's payloads that it reads, and does not use the client library's types. So an
// unknown block or field can't make a whole delivery unreadable.

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
	Gap          *approvers.Gap `json:"gap"`                 // not from Slack: catch_up.go sets Gap for a message that the bot reads long after a person wrote the message
	LimitedSince int64          `json:"minute_rate_limited"` // for eventsLimited: the minute in which the limit began, in Unix seconds
}

// eventsLimited is the type of an envelope. With such an envelope, Slack reports that it sends no events for some time.
// The envelope contains no event.
const eventsLimited = "app_rate_limited"

// These are the types of interactions other than clicks.
const (
	interactionForm       = "view_submission"
	interactionShortcut   = "message_action"   // an entry of a message's menu
	interactionSuggestion = "block_suggestion" // a menu requests its options
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
	Group       userGroup       `json:"subteam"`
	ChannelType string          `json:"channel_type"`
	Edited      struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Message    *event          `json:"message"`          // for message_changed: the current version
	Previous   *event          `json:"previous_message"` // for message_changed and message_deleted: the previous version
	DeletedTS  string          `json:"deleted_ts"`
	Tab        string          `json:"tab"` // the opened tab, for app_home_opened
	Files      []attachment    `json:"files"`
	Assistant  assistantThread `json:"assistant_thread"`
	Context    appContext      `json:"context"`     // the viewed channel, for app_context_changed and app_home_opened
	AppContext appContext      `json:"app_context"` // the viewed channel, for direct messages
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

// userGroup is a user group in an event.
type userGroup struct {
	ID     string `json:"id"`
	Handle string `json:"handle"`
}

// interaction is a click, a form or a shortcut.
type interaction struct {
	Type        string    `json:"type"`
	App         string    `json:"api_app_id"`
	TriggerID   string    `json:"trigger_id"`
	Callback    string    `json:"callback_id"` // the callback ID of a shortcut
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
		User     string `json:"user"`
		BotID    string `json:"bot_id"`
	} `json:"message"`
	Container struct {
		Channel string `json:"channel_id"`
		Message string `json:"message_ts"`
	} `json:"container"`
}

// postedBy reports whether the bot posted the clicked message.
func (i interaction) postedBy(me directory.Self) bool {
	return i.Posted.User != "" && i.Posted.User == me.User || i.Posted.BotID != "" && i.Posted.BotID == me.Bot
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

// modalView is the view that a person submitted, or in which the person clicked.
type modalView struct {
	ID         string `json:"id"`
	Type       string `json:"type"` // modal or home
	Hash       string `json:"hash"`
	ExternalID string `json:"external_id"`
	Callback   string `json:"callback_id"`
	Metadata   string `json:"private_metadata"`
	Submit     struct {
		Text string `json:"text"`
	} `json:"submit"` // the button that was pressed
	Blocks []struct {
		ID string `json:"block_id"`
	} `json:"blocks"`
	State struct {
		Values map[string]map[string]input `json:"values"`
	} `json:"state"`
}

// modal reports whether the view is a form, and not a Home tab.
func (v modalView) modal() bool { return v.ID != "" && v.Type != "home" }

// blockIDs returns the IDs of the view's blocks.
func (v modalView) blockIDs() (ids []string) {
	for _, b := range v.Blocks {
		ids = append(ids, b.ID)
	}
	return ids
}

// answers returns the value of an input block.
func (v modalView) answers(block string) (text string, present bool) {
	for _, in := range v.State.Values[block] {
		return in.text(), true
	}
	return "", false
}

// input is the state of one input element.
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

// text returns the value of an input as text. If the input has no value, the text is empty.
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
	e.Event = e.Event.unwrapped()
	return e, nil
}

// readInteraction parses an interaction. raw is the JSON of the interaction. Over HTTP, raw is the value of the form
// field. Over a socket, raw is the payload of Slack's message.
func readInteraction(raw []byte) (i interaction, err error) {
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, fmt.Errorf("%w: %w", errPayload, err)
	}
	if i.Type == "" || i.User.ID == "" {
		return i, fmt.Errorf("%w: no type or no user in it", errPayload)
	}
	return i, i.shaped()
}

// deliveryID returns an ID that is the same for all repetitions of a delivery. parts identify the delivery: they are
// Slack's event id or, without an event id, other fields or the payload.
func deliveryID(kind store.InboxKind, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return string(kind) + ":" + hex.EncodeToString(sum[:16])
}

// messageID returns the id under which a new message, or a deletion, is stored. With this id, the bot stores a message
// only once. Slack may deliver the same message as a message event and as a mention, repeat a delivery, or return the
// message in a history. The second result is false for events without such an id. The second result is also false for
// an app_mention if the bot does not find its own mention in the text.
func (e event) messageID(self *fetchedOnce[directory.Self]) (id string, ok bool) {
	if e.deletion() {
		id, ok = e.deletionID()
		return id, ok
	}
	if e.Edited.TS != "" || e.TS == "" || e.channelID() == "" {
		return "", false
	}
	if e.Type == "app_mention" {
		if me, known := self.known(); !known || !mentions(e.Text, me.User) {
			return "", false
		}
	}
	return "message:" + e.channelID() + "/" + e.TS, e.Type == "message" || e.Type == "app_mention"
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

// The bot checks the form of the ids of people, channels and messages before it stores or uses them. For example, Slack
// would refuse every answer in a conversation with a malformed thread id, and the bot would retry the answers.

var (
	idShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	tsShape = regexp.MustCompile(`^[0-9]{1,16}(\.[0-9]{1,16})?$`)
)

// nameOfSlack is one id in a delivery, with the expected form of the id.
type nameOfSlack struct {
	field, value string
	shape        *regexp.Regexp
}

// shaped returns an error for the first malformed id. The function ignores empty ids.
func shaped(names ...nameOfSlack) error {
	for _, n := range names {
		if n.value != "" && !n.shape.MatchString(n.value) {
			return fmt.Errorf("%w: its %s %q does not have the form of Slack's ids", errPayload, n.field, cutTo(n.value, 40))
		}
	}
	return nil
}

// cutTo returns the beginning of an external text, for the log.
func cutTo(text string, n int) string {
	if len(text) > n {
		text = text[:n] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// shaped returns an error if an id in an event is malformed.
func (e envelope) shaped() error {
	ev := e.Event
	return shaped(
		nameOfSlack{"user", ev.userID(), idShape}, nameOfSlack{"channel", ev.channelID(), idShape}, nameOfSlack{"subteam", ev.Group.ID, idShape}, nameOfSlack{"ts", ev.TS, tsShape},
		nameOfSlack{"thread_ts", ev.ThreadTS, tsShape}, nameOfSlack{"event_ts", ev.At, tsShape}, nameOfSlack{"edited.ts", ev.Edited.TS, tsShape},
		nameOfSlack{"deleted_ts", ev.DeletedTS, tsShape}, nameOfSlack{"assistant_thread.user_id", ev.Assistant.User, idShape},
		nameOfSlack{"assistant_thread.channel_id", ev.Assistant.Channel, idShape}, nameOfSlack{"assistant_thread.thread_ts", ev.Assistant.Thread, tsShape},
	)
}

// shaped returns an error if an id in an interaction is malformed.
func (i interaction) shaped() error {
	return shaped(
		nameOfSlack{"user", i.User.ID, idShape}, nameOfSlack{"channel", i.Channel.ID, idShape}, nameOfSlack{"container.channel_id", i.Container.Channel, idShape},
		nameOfSlack{"container.message_ts", i.Container.Message, tsShape}, nameOfSlack{"message.ts", i.Posted.TS, tsShape},
		nameOfSlack{"message.thread_ts", i.Posted.ThreadTS, tsShape}, nameOfSlack{"view", i.View.ID, idShape},
	)
}

// shaped returns an error if an id in a slash command is malformed.
func (c command) shaped() error {
	return shaped(nameOfSlack{"user_id", c.User, idShape}, nameOfSlack{"channel_id", c.Channel, idShape})
}

// Lane returns the name of a delivery's lane, or "" if the delivery can't be read. Deliveries in the same lane are
// received and handled in order.
func (b *Receiver) Lane(d transport.Delivery) string {
	switch d.Kind {
	case store.InboxEvent:
		if e, err := readEnvelope(d.Payload); err == nil {
			return e.lane()
		}
	case store.InboxInteraction:
		if i, err := readInteraction(d.Payload); err == nil {
			return i.lane()
		}
	case store.InboxCommand:
		if c, err := readCommand(d.Payload); err == nil {
			return c.lane()
		}
	}
	return ""
}

// lane returns the lane of an event. The lane keeps the messages of one thread in order.
func (e envelope) lane() string {
	if e.Event.homeOpened() || e.Event.Type == userChange {
		return personLane(e.Event.userID())
	}
	if e.Event.aboutGroup() {
		return "group:" + e.Event.Group.ID
	}
	return "thread:" + e.Event.channelID() + "/" + e.Event.thread()
}

func (i interaction) lane() string { return personLane(i.User.ID) }

func (c command) lane() string { return personLane(c.User) }

// personLane returns the lane that keeps a person's clicks and commands in order.
func personLane(user string) string { return "person:" + user }

// origin has the app for which a delivery is meant, and the workspaces and enterprises from which it comes. A message
// in a channel of two organisations names both organisations.
type origin struct {
	app         string
	teams       []string
	enterprises []string
}

func (e envelope) origin() origin {
	o := origin{app: e.App, teams: []string{e.Team, e.ContextTeam}, enterprises: []string{e.Enterprise, e.ContextEnterprise}}
	for _, a := range e.Authorizations {
		o.teams, o.enterprises = append(o.teams, a.Team), append(o.enterprises, a.Enterprise)
	}
	return o
}

func (i interaction) origin() origin {
	return origin{app: i.App, teams: []string{i.Team.ID}, enterprises: []string{i.Enterprise.ID}}
}

func (c command) origin() origin {
	return origin{app: c.App, teams: []string{c.Team}, enterprises: []string{c.Enterprise}}
}
