package workspace

import (
	"encoding/json"
	"maps"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
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
	if v.errors = blockkit.Incomplete(v.Blocks, v.state); len(v.errors) > 0 {
		return nil, nil, viewErrors(v.errors)
	}
	out := s.interaction("view_submission", u)
	out["trigger_id"] = s.newTrigger(u.ID, v.ID)
	out["view"] = v.json(s)
	out["response_urls"] = s.viewResponseURLs(p, u, v)
	return wire.Encode(out), v, nil
}

func viewErrors(errors map[string]string) *apiError {
	return &apiError{code: "view_errors", extra: object{"errors": maps.Clone(errors)}}
}

// enter stores the values of a form. The keys are block_ids or action_ids.
func (s *Server) enter(u *user, v *view, values object) *apiError {
	inputs := blockkit.Interactive(v.Blocks)
	for key, value := range values {
		found := false
		for _, e := range inputs {
			given, ok := valueFor(e, key, value)
			if !ok {
				continue
			}
			state, ok := blockkit.Choose(e.Element, given, s.choicesOf(u, acted{view: v}, e))
			if !ok {
				return &apiError{code: "invalid_value", extra: object{"block_id": e.BlockID, "action_id": e.ActionID()}}
			}
			v.state.Set(e, state)
			found = true
		}
		if !found {
			return &apiError{code: "unknown_input", extra: object{"input": key}}
		}
	}
	return nil
}

// valueFor returns the value for one input. Under a block_id, the value may be an object with values by action_id.
func valueFor(e blockkit.Placed, key string, value any) (any, bool) {
	if !blockkit.Stateful(e.Kind()) || key != e.BlockID && key != e.ActionID() {
		return nil, false
	}
	byAction, isObject := value.(object)
	if key != e.BlockID || !isObject {
		return value, true
	}
	if own, has := byAction[e.ActionID()]; has {
		return own, true
	}
	field, _ := blockkit.ValueField(e.Kind())
	_, isState := byAction[field]
	return value, isState
}

// viewResponseURLs returns response URLs for conversation menus that request one.
func (s *Server) viewResponseURLs(p *personCall, u *user, v *view) []object {
	out := []object{}
	for _, e := range blockkit.Interactive(v.Blocks) {
		if e.Element["response_url_enabled"] != true {
			continue
		}
		state := v.state[e.BlockID][e.ActionID()]
		id, _ := state["selected_conversation"].(string)
		if id == "" {
			id, _ = state["selected_channel"].(string)
		}
		if ch := s.channels[id]; ch != nil && ch.has(u.ID) {
			out = append(out, object{"block_id": e.BlockID, "action_id": e.ActionID(), "channel_id": id,
				"response_url": s.newResponseURL(s.appBase(p.r), responseURL{user: u.ID, channel: id})})
		}
	}
	return out
}
