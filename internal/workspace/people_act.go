package workspace

import (
	"encoding/json"
	"errors"
	"slices"
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
	answer, err := s.hub.ask(kind, payload)
	if errors.Is(err, errNoAnswer) {
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
	target, ok := elementNamed(where.blocks, p.text("action_id"), p.text("block_id"))
	if !ok || !shownTo(target.element, u.ID) {
		return nil, "", refuse("unknown_action")
	}
	state, failed := s.choice(p, u, where, target)
	if failed != nil {
		return nil, "", failed
	}
	if target.block["type"] == "input" && target.block["dispatch_action"] != true {
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
	return encode(out), trigger, nil
}

// acted is what a person acted on: a view, or a message in a channel.
type acted struct {
	blocks  []any
	view    *view
	channel *channel
	message *message
}

func (s *Server) actedOn(p *personCall, u *user) (acted, *apiError) {
	if id := p.text("view_id"); id != "" {
		v, failed := s.ownView(u, id)
		if failed != nil {
			return acted{}, failed
		}
		return acted{blocks: v.Blocks, view: v}, nil
	}
	ch, failed := s.memberChannel(u, p.text("channel"))
	if failed != nil {
		return acted{}, failed
	}
	m, failed := s.shownMessage(u, ch, p.text("ts"))
	if failed != nil {
		return acted{}, failed
	}
	blocks := slices.Clone(m.Blocks)
	for _, item := range m.Attachments {
		if attachment, ok := item.(object); ok {
			nested, _ := attachment["blocks"].([]any)
			blocks = append(blocks, nested...)
		}
	}
	return acted{blocks: blocks, channel: ch, message: m}, nil
}

// ownView finds one of the person's views; "home" is the App Home. In a stack of modals
// only the top one can be touched.
func (s *Server) ownView(u *user, id string) (*view, *apiError) {
	if home := s.homes[u.ID]; home != nil && (id == "home" || id == home.ID) {
		return home, nil
	}
	if stack := s.stacks[u.ID]; len(stack) > 0 && stack[len(stack)-1].ID == id {
		return stack[len(stack)-1], nil
	}
	return nil, refuse("view_not_found")
}

func shownTo(e object, user string) bool {
	list, limited := e["visible_to_user_ids"].([]any)
	return !limited || len(list) == 0 || slices.Contains(list, any(user))
}

// choice is what the person pressed or chose, as the action's own fields. What has a
// state keeps it.
func (s *Server) choice(p *personCall, u *user, where acted, target placed) (object, *apiError) {
	e := target.element
	kind, _ := e["type"].(string)
	value, given := p.values["value"]
	switch kind {
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
	state, failed := choose(e, value, s.offered[offerKey(u.ID, where, target)])
	if failed != nil || kind == "overflow" {
		return state, failed
	}
	action, _ := e["action_id"].(string)
	if where.view != nil {
		where.view.set(target.blockID, action, state)
	} else {
		where.channel.remember(where.message.TS, u.ID, target.blockID, action, state)
	}
	return state, nil
}

// offerKey names the options that an external select last got for a person.
func offerKey(user string, where acted, target placed) string {
	action, _ := target.element["action_id"].(string)
	if where.view != nil {
		return user + "|" + where.view.ID + "|" + target.blockID + "|" + action
	}
	return user + "|" + where.channel.ID + "|" + where.message.TS + "|" + target.blockID + "|" + action
}

// remember keeps what a person chose in a message's inputs until they leave the page.
func (c *channel) remember(ts, user, block, action string, state object) {
	if c.chosen == nil {
		c.chosen = map[string]map[string]map[string]object{}
	}
	key := ts + "|" + user
	if c.chosen[key] == nil {
		c.chosen[key] = map[string]map[string]object{}
	}
	if c.chosen[key][block] == nil {
		c.chosen[key][block] = map[string]object{}
	}
	c.chosen[key][block][action] = state
}

// messageState is the state of all inputs in a message for one person.
func (s *Server) messageState(where acted, user string) object {
	chosen := where.channel.chosen[where.message.TS+"|"+user]
	out := object{}
	for _, e := range interactive(where.blocks) {
		kind, _ := e.element["type"].(string)
		if !stateful(kind) {
			continue
		}
		action, _ := e.element["action_id"].(string)
		state := chosen[e.blockID][action]
		if state == nil {
			state = initialState(e.element)
		}
		inner, _ := out[e.blockID].(object)
		if inner == nil {
			inner = object{}
			out[e.blockID] = inner
		}
		inner[action] = state
	}
	return out
}

// suggest is POST /people/{user}/options: what an external select offers for a text.
func (s *Server) suggest(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payload, key, failed := s.suggestionPayload(p)
	s.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	answer, failed := s.askApp("interactive", payload)
	if failed != nil {
		return nil, failed
	}
	decoded, _ := decodeJSON(answer)
	body, _ := decoded.(object)
	check := checker{surface: inViews}
	out := object{"options": []object{}}
	if groups, given := body["option_groups"]; given {
		element := object{"option_groups": groups}
		check.staticSelect("", element)
		out["option_groups"] = groups
		out["options"] = optionsOf(element)
	} else if list, given := body["options"]; given {
		if items, _ := list.([]any); len(items) > 0 {
			check.options("/options", list, 0, maxOptions, true)
		}
		out["options"] = optionsOf(body)
	}
	if len(check.problems) > 0 {
		return nil, refuse("invalid_app_response", check.problems...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered[key] = optionsOf(body)
	if len(optionsOf(body)) == 0 {
		delete(s.offered, key)
	}
	return out, nil
}

func (s *Server) suggestionPayload(p *personCall) (json.RawMessage, string, *apiError) {
	u, failed := s.me(p)
	if failed != nil {
		return nil, "", failed
	}
	where, failed := s.actedOn(p, u)
	if failed != nil {
		return nil, "", failed
	}
	target, ok := elementNamed(where.blocks, p.text("action_id"), p.text("block_id"))
	if !ok {
		return nil, "", refuse("unknown_action")
	}
	kind, _ := target.element["type"].(string)
	if kind != "external_select" && kind != "multi_external_select" {
		return nil, "", refuse("unknown_action")
	}
	out := s.interaction("block_suggestion", u)
	if where.view != nil {
		s.inViewPayload(out, where.view)
	} else {
		s.onMessagePayload(p.r, out, u, where.channel, where.message)
		delete(out, "response_url")
	}
	out["action_id"], out["block_id"], out["value"] = target.element["action_id"], target.blockID, p.text("value")
	return encode(out), offerKey(u.ID, where, target), nil
}
