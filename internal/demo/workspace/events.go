package workspace

import (
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// events sends events to the app. The app gets only the events that its subscriptions and scopes cover.
type events struct {
	*core
	channels *channels
	scopes   *scopes
}

// emit sends an event to the app if the app subscribed to it. name is the name of the subscription, such as
// "message.channels". The name of a subscription to messages differs from the type of the event.
func (e *events) emit(name string, event object) {
	if len(e.app.Events) > 0 && !slices.Contains(e.app.Events, name) || !e.scopes.mayReceive(name) {
		return
	}
	now := e.cfg.Now()
	if _, set := event["event_ts"]; !set {
		event["event_ts"] = e.nextTS()
	}
	e.hub.Event(wire.Encode(object{
		"token": "local-workspace", "team_id": e.team.ID, "context_team_id": e.team.ID, "context_enterprise_id": nil,
		"api_app_id": e.app.ID, "event": event, "type": "event_callback", "event_id": wire.NewID("Ev"), "event_time": now.Unix(),
		"authorizations": []object{{
			"enterprise_id": nil, "team_id": e.team.ID, "user_id": e.botUser.ID, "is_bot": true, "is_enterprise_install": false,
		}},
		"is_ext_shared_channel": e.sharedChannel(event), "event_context": wire.NewID("4-"),
	}))
}

// sharedChannel reports whether an event happened in a channel that is shared with another organization.
func (e *events) sharedChannel(event object) bool {
	id, _ := event["channel"].(string)
	ch := e.channels.byID[id]
	return ch != nil && ch.Shared
}

// subscription returns the name under which an app subscribes to the messages of a channel.
func subscription(ch *channel) string {
	switch ch.kind() {
	case "im":
		return "message.im"
	case "mpim":
		return "message.mpim"
	case "group":
		return "message.groups"
	}
	return "message.channels"
}

// sendMessageEvents notifies the app of a new message if the app is in the channel. The app is also notified of its own
// messages. As in Slack, a mention outside of DMs causes a second event.
func (e *events) sendMessageEvents(ch *channel, m *message) {
	if !ch.has(e.botUser.ID) {
		return
	}
	event := m.json()
	event["channel"], event["channel_type"], event["event_ts"] = ch.ID, ch.kind(), m.TS
	if m.reply() {
		if parent := ch.byTS[m.ThreadTS]; parent != nil {
			event["parent_user_id"] = parent.User
			if m.Subtype == "thread_broadcast" {
				event["root"] = ch.threadJSON(parent)
			}
		}
	}
	if m.Team != "" && m.Team != e.team.ID {
		event["user_team"], event["source_team"] = m.Team, m.Team
	}
	e.emit(subscription(ch), event)
	e.sendFileShared(ch, m)
	if m.Subtype != "channel_join" {
		e.sendMention(ch, m)
	}
}

// sendMention notifies the app of a mention in a new or an edited message.
func (e *events) sendMention(ch *channel, m *message) {
	mentioned := strings.Contains(m.Text, "<@"+e.botUser.ID+">") || strings.Contains(m.Text, "<@"+e.botUser.ID+"|")
	if !mentioned || ch.IM || m.BotID == e.app.BotID || !ch.has(e.botUser.ID) {
		return
	}
	mention := m.json()
	delete(mention, "subtype")
	mention["type"], mention["channel"], mention["event_ts"] = "app_mention", ch.ID, m.TS
	e.emit("app_mention", mention)
}

// sendMessageChanged notifies the app of an edited message, even if the app itself made the edit.
func (e *events) sendMessageChanged(ch *channel, before, m *message) {
	if !ch.has(e.botUser.ID) {
		return
	}
	now := e.nextTS()
	e.emit(subscription(ch), object{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": ch.ID, "channel_type": ch.kind(),
		"ts": now, "event_ts": now, "message": ch.threadJSON(m), "previous_message": before.json(),
	})
}

func (e *events) sendMessageDeleted(ch *channel, before *message) {
	if !ch.has(e.botUser.ID) {
		return
	}
	now := e.nextTS()
	e.emit(subscription(ch), object{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": ch.ID, "channel_type": ch.kind(),
		"ts": now, "event_ts": now, "deleted_ts": before.TS, "previous_message": before.json(),
	})
}

// sendFileShared sends the additional events that Slack sends for a message with files.
func (e *events) sendFileShared(ch *channel, m *message) {
	for _, f := range m.Files {
		e.emit("file_shared", object{"type": "file_shared", "file_id": f["id"], "user_id": m.User, "file": object{"id": f["id"]}, "channel_id": ch.ID})
	}
}

// sendChannelEvent notifies the app and the people of an event that concerns the channel as a whole.
func (e *events) sendChannelEvent(ch *channel, what string, event object) {
	e.feed.send(change{Type: "channel", Channel: ch.ID, only: e.channels.audience(ch)})
	if ch.Private && !ch.has(e.botUser.ID) {
		return
	}
	event["type"], event["channel"] = ch.eventNamed(what), ch.ID
	e.emit(ch.eventNamed(what), event)
}
