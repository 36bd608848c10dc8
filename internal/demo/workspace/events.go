package workspace

import (
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// emit sends an event to the app if the app subscribed to it. name is the name of the subscription, such as
// "message.channels". The name of a subscription to messages differs from the type of the event.
func (s *Server) emit(name string, event object) {
	if len(s.app.Events) > 0 && !slices.Contains(s.app.Events, name) || !s.mayReceive(name) {
		return
	}
	now := s.cfg.Now()
	if _, set := event["event_ts"]; !set {
		event["event_ts"] = s.nextTS()
	}
	s.hub.Event(wire.Encode(object{
		"token": "local-workspace", "team_id": s.team.ID, "context_team_id": s.team.ID, "context_enterprise_id": nil,
		"api_app_id": s.app.ID, "event": event, "type": "event_callback", "event_id": wire.NewID("Ev"), "event_time": now.Unix(),
		"authorizations": []object{{
			"enterprise_id": nil, "team_id": s.team.ID, "user_id": s.botUser.ID, "is_bot": true, "is_enterprise_install": false,
		}},
		"is_ext_shared_channel": s.sharedChannel(event), "event_context": wire.NewID("4-"),
	}))
}

// sharedChannel reports whether an event happened in a channel that is shared with another organization.
func (s *Server) sharedChannel(event object) bool {
	id, _ := event["channel"].(string)
	ch := s.channels[id]
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
func (s *Server) sendMessageEvents(ch *channel, m *message) {
	if !ch.has(s.botUser.ID) {
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
	if m.Team != "" && m.Team != s.team.ID {
		event["user_team"], event["source_team"] = m.Team, m.Team
	}
	s.emit(subscription(ch), event)
	s.sendFileShared(ch, m)
	if m.Subtype != "channel_join" {
		s.sendMention(ch, m)
	}
}

// sendMention notifies the app of a mention in a new or an edited message.
func (s *Server) sendMention(ch *channel, m *message) {
	mentioned := strings.Contains(m.Text, "<@"+s.botUser.ID+">") || strings.Contains(m.Text, "<@"+s.botUser.ID+"|")
	if !mentioned || ch.IM || m.BotID == s.app.BotID || !ch.has(s.botUser.ID) {
		return
	}
	mention := m.json()
	delete(mention, "subtype")
	mention["type"], mention["channel"], mention["event_ts"] = "app_mention", ch.ID, m.TS
	s.emit("app_mention", mention)
}

// sendMessageChanged notifies the app of an edited message, even if the app itself made the edit.
func (s *Server) sendMessageChanged(ch *channel, before, m *message) {
	if !ch.has(s.botUser.ID) {
		return
	}
	now := s.nextTS()
	s.emit(subscription(ch), object{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": ch.ID, "channel_type": ch.kind(),
		"ts": now, "event_ts": now, "message": ch.threadJSON(m), "previous_message": before.json(),
	})
}

func (s *Server) sendMessageDeleted(ch *channel, before *message) {
	if !ch.has(s.botUser.ID) {
		return
	}
	now := s.nextTS()
	s.emit(subscription(ch), object{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": ch.ID, "channel_type": ch.kind(),
		"ts": now, "event_ts": now, "deleted_ts": before.TS, "previous_message": before.json(),
	})
}
