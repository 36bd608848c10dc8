package workspace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

func (b *harness) trigger(user, view string) string {
	b.srv.mu.Lock()
	defer b.srv.mu.Unlock()
	return b.srv.triggers.create(user, view)
}

func request(title string, blocks ...slack.Block) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: slack.NewTextBlockObject("plain_text", title, false, false),
		Submit: slack.NewTextBlockObject("plain_text", "Send", false, false),
		Blocks: slack.Blocks{BlockSet: append([]slack.Block{slack.NewDividerBlock()}, blocks...)},
	}
}

func textInput(block, action, initial string) *slack.InputBlock {
	e := slack.NewPlainTextInputBlockElement(nil, action)
	e.InitialValue = initial
	return slack.NewInputBlock(block, slack.NewTextBlockObject("plain_text", "L", false, false), nil, e)
}

func TestTriggersWorkOnceAndForThreeSeconds(t *testing.T) {
	b := newHarness(t)
	trigger := b.trigger("U0001", "")
	b.ticks.advance(3 * time.Second)
	bad := request("T")
	bad.Title.Text = "far too long a title for any modal"
	if _, err := b.api.OpenView(trigger, bad); code(err) != "invalid_arguments" {
		t.Errorf("a bad view: %v", err)
	}
	if _, err := b.api.OpenView(trigger, request("T")); err != nil {
		t.Errorf("the bad view used the trigger up: %v", err)
	}
	if _, err := b.api.OpenView(trigger, request("T")); code(err) != "exchanged_trigger_id" {
		t.Errorf("a second time: %v", err)
	}
	late := b.trigger("U0001", "")
	b.ticks.advance(3*time.Second + time.Millisecond)
	if _, err := b.api.OpenView(late, request("T")); code(err) != "expired_trigger_id" {
		t.Errorf("after three seconds: %v", err)
	}
	if _, err := b.api.OpenView("123.456.abcdef", request("T")); code(err) != "invalid_trigger_id" {
		t.Errorf("an invented one: %v", err)
	}
	if _, err := b.api.OpenView("nonsense", request("T")); code(err) != "invalid_arguments" {
		t.Errorf("a malformed one: %v", err)
	}
}

func TestTheStackIsThreeHigh(t *testing.T) {
	b := newHarness(t)
	if _, err := b.api.PushView(b.trigger("U0001", ""), request("T")); code(err) != "not_found" {
		t.Errorf("a push onto nothing: %v", err)
	}
	first, err := b.api.OpenView(b.trigger("U0001", ""), request("1"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.api.PushView(b.trigger("U0001", first.ID), request("2"))
	if err != nil || second.RootViewID != first.ID || second.PreviousViewID != first.ID {
		t.Fatalf("second: %+v %v", second, err)
	}
	third, err := b.api.PushView(b.trigger("U0001", second.ID), request("3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.api.PushView(b.trigger("U0001", third.ID), request("4")); code(err) != "push_limit_reached" {
		t.Errorf("a fourth: %v", err)
	}
	if r := b.post("/people/ada/views/"+first.ID+"/submit", obj{}); r.status != 404 || r.code() != "view_not_found" {
		t.Errorf("submitting below the top: %v", r)
	}
	b.must(b.post("/people/ada/views/"+third.ID+"/close", obj{}))
	if _, err := b.api.UpdateView(request("x"), "", "", third.ID); code(err) != "not_found" {
		t.Errorf("updating a closed view: %v", err)
	}
	b.must(b.post("/people/ada/views/"+second.ID+"/close", obj{"all": true}))
	if list := b.get("/people/ada/views").body["views"].([]any); len(list) != 0 {
		t.Errorf("still open: %v", list)
	}
}

func TestViewUpdates(t *testing.T) {
	b := newHarness(t)
	req := request("T", textInput("a", "x", "first"), textInput("b", "y", "second"))
	req.ExternalID = "mine"
	v, err := b.api.OpenView(b.trigger("U0001", ""), req)
	if err != nil || v.State.Values["a"]["x"].Value != "first" {
		t.Fatalf("%+v %v", v, err)
	}
	if _, err := b.api.OpenView(b.trigger("U0002", ""), req); code(err) != "duplicate_external_id" {
		t.Errorf("the external_id a second time: %v", err)
	}
	b.must(b.post("/people/ada/actions", obj{"view_id": v.ID, "action_id": "x", "value": "typed"}))
	next := request("T", textInput("a", "x", "first"), textInput("b", "z", "other"))
	updated, err := b.api.UpdateView(next, "mine", v.Hash, "")
	if err != nil {
		t.Fatal(err)
	}
	if updated.ID != v.ID || updated.Hash == v.Hash {
		t.Errorf("updated: %+v", updated)
	}
	if got := updated.State.Values; got["a"]["x"].Value != "typed" || got["b"]["z"].Value != "other" {
		t.Errorf("typed values must stay in inputs that still exist: %+v", got)
	}
	if _, err := b.api.UpdateView(next, "", v.Hash, v.ID); code(err) != "hash_conflict" {
		t.Errorf("an old hash: %v", err)
	}
	if _, err := b.api.UpdateView(next, "", "", v.ID); err != nil {
		t.Errorf("without a hash: %v", err)
	}
}

func TestHomes(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	if r := b.must(b.get("/people/sam/home")); r.body["view"] != nil {
		t.Errorf("a home before any: %v", r)
	}
	if e := wait(t, app.events); e.Type != socketmode.EventTypeEventsAPI {
		t.Fatal(e)
	}
	home := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{
		slack.NewActionBlock("b", slack.NewButtonBlockElement("go", "1", slack.NewTextBlockObject("plain_text", "Go", false, false)))}}}
	v, err := b.api.PublishView("U0100", home, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.api.PublishView("U0100", home, "old"); code(err) != "hash_conflict" {
		t.Errorf("an old hash: %v", err)
	}
	if _, err := b.api.PublishView("U9999", home, ""); code(err) != "user_not_found" {
		t.Errorf("for nobody: %v", err)
	}
	if r := b.must(b.get("/people/sam/home?quiet=true")); r.text("view", "id") != v.ID {
		t.Errorf("the home: %v", r)
	}
	b.must(b.post("/people/sam/actions", obj{"view_id": "home", "action_id": "go"}))
	click := wait(t, app.events).Data.(slack.InteractionCallback)
	if click.View.ID != v.ID || click.Container.Type != "view" || click.ActionCallback.BlockActions[0].Value != "1" {
		t.Errorf("the click: %+v", click)
	}
}

// The test tries the valid and invalid answers to a submission.
func TestSubmissionAnswers(t *testing.T) {
	b := newHarness(t)
	answers := make(chan any, 1)
	app := b.connect(func(e socketmode.Event) (bool, any) { return true, <-answers })
	open := func() string {
		t.Helper()
		v, err := b.api.OpenView(b.trigger("U0001", ""), request("root", textInput("a", "x", "v")))
		if err != nil {
			t.Fatal(err)
		}
		return v.ID
	}
	submit := func(view string, answer any) reply {
		answers <- answer
		r := b.post("/people/ada/views/"+view+"/submit", obj{"values": obj{"a": "new"}})
		if got := wait(t, app.events).Data.(slack.InteractionCallback).View.State.Values["a"]["x"].Value; got != "new" {
			t.Errorf("submitted %q", got)
		}
		return r
	}
	titles := func() (out []any) {
		for _, v := range b.get("/people/ada/views").body["views"].([]any) {
			out = append(out, dig(v, "title", "text"))
		}
		return out
	}
	pushed, updated := request("pushed"), request("updated")
	tooLong := request("a title that is far too long")

	if r := b.must(submit(open(), slack.NewPushViewSubmissionResponse(&pushed))); r.text("response_action") != "push" || len(titles()) != 2 || titles()[1] != "pushed" {
		t.Errorf("push: %v %v", r, titles())
	}
	if b.must(submit(open(), slack.NewUpdateViewSubmissionResponse(&updated))); len(titles()) != 1 || titles()[0] != "updated" {
		t.Errorf("update: %v", titles())
	}
	if b.must(submit(open(), slack.NewClearViewSubmissionResponse())); len(titles()) != 0 {
		t.Errorf("clear: %v", titles())
	}
	if b.must(submit(open(), nil)); len(titles()) != 0 {
		t.Errorf("an empty acknowledgement: %v", titles())
	}
	if r := submit(open(), slack.NewUpdateViewSubmissionResponse(&tooLong)); r.status != 400 || r.code() != "invalid_app_response" || len(titles()) != 1 {
		t.Errorf("a view that Slack refuses: %v %v", r, titles())
	}
	if r := submit(open(), slack.NewErrorsViewSubmissionResponse(map[string]string{"nowhere": "x"})); r.code() != "invalid_app_response" || len(titles()) != 1 {
		t.Errorf("errors without a place: %v %v", r, titles())
	}
}

func TestViewClosed(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	req := request("T")
	req.NotifyOnClose = true
	v, err := b.api.OpenView(b.trigger("U0001", ""), req)
	if err != nil {
		t.Fatal(err)
	}
	b.must(b.post("/people/ada/views/"+v.ID+"/close", obj{"all": true}))
	closed := wait(t, app.events).Data.(slack.InteractionCallback)
	if closed.Type != slack.InteractionTypeViewClosed || closed.View.ID != v.ID || !closed.IsCleared {
		t.Errorf("closed: %+v", closed)
	}
}

// For many kinds of inputs, the table has the value that a script enters, and the value that the app gets.
func TestInputValues(t *testing.T) {
	options := arr{obj{"text": plain("Red"), "value": "r"}, obj{"text": plain("Green"), "value": "g"}}
	for _, test := range []struct {
		element obj
		value   any
		field   string
		want    string // JSON
	}{
		{obj{"type": "plain_text_input"}, "hi", "value", `"hi"`},
		{obj{"type": "plain_text_input"}, obj{"type": "plain_text_input", "value": "state"}, "value", `"state"`},
		{obj{"type": "number_input", "is_decimal_allowed": true}, 12.5, "value", `"12.5"`},
		{obj{"type": "static_select", "options": options}, "g", "selected_option", `{"text":{"text":"Green","type":"plain_text"},"value":"g"}`},
		{obj{"type": "static_select", "options": options}, "Green", "selected_option", `{"text":{"text":"Green","type":"plain_text"},"value":"g"}`},
		{obj{"type": "static_select", "option_groups": arr{obj{"label": plain("G"), "options": options}}}, "r", "selected_option", `{"text":{"text":"Red","type":"plain_text"},"value":"r"}`},
		{obj{"type": "radio_buttons", "options": options}, obj{"selected_option": obj{"value": "r"}}, "selected_option", `{"text":{"text":"Red","type":"plain_text"},"value":"r"}`},
		{obj{"type": "checkboxes", "options": options}, arr{"g"}, "selected_options", `[{"text":{"text":"Green","type":"plain_text"},"value":"g"}]`},
		{obj{"type": "checkboxes", "options": options}, "g", "selected_options", `[{"text":{"text":"Green","type":"plain_text"},"value":"g"}]`},
		{obj{"type": "multi_users_select"}, arr{"U0001", "U0002"}, "selected_users", `["U0001","U0002"]`},
		{obj{"type": "multi_users_select"}, arr{"kenji", "@Ingrid"}, "selected_users", `["U0004","U0003"]`},
		{obj{"type": "users_select"}, "U0001", "selected_user", `"U0001"`},
		{obj{"type": "users_select"}, "kenji", "selected_user", `"U0004"`},
		{obj{"type": "channels_select"}, "C0001", "selected_channel", `"C0001"`},
		{obj{"type": "datepicker"}, "2026-03-02", "selected_date", `"2026-03-02"`},
		{obj{"type": "timepicker"}, "09:30", "selected_time", `"09:30"`},
		{obj{"type": "datetimepicker"}, 1772442000, "selected_date_time", `1772442000`},
		{obj{"type": "email_text_input"}, "a@example.com", "value", `"a@example.com"`},
	} {
		b := newHarness(t)
		app := b.connect(nil)
		test.element["action_id"] = "x"
		r := b.form("views.open", obj{"trigger_id": b.trigger("U0001", ""), "view": modal(obj{"submit": plain("S"), "blocks": arr{obj{"type": "input", "block_id": "a", "label": plain("L"), "element": test.element}}})})
		b.must(r)
		b.must(b.post("/people/ada/views/"+r.text("view", "id")+"/submit", obj{"values": obj{"a": obj{"x": test.value}}}))
		var payload obj
		if err := json.Unmarshal(wait(t, app.events).Request.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(dig(payload, "view", "state", "values", "a", "x", test.field))
		if string(got) != test.want {
			t.Errorf("%v with %v: %s, want %s", test.element["type"], test.value, got, test.want)
		}
	}
}

// The workspace itself checks the inputs of a modal, as Slack's client does. The app gets nothing before the inputs are
// valid.
func TestInputRules(t *testing.T) {
	b := newHarness(t)
	options := arr{obj{"text": plain("Red"), "value": "r"}}
	for _, test := range []struct {
		element obj
		value   any
		code    string
	}{
		{obj{"type": "plain_text_input"}, "", "view_errors"},
		{obj{"type": "plain_text_input", "max_length": 3}, "éééé", "view_errors"},
		{obj{"type": "plain_text_input", "min_length": 3}, "éé", "view_errors"},
		{obj{"type": "plain_text_input"}, chars(3001), "view_errors"},
		{obj{"type": "number_input", "is_decimal_allowed": false}, "1.5", "view_errors"},
		{obj{"type": "number_input", "is_decimal_allowed": true}, "many", "view_errors"},
		{obj{"type": "number_input", "is_decimal_allowed": true, "min_value": "10"}, "9.99", "view_errors"},
		{obj{"type": "number_input", "is_decimal_allowed": true, "max_value": "10"}, "10.01", "view_errors"},
		{obj{"type": "email_text_input"}, "nobody", "view_errors"},
		{obj{"type": "url_text_input"}, "example", "view_errors"},
		{obj{"type": "static_select", "options": options}, "blue", "invalid_value"},
		{obj{"type": "datepicker"}, "yesterday", "invalid_value"},
		{obj{"type": "checkboxes", "options": options}, arr{}, "view_errors"},
		{obj{"type": "checkboxes", "options": options}, arr{"r", "g"}, "invalid_value"},
		{obj{"type": "radio_buttons", "options": options}, "", "view_errors"},
		{obj{"type": "users_select"}, "", "view_errors"},
		{obj{"type": "users_select"}, "U9999", "invalid_value"},
		{obj{"type": "users_select"}, "dora", "invalid_value"}, // deactivated
		{obj{"type": "multi_users_select", "max_selected_items": 1}, arr{"U0001", "U0002"}, "invalid_value"},
		{obj{"type": "channels_select"}, "C0003", "invalid_value"},      // a private channel
		{obj{"type": "conversations_select"}, "C0003", "invalid_value"}, // a private channel
	} {
		test.element["action_id"] = "x"
		r := b.must(b.form("views.open", obj{"trigger_id": b.trigger("U0001", ""), "view": modal(obj{"submit": plain("S"), "blocks": arr{obj{"type": "input", "block_id": "a", "label": plain("L"), "element": test.element}}})}))
		path := "/people/ada/views/" + r.text("view", "id") + "/submit"
		if r := b.post(path, obj{"values": obj{"x": test.value}}); r.status != 400 || r.code() != test.code {
			t.Errorf("%v with %v: %v", test.element, test.value, r)
		}
		if r := b.post(path, obj{"values": obj{"elsewhere": "x"}}); r.code() != "unknown_input" {
			t.Errorf("an input that isn't there: %v", r)
		}
	}
}

// An external select accepts only the app's options.
func TestExternalSelects(t *testing.T) {
	b := newHarness(t)
	app := b.connect(func(e socketmode.Event) (bool, any) {
		if callback, ok := e.Data.(slack.InteractionCallback); ok && callback.Type == slack.InteractionTypeBlockSuggestion {
			return true, obj{"options": arr{obj{"text": plain("Order " + callback.Value), "value": callback.Value}}}
		}
		return true, nil
	})
	r := b.must(b.form("views.open", obj{"trigger_id": b.trigger("U0001", ""), "view": modal(obj{"submit": plain("S"), "blocks": arr{
		obj{"type": "input", "block_id": "a", "label": plain("L"), "dispatch_action": true, "element": obj{"type": "external_select", "action_id": "order"}}}})}))
	view := r.text("view", "id")
	choose := obj{"view_id": view, "action_id": "order", "value": "17"}
	if r := b.post("/people/ada/actions", choose); r.code() != "invalid_value" {
		t.Errorf("before anything was offered: %v", r)
	}
	offered := b.must(b.post("/people/ada/options", obj{"view_id": view, "action_id": "order", "value": "17"}))
	if offered.text("options", "0", "text", "text") != "Order 17" {
		t.Errorf("offered: %v", offered)
	}
	wait(t, app.events)
	b.must(b.post("/people/ada/actions", choose))
	if a := wait(t, app.events).Data.(slack.InteractionCallback).ActionCallback.BlockActions[0]; a.SelectedOption.Value != "17" {
		t.Errorf("chosen: %+v", a)
	}
	if r := b.post("/people/ada/options", obj{"view_id": view, "action_id": "nothing", "value": ""}); r.code() != "unknown_action" {
		t.Errorf("options of nothing: %v", r)
	}
}

// A button's payload says where the button was: in a channel, in a thread, or in an ephemeral message. The payload does
// not include an ephemeral message.
func TestWhereAButtonWas(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	parent := b.say("sam", "C0001", "question", "")
	blocks := arr{actions(button(obj{"value": "v"}))}
	blocks[0].(obj)["block_id"] = "b"
	for _, test := range []struct {
		method, thread string
		ephemeral      bool
	}{
		{"chat.postMessage", "", false},
		{"chat.postMessage", parent, false},
		{"chat.postEphemeral", "", true},
		{"chat.postEphemeral", parent, true},
	} {
		posted := b.must(b.form(test.method, obj{"channel": "C0001", "user": "U0100", "text": "card", "blocks": blocks, "thread_ts": test.thread}))
		ts := posted.text("ts") + posted.text("message_ts")
		b.must(b.post("/people/sam/actions", obj{"channel": "C0001", "ts": ts, "action_id": "a"}))
		var payload obj
		for payload == nil {
			if e := wait(t, app.events); e.Type == socketmode.EventTypeInteractive {
				if err := json.Unmarshal(e.Request.Payload, &payload); err != nil {
					t.Fatal(err)
				}
			}
		}
		place, _ := json.Marshal(payload["container"])
		want := obj{"type": "message", "message_ts": ts, "channel_id": "C0001", "is_ephemeral": test.ephemeral}
		if test.thread != "" {
			want["thread_ts"] = test.thread
		}
		if wanted, _ := json.Marshal(want); string(place) != string(wanted) {
			t.Errorf("%+v: container %s, want %s", test, place, wanted)
		}
		if message, sent := payload["message"]; sent == test.ephemeral || (sent && (dig(message, "ts") != ts || dig(message, "blocks", "0", "block_id") != "b")) {
			t.Errorf("%+v: message %v", test, message)
		}
		if test.thread != "" && !test.ephemeral && (dig(payload, "message", "thread_ts") != parent || dig(payload, "message", "parent_user_id") != "U0100") {
			t.Errorf("%+v: the reply is %v", test, payload["message"])
		}
		if payload["type"] != "block_actions" || dig(payload, "user", "id") != "U0100" || dig(payload, "user", "team_id") != "T0001" || dig(payload, "channel", "id") != "C0001" ||
			dig(payload, "actions", "0", "value") != "v" || dig(payload, "actions", "0", "block_id") != "b" || dig(payload, "actions", "0", "action_ts") == nil || payload["trigger_id"] == nil ||
			payload["response_url"] == nil || dig(payload, "state", "values") == nil || payload["api_app_id"] != "A0001" {
			t.Errorf("%+v: %v", test, payload)
		}
		if r := b.post("/people/ada/actions", obj{"channel": "C0001", "ts": ts, "action_id": "a"}); test.ephemeral && r.code() != "message_not_found" {
			t.Errorf("%+v: somebody else pressed it: %v", test, r)
		}
		if !test.ephemeral {
			wait(t, app.events)
		}
	}
}

// The test tries the valid and invalid fields of selects, menus and lists of choices.
func TestSelectRules(t *testing.T) {
	b := newHarness(t)
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

// The test checks the state that the app gets for untouched inputs.
func TestUntouchedInputs(t *testing.T) {
	options := arr{obj{"text": plain("Red"), "value": "r"}}
	red := `{"text":{"text":"Red","type":"plain_text"},"value":"r"}`
	for _, test := range []struct {
		element obj
		want    string // the state as JSON, without its type
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
		b := newHarness(t)
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

// Outside of input blocks, a choice is sent to the app immediately. The payload has the choice and the state of the
// view.
func TestChoicesInAModal(t *testing.T) {
	b := newHarness(t)
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
