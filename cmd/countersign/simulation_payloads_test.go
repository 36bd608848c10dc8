package main

import (
	"encoding/json"
	"strings"

	"countersign/store"
)

// slackPayload contains the parts of a delivery that the account reads.
type slackPayload struct {
	EventID string `json:"event_id"`
	Event   struct {
		Type     string
		Subtype  string
		User     string
		BotID    string `json:"bot_id"`
		Text     string
		TS       string
		ThreadTS string `json:"thread_ts"`
		Channel  string
		Kind     string `json:"channel_type"`
		Edited   struct{ TS string }
	}
	Type    string
	Trigger string `json:"trigger_id"`
	User    struct{ ID string }
	Actions []struct {
		ActionID string `json:"action_id"`
		Value    string
	}
	Message struct {
		TS     string
		Blocks []json.RawMessage
	}
	View struct {
		ID       string
		Callback string `json:"callback_id"`
		Metadata string `json:"private_metadata"`
		Blocks   []json.RawMessage
		State    struct {
			Values map[string]map[string]struct{ Value *string }
		}
	}
}

// words identifies a person's message.
type words struct{ user, channel, ts, root string }

// clicked is a click, or a form, about a request.
type clicked struct {
	user, action, ref string
	form              bool // a submitted form, and not the click that opened the form
}

// name returns the key of a delivery in account.rows. A new message always has the same key, whether the message comes
// as a message event, as a mention, or from a channel's history.
func (p slackPayload) name() string {
	e := p.Event
	if (e.Type == "message" || e.Type == "app_mention") && (e.Subtype == "" || e.Subtype == "thread_broadcast") && e.Edited.TS == "" {
		return e.Channel + "/" + e.TS
	}
	return p.EventID + p.Trigger
}

// read decodes a delivery for the account, which counts the deliveries. counts is false if this delivery is not
// counted.
func (s *simulation) read(d *parcel) (a acked, counts bool) {
	var p slackPayload
	if json.Unmarshal(d.payload, &p) != nil && d.kind == store.InboxEvent {
		return a, false
	}
	a.name = p.name()
	switch d.kind {
	case store.InboxCommand:
		return a, true
	case store.InboxInteraction:
		switch {
		case p.Type == "block_actions" && len(p.Actions) > 0 && p.Actions[0].ActionID != "link":
			ref, _, _ := strings.Cut(p.Actions[0].Value, " ")
			a.act = &clicked{user: p.User.ID, action: p.Actions[0].ActionID, ref: ref}
		case p.Type == "view_submission":
			ref, _, _ := strings.Cut(p.View.Metadata, " ")
			a.act = &clicked{user: p.User.ID, action: p.View.Callback, ref: ref, form: true}
		default:
			return a, false
		}
		return a, true
	}
	e := p.Event
	if e.Type != "message" && e.Type != "app_mention" || e.BotID != "" || e.User == "" || e.Subtype != "" && e.Subtype != "thread_broadcast" {
		return a, false
	}
	dm := e.Kind == "im"
	mention := strings.Contains(e.Text, "<@U0BOT>")
	if !dm && !mention && e.ThreadTS == "" {
		return a, false // messages that people write to each other
	}
	root := e.ThreadTS
	if root == "" && !dm {
		root = e.TS
	}
	known := s.heard[root] > 0
	if _, person := s.people[e.User]; person && e.User != guest && (dm || e.Channel == "C0001" && (mention || known)) {
		a.said = &words{user: e.User, channel: e.Channel, ts: e.TS, root: root}
	}
	return a, true
}

// The method "consents" records the approval in a delivery when the delivery reaches the bot. The approval may then
// count, even if the bot does not acknowledge the delivery.
func (s *simulation) consents(d *parcel) {
	var p slackPayload
	if d.kind != store.InboxInteraction || json.Unmarshal(d.payload, &p) != nil {
		return
	}
	if p.Type == "view_submission" {
		s.consentsByForm(p)
		return
	}
	if len(p.Actions) == 0 {
		return
	}
	value := p.Actions[0].Value
	switch p.Actions[0].ActionID {
	case "approve":
		s.agree(p.User.ID, textOf(around(p.Message.Blocks, value)), false)
	case "approve_all":
		s.agree(p.User.ID, textOf(p.Message.Blocks), false)
	case "allow_more", "modify":
		s.shown[value] = textOf(around(p.Message.Blocks, value))
	}
}

func (s *simulation) consentsByForm(p slackPayload) {
	mark := strings.Join(strings.SplitN(p.View.Metadata, " ", 5)[:min(4, strings.Count(p.View.Metadata, " ")+1)], " ")
	card := s.shown[mark]
	switch p.View.Callback {
	case "approve_typed", "arguments":
		s.agree(p.User.ID, textOf(p.View.Blocks), false)
	case "allow_more":
		s.agree(p.User.ID, card, true)
	case "modify":
		for block, inputs := range p.View.State.Values {
			for _, in := range inputs {
				if strings.HasSuffix(block, "amount") && in.Value != nil {
					s.agreed[nonceIn(card)] = append(s.agreed[nonceIn(card)], consent{user: p.User.ID, amount: strings.TrimSpace(*in.Value)})
				}
			}
		}
	}
}

// The function "around" lists the blocks of the call to which a button belongs. These blocks are between the same two
// dividers as the button, and below the buttons of the previous call.
func around(blocks []json.RawMessage, value string) (part []json.RawMessage) {
	found := false
	for _, b := range blocks {
		if strings.Contains(string(b), `"type":"divider"`) {
			if found {
				return part
			}
			part = nil
			continue
		}
		part = append(part, b)
		found = found || strings.Contains(string(b), `"`+value+`"`)
		if strings.Contains(string(b), `"type":"actions"`) {
			if found {
				return part
			}
			part = nil
		}
	}
	if !found {
		return nil
	}
	return part
}

// textOf returns all text in blocks, with one piece on each line.
func textOf(blocks []json.RawMessage) string {
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if text, ok := v["text"].(string); ok {
				b.WriteString(text + "\n")
			}
			for _, key := range []string{"elements", "text", "fields", "element", "accessory"} {
				walk(v[key])
			}
		}
	}
	for _, raw := range blocks {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			walk(v)
		}
	}
	return b.String()
}
