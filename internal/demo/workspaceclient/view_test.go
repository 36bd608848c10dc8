package workspaceclient

import (
	"encoding/json"
	"testing"
)

func input(block string, element object) object {
	element["action_id"] = "x"
	return object{"type": "input", "block_id": block, "label": plain(block), "optional": true, "element": element}
}

// The test fills in a form with many kinds of fields, in the way that a scenario does.
func TestSubmit(t *testing.T) {
	o := openOffice(t, nil)
	ada := o.visitor("ada")
	options := []object{{"text": plain("In the office"), "value": "office"}, {"text": plain("Away"), "value": "away"}}
	if _, err := ada.Command(t.Context(), "#support", "/countersign", "away"); err != nil {
		t.Fatal(err)
	}
	trigger := o.next().Payload["trigger_id"]
	o.bot("views.open", object{"trigger_id": trigger, "view": object{"type": "modal", "title": plain("Absence"), "submit": plain("Save"), "blocks": []object{
		input("delegate", object{"type": "users_select"}),
		input("tell", object{"type": "multi_users_select"}),
		input("where", object{"type": "radio_buttons", "options": options}),
		input("days", object{"type": "checkboxes", "options": options}),
		input("kind", object{"type": "static_select", "options": options}),
		input("until", object{"type": "datepicker"}),
		input("hours", object{"type": "number_input", "is_decimal_allowed": true}),
		input("note", object{"type": "plain_text_input"}),
		input("nothing", object{"type": "users_select"}),
	}}})
	views, err := ada.Views(t.Context())
	if err != nil || len(views) != 1 {
		t.Fatalf("%+v %v", views, err)
	}
	values := map[string]string{
		"delegate": "kenji", "tell": "U0003, @teo", "where": "away", "days": "office,Away", "kind": "In the office",
		"until": "2026-03-09", "hours": "7.5", "note": "back on Monday, at nine",
	}
	if err := ada.Submit(t.Context(), views[0].ID, map[string]string{"delegate": "nobody"}); Code(err) != "invalid_value" {
		t.Errorf("nobody: %v", err)
	}
	if err := ada.Submit(t.Context(), views[0].ID, values); err != nil {
		t.Fatal(err)
	}
	state := o.next().Payload["view"].(object)["state"].(object)["values"].(object)
	for block, want := range map[string]string{
		"delegate": `{"selected_user":"U0004","type":"users_select"}`,
		"tell":     `{"selected_users":["U0003","U0002"],"type":"multi_users_select"}`,
		"where":    `{"selected_option":{"text":{"text":"Away","type":"plain_text"},"value":"away"},"type":"radio_buttons"}`,
		"days": `{"selected_options":[{"text":{"text":"In the office","type":"plain_text"},"value":"office"},` +
			`{"text":{"text":"Away","type":"plain_text"},"value":"away"}],"type":"checkboxes"}`,
		"kind":    `{"selected_option":{"text":{"text":"In the office","type":"plain_text"},"value":"office"},"type":"static_select"}`,
		"until":   `{"selected_date":"2026-03-09","type":"datepicker"}`,
		"hours":   `{"type":"number_input","value":"7.5"}`,
		"note":    `{"type":"plain_text_input","value":"back on Monday, at nine"}`,
		"nothing": `{"selected_user":null,"type":"users_select"}`,
	} {
		if got, _ := json.Marshal(state[block].(object)["x"]); string(got) != want {
			t.Errorf("%s: %s, want %s", block, got, want)
		}
	}
	if views, err = ada.Views(t.Context()); err != nil || len(views) != 0 {
		t.Errorf("still open: %+v %v", views, err)
	}
}

// A choice in a message's menu is sent as a press with a value.
func TestPressChooses(t *testing.T) {
	o := openOffice(t, nil)
	ada := o.visitor("ada")
	o.bot("chat.postMessage", object{"channel": "C0001", "text": "Who takes it?", "blocks": []object{
		{"type": "actions", "block_id": "b", "elements": []object{{"type": "users_select", "action_id": "who"}}}}})
	o.next()
	messages, err := ada.Messages(t.Context(), "#support", "")
	if err != nil || len(messages) != 1 {
		t.Fatalf("%+v %v", messages, err)
	}
	picker := Elements(messages[0].Blocks)[0]
	picker.Value = "priya"
	if err := ada.Press(t.Context(), messages[0], picker); err != nil {
		t.Fatal(err)
	}
	action := o.next().Payload["actions"].([]any)[0].(object)
	if action["selected_user"] != "U0101" || action["action_id"] != "who" || action["block_id"] != "b" {
		t.Errorf("the app received %v", action)
	}
}
