package workspace

import (
	"encoding/json"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

// submitted applies the app's answer: no answer closes the view, errors keep it open, update and push show another
// view, clear closes the whole stack.
func (s *Server) submitted(v *view, answer json.RawMessage) (object, *apiError) {
	decoded, _ := wire.Decode(answer)
	body, isObject := decoded.(object)
	if len(answer) > 0 && !isObject {
		return nil, refuse("invalid_app_response", "a submission is answered with nothing, or with JSON that has a response_action")
	}
	action, _ := body["response_action"].(string)
	stack := s.stacks[v.User]
	if !slices.Contains(stack, v) { // the app has already replaced or closed it
		return object{"response_action": action}, nil
	}
	switch action {
	case "errors":
		return nil, s.refused(v, body["errors"])
	case "clear":
		s.setStack(v.User, nil)
	case "update", "push":
		next, failed := s.readView(body["view"], body["view"] != nil, "modal")
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

// refused stores the app's error texts for the inputs. Slack ignores an answer whose keys name no input block; the
// person then only sees that something went wrong.
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
