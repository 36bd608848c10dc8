package workspace

import (
	"encoding/json"
	"slices"
	"strings"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

// actionHandler handles people's actions in messages, modals and the App Home: people press buttons and make choices.
type actionHandler struct {
	*core
	accounts     *accounts
	channels     *channels
	messages     *messages
	triggers     *triggers
	views        *views
	interactions *interactions
	offered      map[string][]object // the options that an external select got last
}

// act is POST /people/{user}/actions: a person presses a button or makes a choice in a message, a modal or the App
// Home. The function returns when the app has acknowledged the action.
func (a *actionHandler) act(p *personCall) (object, *apiError) {
	a.mu.Lock()
	payload, trigger, failed := a.payload(p)
	a.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if payload == nil { // the element is an input without dispatch_action, so its value is only stored
		return object{}, nil
	}
	if _, failed := a.interactions.ask("interactive", payload); failed != nil {
		return nil, failed
	}
	return object{"trigger_id": trigger}, nil
}

func (a *actionHandler) payload(p *personCall) (payload json.RawMessage, trigger string, failed *apiError) {
	u, failed := a.accounts.me(p)
	if failed != nil {
		return nil, "", failed
	}
	where, failed := a.actedOn(p, u)
	if failed != nil {
		return nil, "", failed
	}
	target, ok := where.find(p.text("action_id"), p.text("block_id"))
	if !ok || !shownTo(target.Element, u.ID) {
		return nil, "", refuse("unknown_action")
	}
	state, failed := a.choice(p, u, where, target)
	if failed != nil {
		return nil, "", failed
	}
	if target.Block["type"] == "input" && target.Block["dispatch_action"] != true {
		return nil, "", nil
	}
	ts := a.nextTS()
	out := a.interactions.payload("block_actions", u)
	if where.view != nil {
		trigger = a.triggers.create(u.ID, where.view.ID)
		a.interactions.addView(out, where.view)
	} else {
		trigger = a.triggers.create(u.ID, "")
		a.interactions.addMessage(p.r, out, u, where.channel, where.message)
		out["state"] = object{"values": where.messageState(u.ID)}
	}
	out["trigger_id"], out["actions"] = trigger, []object{pressed(target, state, ts)}
	return wire.Encode(out), trigger, nil
}

// choice checks the person's click or choice, and returns the fields for the action. If the element has a state, choice
// also stores the value.
func (a *actionHandler) choice(p *personCall, u *user, where acted, target blockkit.Placed) (object, *apiError) {
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
	state, ok := blockkit.Choose(e, value, a.choicesOf(u, where, target))
	if !ok {
		return nil, refuse("invalid_value")
	}
	if target.Kind() == "overflow" { // an overflow menu has no state
		return state, nil
	}
	if where.view != nil {
		where.view.state.Set(target, state)
	} else {
		where.channel.remember(where.message.TS, u.ID, target, state)
	}
	return state, nil
}

// choicesOf returns the values that a person can choose: the options of an external select, all active accounts, and
// the channels that the person sees.
func (a *actionHandler) choicesOf(u *user, where acted, target blockkit.Placed) blockkit.Choices {
	return blockkit.Choices{Offered: a.offered[offerKey(u.ID, where, target)], Find: func(field, name string) (string, bool) {
		if strings.HasPrefix(field, "selected_user") {
			other, failed := a.accounts.anyone(name)
			if failed != nil || other.Deleted {
				return "", false
			}
			return other.ID, true
		}
		ch := a.channels.byID[name]
		if ch == nil {
			ch = a.channels.named(strings.TrimPrefix(name, "#"))
		}
		if ch == nil || !a.channels.sees(u, ch) || (strings.HasPrefix(field, "selected_channel") && ch.kind() != "channel") {
			return "", false
		}
		return ch.ID, true
	}}
}

// acted is the view or the message in which a person acted.
type acted struct {
	blocks  []any
	earlier earlier
	view    *view
	channel *channel
	message *message
}

func (a *actionHandler) actedOn(p *personCall, u *user) (acted, *apiError) {
	if id := p.text("view_id"); id != "" {
		v, failed := a.views.own(u, id)
		if failed != nil {
			return acted{}, failed
		}
		return acted{blocks: v.Blocks, earlier: v.earlier, view: v}, nil
	}
	ch, failed := a.channels.memberChannel(u, p.text("channel"))
	if failed != nil {
		return acted{}, failed
	}
	m, failed := a.messages.shown(u, ch, p.text("ts"))
	if failed != nil {
		return acted{}, failed
	}
	return acted{blocks: m.allBlocks(), earlier: m.earlier, channel: ch, message: m}, nil
}

// find returns the element that an action names. If the action names the block, the element may also come from an
// earlier version of the message or App Home.
func (a acted) find(actionID, blockID string) (blockkit.Placed, bool) {
	target, ok := blockkit.Find(a.blocks, actionID, blockID)
	if !ok && blockID != "" {
		return blockkit.Find(a.earlier, actionID, blockID)
	}
	return target, ok
}

// earlier holds the blocks with elements from earlier versions of a message or an App Home, newest first. A page may
// show an earlier version when a person clicks, because the page gets changes with a short delay.
type earlier []any

const maxEarlier = 20

// add returns e with the blocks of the version that is being replaced, as the newest entry. Only the newest blocks are
// kept.
func (e earlier) add(blocks []any) earlier {
	all := slices.Concat(blockkit.WithElements(blocks), e)
	return all[:min(len(all), maxEarlier)]
}

func shownTo(e object, user string) bool {
	list, limited := e["visible_to_user_ids"].([]any)
	return !limited || len(list) == 0 || slices.Contains(list, any(user))
}

// remember stores a person's choices in the inputs of a message. The choices are lost when the server ends.
func (c *channel) remember(ts, user string, p blockkit.Placed, state object) {
	if c.chosen == nil {
		c.chosen = map[string]blockkit.State{}
	}
	key := ts + "|" + user
	if c.chosen[key] == nil {
		c.chosen[key] = blockkit.State{}
	}
	c.chosen[key].Set(p, state)
}

// messageState returns the state of the message's inputs for one person.
func (a acted) messageState(user string) blockkit.State {
	return blockkit.NewState(a.blocks, a.channel.chosen[a.message.TS+"|"+user])
}

// actionFields lists the fields of an element that the payload of an action repeats.
var actionFields = []string{
	"text", "value", "style", "placeholder", "confirm", "icon",
	"initial_option", "initial_options", "initial_date", "initial_time", "initial_user", "initial_channel", "initial_conversation",
}

// pressed makes the entry of actions in a block_actions payload for the element p that a person used. state has the
// fields of the person's choice.
func pressed(p blockkit.Placed, state object, ts string) object {
	out := object{"action_id": p.Element["action_id"], "block_id": p.BlockID, "type": p.Element["type"], "action_ts": ts}
	for _, key := range actionFields {
		if v := p.Element[key]; v != nil {
			out[key] = v
		}
	}
	for key, v := range state {
		out[key] = v
	}
	return out
}

// offerKey returns the key under which an external select's options are stored for a person.
func offerKey(user string, where acted, target blockkit.Placed) string {
	if where.view != nil {
		return user + "|" + where.view.ID + "|" + target.BlockID + "|" + target.ActionID()
	}
	return user + "|" + where.channel.ID + "|" + where.message.TS + "|" + target.BlockID + "|" + target.ActionID()
}

// suggest is POST /people/{user}/options. suggest returns the options that the app offers in an external select for a
// typed text.
func (a *actionHandler) suggest(p *personCall) (object, *apiError) {
	a.mu.Lock()
	payload, key, failed := a.suggestionPayload(p)
	a.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	answer, failed := a.interactions.ask("interactive", payload)
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.offered[key] = options; len(options) == 0 {
		delete(a.offered, key)
	}
	return out, nil
}

func (a *actionHandler) suggestionPayload(p *personCall) (json.RawMessage, string, *apiError) {
	u, failed := a.accounts.me(p)
	if failed != nil {
		return nil, "", failed
	}
	where, failed := a.actedOn(p, u)
	if failed != nil {
		return nil, "", failed
	}
	target, ok := where.find(p.text("action_id"), p.text("block_id"))
	if !ok {
		return nil, "", refuse("unknown_action")
	}
	if kind := target.Kind(); kind != "external_select" && kind != "multi_external_select" {
		return nil, "", refuse("unknown_action")
	}
	out := a.interactions.payload("block_suggestion", u)
	if where.view != nil {
		a.interactions.addView(out, where.view)
	} else {
		a.interactions.addMessage(p.r, out, u, where.channel, where.message)
		delete(out, "response_url")
	}
	out["action_id"], out["block_id"], out["value"] = target.Element["action_id"], target.BlockID, p.text("value")
	return wire.Encode(out), offerKey(u.ID, where, target), nil
}
