package workspace

import (
	"encoding/json"
	"maps"
)

// getViews is GET /people/{user}/views.
func (s *Server) getViews(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.me(p)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	for _, v := range s.stacks[u.ID] {
		out := v.json(s)
		out["errors"] = v.errors
		if v.errors == nil {
			out["errors"] = object{}
		}
		list = append(list, out)
	}
	return object{"views": list}, nil
}

// submitView is POST /people/{user}/views/{view}/submit.
func (s *Server) submitView(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payload, v, failed := s.submission(p)
	s.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	answer, failed := s.askApp("interactive", payload)
	if failed != nil {
		return nil, failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submitted(v, answer)
}

// submission enters the values and builds the payload, unless the modal's own rules refuse the values.
func (s *Server) submission(p *personCall) (json.RawMessage, *view, *apiError) {
	u, failed := s.me(p)
	if failed != nil {
		return nil, nil, failed
	}
	v, failed := s.ownView(u, p.r.PathValue("view"))
	if failed != nil {
		return nil, nil, failed
	}
	if v.Type != "modal" || v.Submit == nil {
		return nil, nil, refuse("no_submit_button")
	}
	values, _ := p.values["values"].(object)
	if failed := s.enter(u, v, values); failed != nil {
		return nil, nil, failed
	}
	if v.errors = v.incomplete(); len(v.errors) > 0 {
		return nil, nil, viewErrors(v.errors)
	}
	out := s.interaction("view_submission", u)
	out["trigger_id"] = s.newTrigger(u.ID, v.ID)
	out["view"] = v.json(s)
	out["response_urls"] = s.viewResponseURLs(p, u, v)
	return encode(out), v, nil
}

func viewErrors(errors map[string]string) *apiError {
	return &apiError{code: "view_errors", extra: object{"errors": maps.Clone(errors)}}
}

// enter accepts values by block and action, or flat by action or by block.
func (s *Server) enter(u *user, v *view, values object) *apiError {
	inputs := interactive(v.Blocks)
	for key, value := range values {
		found := false
		for _, e := range inputs {
			kind, _ := e.element["type"].(string)
			action, _ := e.element["action_id"].(string)
			if !stateful(kind) {
				continue
			}
			given := value
			switch key {
			case e.blockID:
				if inner, ok := value.(object); ok {
					if own, has := inner[action]; has {
						given = own
					} else if !isState(kind, inner) {
						continue
					}
				}
			case action:
			default:
				continue
			}
			state, failed := choose(e.element, given, s.choicesOf(u, acted{view: v}, e))
			if failed != nil {
				return &apiError{code: failed.code, extra: object{"block_id": e.blockID, "action_id": action}}
			}
			v.set(e.blockID, action, state)
			found = true
		}
		if !found {
			return &apiError{code: "unknown_input", extra: object{"input": key}}
		}
	}
	return nil
}

func isState(kind string, o object) bool {
	field, _ := valueField(kind)
	_, has := o[field]
	return has
}

// viewResponseURLs returns response URLs for conversation menus that request one.
func (s *Server) viewResponseURLs(p *personCall, u *user, v *view) []object {
	out := []object{}
	for _, e := range interactive(v.Blocks) {
		if e.element["response_url_enabled"] != true {
			continue
		}
		action, _ := e.element["action_id"].(string)
		state := v.state[e.blockID][action]
		id, _ := state["selected_conversation"].(string)
		if id == "" {
			id, _ = state["selected_channel"].(string)
		}
		if ch := s.channels[id]; ch != nil && ch.has(u.ID) {
			out = append(out, object{"block_id": e.blockID, "action_id": action, "channel_id": id,
				"response_url": s.newResponseURL(s.appBase(p.r), responseURL{user: u.ID, channel: id})})
		}
	}
	return out
}
