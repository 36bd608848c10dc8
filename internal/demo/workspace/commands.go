package workspace

import (
	"encoding/json"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

// commands runs slash commands and shortcuts.
type commands struct {
	*core
	accounts     *accounts
	channels     *channels
	notation     *notation
	contents     *contentReader
	messages     *messages
	triggers     *triggers
	responseURLs *responseURLs
	interactions *interactions
}

// run is POST /people/{user}/commands.
func (cm *commands) run(p *personCall) (object, *apiError) {
	cm.mu.Lock()
	payload, u, ch, failed := cm.payload(p)
	cm.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	answer, failed := cm.interactions.ask("slash_commands", payload)
	if failed != nil {
		return nil, failed
	}
	if len(answer) == 0 {
		return object{}, nil
	}
	cm.mu.Lock()
	defer cm.mu.Unlock()
	m, failed := cm.answer(u, ch, answer)
	if failed != nil {
		return nil, failed
	}
	return object{"message": m.json()}, nil
}

func (cm *commands) payload(p *personCall) (json.RawMessage, *user, *channel, *apiError) {
	u, ch, failed := cm.channels.inChannel(p)
	if failed != nil {
		return nil, nil, nil, failed
	}
	i := slices.IndexFunc(cm.app.Commands, func(c SeedCommand) bool { return c.Command == p.text("command") })
	switch {
	case p.text("thread_ts") != "":
		return nil, nil, nil, refuse("command_in_thread")
	case i < 0:
		return nil, nil, nil, refuse("unknown_command")
	case ch.Archived:
		return nil, nil, nil, refuse("is_archived")
	}
	command, text := cm.app.Commands[i], p.text("text")
	if command.ShouldEscape {
		text = cm.notation.withNames(cm.notation.typed(text))
	}
	return wire.Encode(object{
		"token": "local-workspace", "team_id": cm.team.ID, "team_domain": cm.team.Domain, "channel_id": ch.ID,
		"channel_name": channelRef(ch)["name"], "user_id": u.ID, "user_name": u.Name, "command": command.Command, "text": text,
		"api_app_id": cm.app.ID, "is_enterprise_install": "false", "trigger_id": cm.triggers.create(u.ID, ""),
		"response_url": cm.responseURLs.create(cm.appBase(p.r), responseURL{user: u.ID, channel: ch.ID}),
	}), u, ch, nil
}

// answer posts the message in the app's acknowledgement of a command. If the response_type is in_channel, all
// members see the message. In all other cases, only the person who sent the command sees it.
func (cm *commands) answer(u *user, ch *channel, answer json.RawMessage) (*message, *apiError) {
	decoded, err := wire.Decode(answer)
	body, ok := decoded.(object)
	if text, isText := decoded.(string); isText {
		body, ok = object{"text": text}, true
	}
	if err != nil || !ok {
		return nil, refuse("invalid_app_response", "a command is answered with a message")
	}
	what, failed := cm.contents.read(arguments{values: body}, maxPostText, true)
	if failed == nil && what.empty() {
		failed = refuse("no_text")
	}
	if failed != nil {
		cm.log.Warn("the app's answer to a command is not valid", "error", failed.code, "details", failed.details)
		return nil, refuse("invalid_app_response", append([]string{failed.code}, failed.details...)...)
	}
	m := cm.messages.botMessage(what)
	if body["response_type"] == "in_channel" {
		cm.messages.publish(ch, m)
	} else {
		cm.messages.showEphemeral(ch, m, u.ID)
	}
	return m, nil
}

// runShortcut is POST /people/{user}/shortcuts.
func (cm *commands) runShortcut(p *personCall) (object, *apiError) {
	cm.mu.Lock()
	payload, trigger, failed := cm.shortcutPayload(p)
	cm.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if _, failed := cm.interactions.ask("interactive", payload); failed != nil {
		return nil, failed
	}
	return object{"trigger_id": trigger}, nil
}

func (cm *commands) shortcutPayload(p *personCall) (json.RawMessage, string, *apiError) {
	u, failed := cm.accounts.me(p)
	if failed != nil {
		return nil, "", failed
	}
	kind := "global"
	if p.text("ts") != "" {
		kind = "message"
	}
	callback := p.text("callback_id")
	if !slices.ContainsFunc(cm.app.Shortcuts, func(c SeedShortcut) bool { return c.CallbackID == callback && c.Type == kind }) {
		return nil, "", refuse("unknown_shortcut")
	}
	trigger := cm.triggers.create(u.ID, "")
	out := cm.interactions.payload("shortcut", u)
	if kind == "message" {
		ch, failed := cm.channels.memberChannel(u, p.text("channel"))
		if failed != nil {
			return nil, "", failed
		}
		m := ch.byTS[p.text("ts")]
		if m == nil {
			return nil, "", refuse("message_not_found")
		}
		cm.interactions.addMessage(p.r, out, u, ch, m)
		delete(out, "container")
		out["type"], out["message_ts"] = "message_action", m.TS
	}
	delete(out, "api_app_id") // Slack sends this field with all interactions except shortcuts
	out["callback_id"], out["trigger_id"], out["action_ts"] = callback, trigger, cm.nextTS()
	return wire.Encode(out), trigger, nil
}
