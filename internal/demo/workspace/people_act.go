package workspace

import (
	"encoding/json"
	"errors"
	"strings"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspace/wire"
)

// act is POST /people/{user}/actions: a press or a choice in a message, a modal or the
// App Home. It answers when the app has acknowledged.
func (s *Server) act(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payload, trigger, failed := s.actionPayload(p)
	s.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if payload == nil { // an input that keeps to itself until its form is submitted
		return object{}, nil
	}
	if _, failed := s.askApp("interactive", payload); failed != nil {
		return nil, failed
	}
	return object{"trigger_id": trigger}, nil
}

// askApp sends an interaction and waits for the app, without any lock.
func (s *Server) askApp(kind string, payload json.RawMessage) (json.RawMessage, *apiError) {
	answer, err := s.hub.Ask(kind, payload)
	if errors.Is(err, delivery.ErrNoAnswer) {
		return nil, refuse("app_did_not_respond")
	}
	return answer, nil
}

func (s *Server) actionPayload(p *personCall) (payload json.RawMessage, trigger string, failed *apiError) {
	u, failed := s.me(p)
	if failed != nil {
		return nil, "", failed
	}
	where, failed := s.actedOn(p, u)
	if failed != nil {
		return nil, "", failed
	}
	target, ok := blockkit.Find(where.blocks, p.text("action_id"), p.text("block_id"))
	if !ok || !shownTo(target.Element, u.ID) {
		return nil, "", refuse("unknown_action")
	}
	state, failed := s.choice(p, u, where, target)
	if failed != nil {
		return nil, "", failed
	}
	if target.Block["type"] == "input" && target.Block["dispatch_action"] != true {
		return nil, "", nil
	}
	ts := s.nextTS()
	out := s.interaction("block_actions", u)
	if where.view != nil {
		trigger = s.newTrigger(u.ID, where.view.ID)
		s.inViewPayload(out, where.view)
	} else {
		trigger = s.newTrigger(u.ID, "")
		s.onMessagePayload(p.r, out, u, where.channel, where.message)
		out["state"] = object{"values": s.messageState(where, u.ID)}
	}
	out["trigger_id"], out["actions"] = trigger, []object{pressed(target, state, ts)}
	return wire.Encode(out), trigger, nil
}

// choice is what the person pressed or chose, as the action's own fields. What has a
// state keeps it.
func (s *Server) choice(p *personCall, u *user, where acted, target blockkit.Placed) (object, *apiError) {
	e := target.Element
	value, given := p.values["value"]
	switch target.Kind() {
	case "button", "icon_button", "workflow_button":
		own, _ := e["value"].(string)
		if given && value != nil && value != own {
			return nil, refuse("invalid_value")
		}
		return nil, nil
	case "feedback_buttons":
		for _, side := range []string{"positive_button", "negative_button"} {
			if b, ok := e[side].(object); ok && b["value"] == value {
				return object{"text": b["text"], "value": value}, nil
			}
		}
		return nil, refuse("invalid_value")
	}
	state, ok := blockkit.Choose(e, value, s.choicesOf(u, where, target))
	if !ok {
		return nil, refuse("invalid_value")
	}
	if target.Kind() == "overflow" { // which has no state
		return state, nil
	}
	if where.view != nil {
		where.view.state.Set(target, state)
	} else {
		where.channel.remember(where.message.TS, u.ID, target, state)
	}
	return state, nil
}

// choicesOf returns what a person can choose: all active accounts, and the channels that the person sees.
func (s *Server) choicesOf(u *user, where acted, target blockkit.Placed) blockkit.Choices {
	return blockkit.Choices{Offered: s.offered[offerKey(u.ID, where, target)], Find: func(field, name string) (string, bool) {
		if strings.HasPrefix(field, "selected_user") {
			other, failed := s.anyone(name)
			if failed != nil || other.Deleted {
				return "", false
			}
			return other.ID, true
		}
		ch := s.channels[name]
		if ch == nil {
			ch = s.channelNamed(strings.TrimPrefix(name, "#"))
		}
		if ch == nil || !s.sees(u, ch) || (strings.HasPrefix(field, "selected_channel") && ch.kind() != "channel") {
			return "", false
		}
		return ch.ID, true
	}}
}
