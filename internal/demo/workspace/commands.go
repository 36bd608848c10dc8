package workspace

import (
	"encoding/json"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

// runCommand is POST /people/{user}/commands.
func (s *Server) runCommand(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payload, u, ch, failed := s.commandPayload(p)
	s.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	answer, failed := s.askApp("slash_commands", payload)
	if failed != nil {
		return nil, failed
	}
	if len(answer) == 0 {
		return object{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, failed := s.commandAnswer(u, ch, answer)
	if failed != nil {
		return nil, failed
	}
	return object{"message": m.json()}, nil
}

func (s *Server) commandPayload(p *personCall) (json.RawMessage, *user, *channel, *apiError) {
	u, ch, failed := s.channels.inChannel(p)
	if failed != nil {
		return nil, nil, nil, failed
	}
	i := slices.IndexFunc(s.app.Commands, func(c SeedCommand) bool { return c.Command == p.text("command") })
	switch {
	case p.text("thread_ts") != "":
		return nil, nil, nil, refuse("command_in_thread")
	case i < 0:
		return nil, nil, nil, refuse("unknown_command")
	case ch.Archived:
		return nil, nil, nil, refuse("is_archived")
	}
	command, text := s.app.Commands[i], p.text("text")
	if command.ShouldEscape {
		text = s.notation.withNames(s.notation.typed(text))
	}
	return wire.Encode(object{
		"token": "local-workspace", "team_id": s.team.ID, "team_domain": s.team.Domain, "channel_id": ch.ID,
		"channel_name": channelRef(ch)["name"], "user_id": u.ID, "user_name": u.Name, "command": command.Command, "text": text,
		"api_app_id": s.app.ID, "is_enterprise_install": "false", "trigger_id": s.newTrigger(u.ID, ""),
		"response_url": s.newResponseURL(s.appBase(p.r), responseURL{user: u.ID, channel: ch.ID}),
	}), u, ch, nil
}

// commandAnswer posts the message in the app's acknowledgement of a command. If the response_type is in_channel, all
// members see the message. In all other cases, only the person who sent the command sees it.
func (s *Server) commandAnswer(u *user, ch *channel, answer json.RawMessage) (*message, *apiError) {
	decoded, err := wire.Decode(answer)
	body, ok := decoded.(object)
	if text, isText := decoded.(string); isText {
		body, ok = object{"text": text}, true
	}
	if err != nil || !ok {
		return nil, refuse("invalid_app_response", "a command is answered with a message")
	}
	what, failed := s.contents.read(arguments{values: body}, maxPostText, true)
	if failed == nil && what.empty() {
		failed = refuse("no_text")
	}
	if failed != nil {
		s.log.Warn("the app's answer to a command is not valid", "error", failed.code, "details", failed.details)
		return nil, refuse("invalid_app_response", append([]string{failed.code}, failed.details...)...)
	}
	m := s.messages.botMessage(what)
	if body["response_type"] == "in_channel" {
		s.messages.publish(ch, m)
	} else {
		s.messages.showEphemeral(ch, m, u.ID)
	}
	return m, nil
}

// runShortcut is POST /people/{user}/shortcuts.
func (s *Server) runShortcut(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payload, trigger, failed := s.shortcutPayload(p)
	s.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if _, failed := s.askApp("interactive", payload); failed != nil {
		return nil, failed
	}
	return object{"trigger_id": trigger}, nil
}

func (s *Server) shortcutPayload(p *personCall) (json.RawMessage, string, *apiError) {
	u, failed := s.accounts.me(p)
	if failed != nil {
		return nil, "", failed
	}
	kind := "global"
	if p.text("ts") != "" {
		kind = "message"
	}
	callback := p.text("callback_id")
	if !slices.ContainsFunc(s.app.Shortcuts, func(c SeedShortcut) bool { return c.CallbackID == callback && c.Type == kind }) {
		return nil, "", refuse("unknown_shortcut")
	}
	trigger := s.newTrigger(u.ID, "")
	out := s.interaction("shortcut", u)
	if kind == "message" {
		ch, failed := s.channels.memberChannel(u, p.text("channel"))
		if failed != nil {
			return nil, "", failed
		}
		m := ch.byTS[p.text("ts")]
		if m == nil {
			return nil, "", refuse("message_not_found")
		}
		s.onMessagePayload(p.r, out, u, ch, m)
		delete(out, "container")
		out["type"], out["message_ts"] = "message_action", m.TS
	}
	delete(out, "api_app_id") // Slack sends this field with all interactions except shortcuts
	out["callback_id"], out["trigger_id"], out["action_ts"] = callback, trigger, s.nextTS()
	return wire.Encode(out), trigger, nil
}
