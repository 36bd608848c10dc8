package nodetest

import (
	"net/http"
	"testing"
)

// open makes the app open its form for the person, and returns the form.
func (d *harness) open(user string) obj {
	d.t.Helper()
	d.says(user, "#support", "hello desk", "")
	ts := text1(d.see("said"), "ts")
	d.does(user+"/actions", obj{"channel": "#support", "ts": ts, "action_id": "open_ticket"})
	d.see("opened")
	return d.view(user, "Ticket")
}

func formOpened(t *testing.T, d *harness) {
	d.says("sam", "#support", "hello desk", "")
	ts := text1(d.see("said"), "ts")
	d.does("sam/actions", obj{"channel": "#support", "ts": ts, "action_id": "open_ticket", "value": "from-message"})
	same(t, d.see("action"), "action.value", "from-message")
	view := d.see("opened")
	same(t, view, "callback_id", "ticket")
	same(t, view, "private_metadata", "ticket-1")
	there(t, view, "id", "hash", "root_view_id", "team_id", "app_id", "bot_id")
	same(t, d.see("second open"), "error", "exchanged_trigger_id")

	id := text1(d.view("sam", "Ticket"), "id")
	offered := d.does("sam/options", obj{"view_id": id, "action_id": "product", "value": "l"})
	same(t, d.see("options"), "view.id", id)
	same(t, offered, "options.0.value", "lamp")
	d.does("sam/actions", obj{"view_id": id, "action_id": "refresh"})
	same(t, d.see("refreshed"), "id", id)
	same(t, d.see("second update"), "error", "hash_conflict")
	d.view("sam", "Refreshed")
	d.does("sam/views/"+id+"/close", obj{})
	closed := d.see("closed")
	same(t, closed, "view.id", id)
	same(t, closed, "is_cleared", false)
}

func formSubmitted(t *testing.T, d *harness) {
	submit := func(id, subject string) (int, obj) {
		t.Helper()
		status, out := d.person("POST", "ada/views/"+id+"/submit", obj{"values": obj{"subject": obj{"text": subject}, "amount": obj{"number": "4.5"}}})
		saw := d.see("submitted")
		same(t, saw, "view.state.values.subject.text.type", "plain_text_input")
		same(t, saw, "view.state.values.subject.text.value", subject)
		same(t, saw, "view.state.values.amount.number.value", "4.5")
		same(t, saw, "user.id", "U0001")
		same(t, saw, "type", "view_submission")
		return status, out
	}
	id := text1(d.open("ada"), "id")
	status, out := submit(id, "errors")
	if status != http.StatusBadRequest {
		t.Errorf("the app's errors did not keep the form open: %d %v", status, out)
	}
	same(t, out, "errors.subject", "Say more")
	_, out = submit(id, "update")
	same(t, out, "response_action", "update")
	d.view("ada", "Updated")
	_, out = submit(id, "push")
	same(t, out, "response_action", "push")
	pushed := d.view("ada", "Pushed")
	same(t, pushed, "root_view_id", id)
	same(t, pushed, "previous_view_id", id)
	d.does("ada/views/"+text1(pushed, "id")+"/submit", obj{"values": obj{"subject": obj{"text": "fine"}}})
	same(t, d.see("submitted"), "view.callback_id", "details")
	d.view("ada", "Updated")
	_, out = submit(id, "clear")
	same(t, out, "response_action", "clear")
	if list, _ := d.reads("ada/views")["views"].([]any); len(list) != 0 {
		t.Errorf("forms are open after the app cleared them: %v", list)
	}
	id = text1(d.open("ada"), "id")
	if status, _ := submit(id, "done"); status != http.StatusOK {
		t.Errorf("a plain submission: %d", status)
	}
}

func formStacked(t *testing.T, d *harness) {
	root := text1(d.open("teo"), "id")
	d.does("teo/actions", obj{"view_id": root, "action_id": "push"})
	second := d.see("pushed")
	same(t, second, "previous_view_id", root)
	d.does("teo/actions", obj{"view_id": second["id"], "action_id": "push"})
	third := d.see("pushed")
	d.does("teo/views/"+text1(third, "id")+"/close", obj{"all": true})
	same(t, d.see("closed"), "is_cleared", true)
	if list, _ := d.reads("teo/views")["views"].([]any); len(list) != 0 {
		t.Errorf("forms are left: %v", list)
	}
}
