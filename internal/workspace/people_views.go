package workspace

import (
	"encoding/json"
	"maps"
	"slices"
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

// submission enters the values and makes the payload, unless the modal's own rules
// refuse the values.
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

// enter takes values by block and action, or flat by action or by block.
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
			switch {
			case key == e.blockID:
				if inner, ok := value.(object); ok {
					if own, has := inner[action]; has {
						given = own
					} else if !isState(kind, inner) {
						continue
					}
				}
			case key == action:
			default:
				continue
			}
			state, failed := choose(e.element, given, s.offered[offerKey(u.ID, acted{view: v}, e)])
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

// viewResponseURLs are given for conversation menus that ask for one.
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

// submitted does what the app answered: nothing closes the view, errors keep it open,
// update and push show another one, clear closes the whole stack.
func (s *Server) submitted(v *view, answer json.RawMessage) (object, *apiError) {
	decoded, _ := decodeJSON(answer)
	body, _ := decoded.(object)
	action, _ := body["response_action"].(string)
	stack := s.stacks[v.User]
	if !slices.Contains(stack, v) { // the app has replaced or closed it meanwhile
		return object{"response_action": action}, nil
	}
	switch action {
	case "errors":
		return nil, s.refused(v, body["errors"])
	case "clear":
		s.setStack(v.User, nil)
	case "update", "push":
		next, failed := readView(body["view"], body["view"] != nil, "modal")
		if failed == nil && action == "push" {
			failed = s.mayPush(v.User)
		}
		if failed == nil && action == "push" && next.ExternalID != "" && s.viewWithExternalID(next.ExternalID) != nil {
			failed = refuse("duplicate_external_id")
		}
		if failed == nil && action == "update" {
			failed = s.replaceView(v, next)
		} else if failed == nil {
			s.showModal(v.User, next)
		}
		if failed != nil {
			s.log.Warn("the app's answer to a submission is not valid", "error", failed.code, "details", failed.details)
			return nil, refuse("invalid_app_response", append([]string{failed.code}, failed.details...)...)
		}
	case "":
		s.setStack(v.User, stack[:slices.Index(stack, v)])
	default:
		return nil, refuse("invalid_app_response", "unknown response_action "+action)
	}
	return object{"response_action": action}, nil
}

// refused keeps the app's sentences beside the inputs. Slack ignores an answer whose
// keys name no input block; the person then only sees that something went wrong.
func (s *Server) refused(v *view, raw any) *apiError {
	given, _ := raw.(object)
	errors := map[string]string{}
	for _, item := range v.Blocks {
		b, _ := item.(object)
		id, _ := b["block_id"].(string)
		if text, ok := given[id].(string); ok && b["type"] == "input" {
			errors[id] = text
		}
	}
	if len(errors) == 0 || len(errors) != len(given) {
		return refuse("invalid_app_response", "errors must be keyed by the block_id of input blocks")
	}
	v.errors = errors
	s.feed.send(change{Type: "view", User: v.User, only: []string{v.User}})
	return viewErrors(errors)
}

func (s *Server) setStack(user string, stack []*view) {
	s.stacks[user] = slices.Clone(stack)
	s.feed.send(change{Type: "view", User: user, only: []string{user}})
}

// closeView is POST /people/{user}/views/{view}/close.
func (s *Server) closeView(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payloads, failed := s.closePayloads(p)
	s.mu.Unlock()
	for _, payload := range payloads {
		// The view is closed whatever the app says to it.
		if _, failed := s.askApp("interactive", payload); failed != nil {
			s.log.Info("the app did not acknowledge view_closed")
		}
	}
	if failed != nil {
		return nil, failed
	}
	return object{}, nil
}

// closePayloads closes the view, or the whole stack, and makes a view_closed for each
// view that asked for it.
func (s *Server) closePayloads(p *personCall) ([]json.RawMessage, *apiError) {
	u, failed := s.me(p)
	if failed != nil {
		return nil, failed
	}
	v, failed := s.ownView(u, p.r.PathValue("view"))
	if failed != nil || v.Type != "modal" {
		return nil, refuse("view_not_found")
	}
	stack := s.stacks[u.ID]
	keep := len(stack) - 1
	all := p.flag("all") || v.ClearOnClose
	if all {
		keep = 0
	}
	var out []json.RawMessage
	for _, closed := range slices.Backward(stack[keep:]) {
		if closed.NotifyOnClose {
			payload := s.interaction("view_closed", u)
			payload["view"], payload["is_cleared"] = closed.json(s), all
			out = append(out, encode(payload))
		}
	}
	s.setStack(u.ID, stack[:keep])
	return out, nil
}
