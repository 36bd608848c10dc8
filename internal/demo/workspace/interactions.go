package workspace

import (
	"encoding/json"
	"errors"
	"net/http"

	"countersign/internal/demo/workspace/delivery"
)

// interactions sends people's actions to the app, and describes the actions as Slack does.
type interactions struct {
	*core
	responseURLs *responseURLs
}

// ask sends an interaction and waits for the app. The caller must not hold the lock.
func (i *interactions) ask(kind string, payload json.RawMessage) (json.RawMessage, *apiError) {
	answer, err := i.hub.Ask(kind, payload)
	if errors.Is(err, delivery.ErrNoAnswer) {
		return nil, refuse("app_did_not_respond")
	}
	return answer, nil
}

// payload returns the fields that all interaction payloads share.
func (i *interactions) payload(kind string, u *user) object {
	return object{
		"type": kind, "api_app_id": i.app.ID, "token": "local-workspace", "enterprise": nil, "is_enterprise_install": false,
		"team": object{"id": i.team.ID, "domain": i.team.Domain},
		"user": object{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.Team},
	}
}

// channelRef returns a channel in the form that interaction payloads use.
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

// addMessage adds the fields of an interaction with a message: its place, the message, and a response URL. An
// ephemeral message itself is not in the payload, because Slack doesn't keep ephemeral messages.
func (i *interactions) addMessage(r *http.Request, p object, u *user, ch *channel, m *message) {
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
	p["response_url"] = i.responseURLs.create(i.appBase(r), responseURL{user: u.ID, channel: ch.ID, ts: m.TS, threadTS: thread})
}

// addView adds the fields of an interaction with a view.
func (i *interactions) addView(p object, v *view) {
	p["container"] = object{"type": "view", "view_id": v.ID}
	p["view"] = v.json(i.core)
}
