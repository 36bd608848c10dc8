package workspace

import (
	"encoding/json"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

// offerKey is the key of the options that an external select last got for a person.
func offerKey(user string, where acted, target blockkit.Placed) string {
	if where.view != nil {
		return user + "|" + where.view.ID + "|" + target.BlockID + "|" + target.ActionID()
	}
	return user + "|" + where.channel.ID + "|" + where.message.TS + "|" + target.BlockID + "|" + target.ActionID()
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
	decoded, _ := wire.Decode(answer)
	body, isObject := decoded.(object)
	if len(answer) > 0 && !isObject {
		return nil, refuse("invalid_app_response", "a menu is answered with JSON that has options or option_groups")
	}
	if problems := blockkit.CheckSuggestions(body); len(problems) > 0 {
		return nil, refuse("invalid_app_response", problems...)
	}
	options := blockkit.Options(body)
	out := object{"options": options}
	if groups, given := body["option_groups"]; given {
		out["option_groups"] = groups
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offered[key] = options; len(options) == 0 {
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
	target, ok := blockkit.Find(where.blocks, p.text("action_id"), p.text("block_id"))
	if !ok {
		return nil, "", refuse("unknown_action")
	}
	if kind := target.Kind(); kind != "external_select" && kind != "multi_external_select" {
		return nil, "", refuse("unknown_action")
	}
	out := s.interaction("block_suggestion", u)
	if where.view != nil {
		s.inViewPayload(out, where.view)
	} else {
		s.onMessagePayload(p.r, out, u, where.channel, where.message)
		delete(out, "response_url")
	}
	out["action_id"], out["block_id"], out["value"] = target.Element["action_id"], target.BlockID, p.text("value")
	return wire.Encode(out), offerKey(u.ID, where, target), nil
}
