package workspace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

// What an app may write into selects, menus and lists of choices, and what Slack refuses.
func TestSelectRules(t *testing.T) {
	b := newBench(t)
	red, green := obj{"text": plain("Red"), "value": "r"}, obj{"text": plain("Green"), "value": "g"}
	both := arr{red, green}
	tall := func(n int) arr {
		return many(n, func(i int) any { return obj{"text": plain("o"), "value": fmt.Sprint(i)} })
	}
	with := func(kind string, fields obj) obj {
		fields["type"], fields["action_id"] = kind, "a"
		return fields
	}
	for _, test := range []struct {
		name       string
		legal, not obj
		pointer    string
	}{
		{"initial_user", with("users_select", obj{"initial_user": "U0004"}), with("users_select", obj{"initial_user": "U9999"}), "/initial_user"},
		{"initial_user by name", with("users_select", obj{}), with("users_select", obj{"initial_user": "kenji"}), "/initial_user"},
		{"initial_users", with("multi_users_select", obj{"initial_users": arr{"U0003", "U0004"}}), with("multi_users_select", obj{"initial_users": arr{"U0003", "U9999"}}), "/initial_users/1"},
		{"initial_users above the most", with("multi_users_select", obj{"initial_users": arr{"U0003"}, "max_selected_items": 1}),
			with("multi_users_select", obj{"initial_users": arr{"U0003", "U0004"}, "max_selected_items": 1}), "/initial_users"},
		{"initial_users where one is chosen", with("users_select", obj{}), with("users_select", obj{"initial_users": arr{"U0003"}}), "/initial_users"},
		{"options of people", with("users_select", obj{"placeholder": plain("Who?")}), with("users_select", obj{"options": both}), "/options"},
		{"max_selected_items", with("multi_users_select", obj{"max_selected_items": 1}), with("multi_users_select", obj{"max_selected_items": 0}), "/max_selected_items"},
		{"max_selected_items of one", with("users_select", obj{}), with("users_select", obj{"max_selected_items": 1}), "/max_selected_items"},
		{"initial_channel", with("channels_select", obj{"initial_channel": "C0001"}), with("channels_select", obj{"initial_channel": "C0003"}), "/initial_channel"},
		{"initial_conversation", with("conversations_select", obj{"initial_conversation": "C0003"}), with("conversations_select", obj{"initial_conversation": "C9999"}), "/initial_conversation"},
		{"initial_option", with("static_select", obj{"options": both, "initial_option": green}), with("static_select", obj{"options": both, "initial_option": obj{"text": plain("Blue"), "value": "g"}}), "/initial_option"},
		{"initial_option of radio buttons", with("radio_buttons", obj{"options": both, "initial_option": red}), with("radio_buttons", obj{"options": arr{red}, "initial_option": green}), "/initial_option"},
		{"initial_options of checkboxes", with("checkboxes", obj{"options": both, "initial_options": arr{red}}), with("checkboxes", obj{"options": both, "initial_options": arr{}}), "/initial_options"},
		{"a checkbox that isn't there", with("checkboxes", obj{"options": both}), with("checkboxes", obj{"options": arr{red}, "initial_options": arr{red, green}}), "/initial_options/1"},
		{"options of checkboxes", with("checkboxes", obj{"options": tall(10)}), with("checkboxes", obj{"options": tall(11)}), "/options"},
		{"options of radio buttons", with("radio_buttons", obj{"options": tall(10)}), with("radio_buttons", obj{"options": tall(11)}), "/options"},
		{"options of an overflow menu", with("overflow", obj{"options": tall(5)}), with("overflow", obj{"options": tall(6)}), "/options"},
		{"no options", with("overflow", obj{"options": tall(1)}), with("overflow", obj{"options": arr{}}), "/options"},
		{"a link in an option", with("overflow", obj{"options": arr{obj{"text": plain("o"), "value": "v", "url": "https://example.com"}}}),
			with("static_select", obj{"options": arr{obj{"text": plain("o"), "value": "v", "url": "https://example.com"}}}), "/options/0/url"},
		{"mrkdwn in an option", with("radio_buttons", obj{"options": arr{obj{"text": mrkdwn("*o*"), "value": "v", "description": mrkdwn("d")}}}),
			with("static_select", obj{"options": arr{obj{"text": mrkdwn("*o*"), "value": "v"}}}), "/options/0/text/type"},
		{"mrkdwn in a description", with("static_select", obj{"options": arr{obj{"text": plain("o"), "value": "v", "description": plain("d")}}}),
			with("static_select", obj{"options": arr{obj{"text": plain("o"), "value": "v", "description": mrkdwn("d")}}}), "/options/0/description/type"},
		{"an option's value", with("static_select", obj{"options": arr{obj{"text": plain("o"), "value": chars(150)}}}), with("static_select", obj{"options": arr{obj{"text": plain("o"), "value": chars(151)}}}), "/options/0/value"},
		{"initial_date", with("datepicker", obj{"initial_date": "2026-03-02"}), with("datepicker", obj{"initial_date": "2026-02-30"}), "/initial_date"},
		{"initial_date_time", with("datetimepicker", obj{"initial_date_time": 1772442000}), with("datetimepicker", obj{"initial_date_time": 1772442000000}), "/initial_date_time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			open := func(element obj) reply {
				return b.form("views.open", obj{"trigger_id": b.trigger("U0001", ""), "view": modal(obj{"blocks": arr{actions(element)}})})
			}
			if r := open(test.legal); r.body["ok"] != true {
				t.Errorf("legal, but refused: %v", r.body)
			}
			r := open(test.not)
			if r.code() != "invalid_arguments" || !strings.Contains(r.text("response_metadata", "messages", "0"), "[json-pointer:/view/blocks/0/elements/0"+test.pointer+"]") {
				t.Errorf("the answer doesn't point at %s: %v", test.pointer, r.body)
			}
		})
	}
}

// What the app sees of inputs that nobody has touched.
func TestUntouchedInputs(t *testing.T) {
	options := arr{obj{"text": plain("Red"), "value": "r"}}
	red := `{"text":{"text":"Red","type":"plain_text"},"value":"r"}`
	for _, test := range []struct {
		element obj
		want    string // JSON, without the type
	}{
		{obj{"type": "plain_text_input"}, `{"value":null}`},
		{obj{"type": "number_input", "is_decimal_allowed": false, "initial_value": "5"}, `{"value":"5"}`},
		{obj{"type": "static_select", "options": options}, `{"selected_option":null}`},
		{obj{"type": "static_select", "options": options, "initial_option": options[0]}, `{"selected_option":` + red + `}`},
		{obj{"type": "radio_buttons", "options": options, "initial_option": options[0]}, `{"selected_option":` + red + `}`},
		{obj{"type": "checkboxes", "options": options}, `{"selected_options":[]}`},
		{obj{"type": "checkboxes", "options": options, "initial_options": options}, `{"selected_options":[` + red + `]}`},
		{obj{"type": "users_select"}, `{"selected_user":null}`},
		{obj{"type": "users_select", "initial_user": "U0004"}, `{"selected_user":"U0004"}`},
		{obj{"type": "multi_users_select"}, `{"selected_users":[]}`},
		{obj{"type": "multi_users_select", "initial_users": arr{"U0004"}}, `{"selected_users":["U0004"]}`},
		{obj{"type": "datepicker", "initial_date": "2026-03-02"}, `{"selected_date":"2026-03-02"}`},
	} {
		b := newBench(t)
		app := b.connect(nil)
		kind := test.element["type"]
		test.element["action_id"] = "x"
		block := obj{"type": "input", "block_id": "a", "label": plain("L"), "optional": true, "element": test.element}
		r := b.must(b.form("views.open", obj{"trigger_id": b.trigger("U0001", ""), "view": modal(obj{"submit": plain("S"), "blocks": arr{block}})}))
		b.must(b.post("/people/ada/views/"+r.text("view", "id")+"/submit", obj{}))
		var payload obj
		if err := json.Unmarshal(wait(t, app.events).Request.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		state, _ := dig(payload, "view", "state", "values", "a", "x").(obj)
		if state["type"] != kind {
			t.Errorf("%v: the state's type is %v", kind, state["type"])
		}
		delete(state, "type")
		if got, _ := json.Marshal(state); string(got) != test.want {
			t.Errorf("%v: %s, want %s", kind, got, test.want)
		}
	}
}

// Outside of input blocks a choice is told at once, with its own field and the state of the view.
func TestChoicesInAModal(t *testing.T) {
	b := newBench(t)
	app := b.connect(nil)
	options := arr{obj{"text": plain("Red"), "value": "r"}}
	block := actions(obj{"type": "users_select", "action_id": "who", "initial_user": "U0003"}, obj{"type": "radio_buttons", "action_id": "colour", "options": options},
		obj{"type": "overflow", "action_id": "more", "options": options})
	block["block_id"] = "b"
	view := b.must(b.form("views.open", obj{"trigger_id": b.trigger("U0001", ""), "view": modal(obj{"blocks": arr{block}})})).text("view", "id")
	press := func(action, value string) slack.InteractionCallback {
		t.Helper()
		b.must(b.post("/people/ada/actions", obj{"view_id": view, "action_id": action, "value": value}))
		return wait(t, app.events).Data.(slack.InteractionCallback)
	}
	who := press("who", "kenji")
	if a := who.ActionCallback.BlockActions[0]; a.SelectedUser != "U0004" || a.InitialUser != "U0003" || who.View.State.Values["b"]["who"].SelectedUser != "U0004" {
		t.Errorf("a person: %+v %+v", a, who.View.State)
	}
	if who.Container.Type != "view" || who.Container.ViewID != view || who.TriggerID == "" || who.ResponseURL != "" {
		t.Errorf("where it was: %+v", who.Container)
	}
	colour := press("colour", "Red")
	if a := colour.ActionCallback.BlockActions[0]; a.SelectedOption.Value != "r" || colour.View.State.Values["b"]["who"].SelectedUser != "U0004" {
		t.Errorf("radio buttons: %+v %+v", a, colour.View.State)
	}
	more := press("more", "r")
	if _, kept := more.View.State.Values["b"]["more"]; kept || more.ActionCallback.BlockActions[0].SelectedOption.Value != "r" {
		t.Errorf("an overflow menu has no state: %+v", more.View.State)
	}
	if r := b.post("/people/ada/actions", obj{"view_id": view, "action_id": "who", "value": "nobody"}); r.code() != "invalid_value" {
		t.Errorf("nobody: %v", r)
	}
}
