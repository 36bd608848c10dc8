package workspace

import (
	"encoding/json"
	"maps"
	"slices"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

// forms shows people their modals, and submits and closes modals.
type forms struct {
	*core
	accounts     *accounts
	channels     *channels
	triggers     *triggers
	views        *views
	responseURLs *responseURLs
	interactions *interactions
	actions      *actionHandler
}

// getViews is GET /people/{user}/views.
func (fs *forms) getViews(p *personCall) (object, *apiError) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	u, failed := fs.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	for _, v := range fs.views.stacks[u.ID] {
		out := v.json(fs.core)
		out["errors"] = v.errors
		if v.errors == nil {
			out["errors"] = object{}
		}
		list = append(list, out)
	}
	return object{"views": list}, nil
}

// submit is POST /people/{user}/views/{view}/submit.
func (fs *forms) submit(p *personCall) (object, *apiError) {
	fs.mu.Lock()
	payload, v, failed := fs.submission(p)
	fs.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	answer, failed := fs.interactions.ask("interactive", payload)
	if failed != nil {
		return nil, failed
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.submitted(v, answer)
}

// submission checks the values as Slack's client does. If the values are valid, submission stores them and returns the
// payload.
func (fs *forms) submission(p *personCall) (json.RawMessage, *view, *apiError) {
	u, failed := fs.accounts.me(p)
	if failed != nil {
		return nil, nil, failed
	}
	v, failed := fs.views.own(u, p.r.PathValue("view"))
	if failed != nil {
		return nil, nil, failed
	}
	if v.Type != "modal" || v.Submit == nil {
		return nil, nil, refuse("no_submit_button")
	}
	values, _ := p.values["values"].(object)
	if failed := fs.enter(u, v, values); failed != nil {
		return nil, nil, failed
	}
	if v.errors = blockkit.Incomplete(v.Blocks, v.state); len(v.errors) > 0 {
		return nil, nil, viewErrors(v.errors)
	}
	out := fs.interactions.payload("view_submission", u)
	out["trigger_id"] = fs.triggers.create(u.ID, v.ID)
	out["view"] = v.json(fs.core)
	out["response_urls"] = fs.newResponseURLs(p, u, v)
	return wire.Encode(out), v, nil
}

func viewErrors(errors map[string]string) *apiError {
	return &apiError{code: "view_errors", extra: object{"errors": maps.Clone(errors)}}
}

// enter stores the values of a form. The keys are block_ids or action_ids.
func (fs *forms) enter(u *user, v *view, values object) *apiError {
	inputs := blockkit.Interactive(v.Blocks)
	for key, value := range values {
		found := false
		for _, e := range inputs {
			given, ok := valueFor(e, key, value)
			if !ok {
				continue
			}
			state, ok := blockkit.Choose(e.Element, given, fs.actions.choicesOf(u, acted{view: v}, e))
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

// valueFor returns the value for one input. If the key is a block_id, the value may be an object with values by
// action_id.
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

// newResponseURLs returns response URLs for conversation menus that request one.
func (fs *forms) newResponseURLs(p *personCall, u *user, v *view) []object {
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
		if ch := fs.channels.byID[id]; ch != nil && ch.has(u.ID) {
			out = append(out, object{"block_id": e.BlockID, "action_id": e.ActionID(), "channel_id": id,
				"response_url": fs.responseURLs.create(fs.appBase(p.r), responseURL{user: u.ID, channel: id})})
		}
	}
	return out
}

// The method "submitted" applies the app's answer. An empty answer closes the view, and errors keep the view open.
// "update" and "push" show another view. "clear" closes all views of the stack.
func (fs *forms) submitted(v *view, answer json.RawMessage) (object, *apiError) {
	decoded, _ := wire.Decode(answer)
	body, isObject := decoded.(object)
	if len(answer) > 0 && !isObject {
		return nil, refuse("invalid_app_response", "a submission is answered with nothing, or with JSON that has a response_action")
	}
	action, _ := body["response_action"].(string)
	stack := fs.views.stacks[v.User]
	if !slices.Contains(stack, v) { // the app has already replaced or closed the view
		return object{"response_action": action}, nil
	}
	switch action {
	case "errors":
		return nil, fs.refused(v, body["errors"])
	case "clear":
		fs.views.setStack(v.User, nil)
	case "update", "push":
		next, failed := fs.views.read(body["view"], body["view"] != nil, "modal")
		if failed == nil && action == "push" {
			failed = fs.views.mayPush(v.User)
		}
		if failed == nil && action == "push" && next.ExternalID != "" && fs.views.withExternalID(next.ExternalID) != nil {
			failed = refuse("duplicate_external_id")
		}
		if failed == nil && action == "update" {
			failed = fs.views.replace(v, next)
		} else if failed == nil {
			fs.views.showModal(v.User, next)
		}
		if failed != nil {
			fs.log.Warn("the app's answer to a submission is not valid", "error", failed.code, "details", failed.details)
			return nil, refuse("invalid_app_response", append([]string{failed.code}, failed.details...)...)
		}
	case "":
		fs.views.setStack(v.User, stack[:slices.Index(stack, v)])
	default:
		return nil, refuse("invalid_app_response", "unknown response_action "+action)
	}
	return object{"response_action": action}, nil
}

// The method "refused" stores the app's error texts for the inputs. If a key of the answer names no input block, Slack
// ignores the answer and shows the person a general error.
func (fs *forms) refused(v *view, raw any) *apiError {
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
	fs.feed.send(change{Type: "view", User: v.User, only: []string{v.User}})
	return viewErrors(errors)
}

// close is POST /people/{user}/views/{view}/close.
func (fs *forms) close(p *personCall) (object, *apiError) {
	fs.mu.Lock()
	payloads, failed := fs.closePayloads(p)
	fs.mu.Unlock()
	for _, payload := range payloads {
		// The view closes even if the app does not acknowledge.
		if _, failed := fs.interactions.ask("interactive", payload); failed != nil {
			fs.log.Info("the app did not acknowledge view_closed")
		}
	}
	if failed != nil {
		return nil, failed
	}
	return object{}, nil
}

// closePayloads closes the top view of the stack, or all views of the stack. closePayloads returns a view_closed
// payload for each closed view with notify_on_close.
func (fs *forms) closePayloads(p *personCall) ([]json.RawMessage, *apiError) {
	u, failed := fs.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	v, failed := fs.views.own(u, p.r.PathValue("view"))
	if failed != nil || v.Type != "modal" {
		return nil, refuse("view_not_found")
	}
	stack := fs.views.stacks[u.ID]
	keep := len(stack) - 1
	all := p.flag("all") || v.ClearOnClose
	if all {
		keep = 0
	}
	var out []json.RawMessage
	for _, closed := range slices.Backward(stack[keep:]) {
		if closed.NotifyOnClose {
			payload := fs.interactions.payload("view_closed", u)
			payload["view"], payload["is_cleared"] = closed.json(fs.core), all
			out = append(out, wire.Encode(payload))
		}
	}
	fs.views.setStack(u.ID, stack[:keep])
	return out, nil
}
