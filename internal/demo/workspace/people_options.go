package workspace

import "encoding/json"

// offerKey is the key of the options that an external select last got for a person.
func offerKey(user string, where acted, target placed) string {
	action, _ := target.element["action_id"].(string)
	if where.view != nil {
		return user + "|" + where.view.ID + "|" + target.blockID + "|" + action
	}
	return user + "|" + where.channel.ID + "|" + where.message.TS + "|" + target.blockID + "|" + action
}

// suggest is POST /people/{user}/options: the options of an external select for a typed text.
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
	body, isObject := decoded.(object)
	if len(answer) > 0 && !isObject {
		return nil, refuse("invalid_app_response", "a menu is answered with JSON that has options or option_groups")
	}
	check := checker{surface: inViews}
	out := object{"options": []object{}}
	if groups, given := body["option_groups"]; given {
		element := object{"option_groups": groups}
		check.staticSelect("", element)
		out["option_groups"] = groups
		out["options"] = optionsOf(element)
	} else if list, given := body["options"]; given {
		if items, _ := list.([]any); len(items) > 0 {
			check.options("/options", list, maxOptions, inSelect)
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
