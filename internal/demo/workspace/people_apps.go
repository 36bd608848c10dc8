package workspace

import (
	"encoding/json"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

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
	u, failed := s.me(p)
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
		ch, failed := s.memberChannel(u, p.text("channel"))
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
	delete(out, "api_app_id") // which Slack tells of with every other interaction
	out["callback_id"], out["trigger_id"], out["action_ts"] = callback, trigger, s.nextTS()
	return wire.Encode(out), trigger, nil
}

// openHome is GET /people/{user}/home.
func (s *Server) openHome(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.dmFor(u, s.botUser)
	if failed != nil {
		return nil, failed
	}
	event := object{"type": "app_home_opened", "user": u.ID, "channel": ch.ID, "tab": "home"}
	out := object{"view": nil}
	if home := s.homes[u.ID]; home != nil {
		event["view"], out["view"] = home.json(s), home.json(s)
	}
	if !p.flag("quiet") {
		s.emit("app_home_opened", event)
	}
	return out, nil
}
