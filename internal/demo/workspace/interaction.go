package workspace

import (
	"net/http"

	"countersign/internal/demo/workspace/blockkit"
)

// interaction begins the payload of anything that a person does with the app.
func (s *Server) interaction(kind string, u *user) object {
	return object{
		"type": kind, "api_app_id": s.app.ID, "token": "local-workspace", "enterprise": nil, "is_enterprise_install": false,
		"team": object{"id": s.team.ID, "domain": s.team.Domain},
		"user": object{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.Team},
	}
}

// channelRef is how interactions name a channel.
func channelRef(ch *channel) object {
	name := ch.Name
	switch {
	case ch.IM:
		name = "directmessage"
	case ch.Private:
		name = "privategroup"
	}
	return object{"id": ch.ID, "name": name}
}

// onMessagePayload fills in what an interaction with a message has: where it is, the
// message itself (not for ephemerals, which Slack doesn't keep), and a response URL.
func (s *Server) onMessagePayload(r *http.Request, p object, u *user, ch *channel, m *message) {
	container := object{"type": "message", "message_ts": m.TS, "channel_id": ch.ID, "is_ephemeral": m.EphemeralTo != ""}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	p["container"], p["channel"] = container, channelRef(ch)
	if m.EphemeralTo == "" {
		p["message"] = ch.threadJSON(m)
	}
	thread := ""
	if m.reply() {
		thread = m.ThreadTS
	}
	p["response_url"] = s.newResponseURL(s.appBase(r), responseURL{user: u.ID, channel: ch.ID, ts: m.TS, threadTS: thread})
}

// inViewPayload fills in what an interaction with a view has.
func (s *Server) inViewPayload(p object, v *view) {
	p["container"] = object{"type": "view", "view_id": v.ID}
	p["view"] = v.json(s)
}

// pressed is the action of a block_actions payload.
func pressed(p blockkit.Placed, state object, ts string) object {
	out := object{"action_id": p.Element["action_id"], "block_id": p.BlockID, "type": p.Element["type"], "action_ts": ts}
	for _, key := range []string{"text", "value", "style", "placeholder", "initial_option", "initial_options", "initial_date", "initial_time", "initial_user", "initial_channel", "initial_conversation", "confirm", "icon"} {
		if v := p.Element[key]; v != nil {
			out[key] = v
		}
	}
	for key, v := range state {
		out[key] = v
	}
	return out
}
