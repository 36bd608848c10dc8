package workspaceclient

import "testing"

func TestCommand(t *testing.T) {
	o := openOffice(t, func(e envelope) any {
		if e.Payload["text"] == "list" {
			return object{"text": "Nothing waits for you."}
		}
		return nil
	})
	sam, ada := o.visitor("sam"), o.visitor("ada")
	for text, want := range map[string]string{"list": "Nothing waits for you.", "away until monday": ""} {
		got, err := sam.Command(t.Context(), "#support", "/countersign", text)
		if err != nil || got != want {
			t.Errorf("%s: %q %v", text, got, err)
		}
		if e := o.next(); e.Type != "slash_commands" || e.Payload["text"] != text || e.Payload["user_id"] != "U0100" || e.Payload["channel_id"] != "C0001" {
			t.Errorf("the app received %+v", e)
		}
	}
	if _, err := sam.Command(t.Context(), "#support", "/nothing", ""); Code(err) != "unknown_command" {
		t.Errorf("an unknown command: %v", err)
	}
	if got, err := sam.Ephemerals(t.Context(), "#support", ""); err != nil || len(got) != 1 || got[0].Text != "Nothing waits for you." || got[0].Channel != "C0001" {
		t.Errorf("sam was shown %+v %v", got, err)
	}
	if got, err := ada.Ephemerals(t.Context(), "#support", ""); err != nil || len(got) != 0 {
		t.Errorf("ada was shown %+v %v", got, err)
	}
}

// The test reads an ephemeral message in a thread, and presses the message's button.
func TestEphemeralsInThreads(t *testing.T) {
	o := openOffice(t, nil)
	sam := o.visitor("sam")
	ts, err := sam.Say(t.Context(), "#support", "", "hello")
	if err != nil {
		t.Fatal(err)
	}
	o.next()
	o.bot("chat.postEphemeral", object{"channel": "C0001", "user": "U0100", "thread_ts": ts, "text": "Shall I?", "blocks": []object{
		{"type": "actions", "block_id": "b", "elements": []object{{"type": "button", "action_id": "yes", "value": "1", "text": plain("Yes, please")}}}}})
	if got, err := sam.Ephemerals(t.Context(), "#support", ""); err != nil || len(got) != 0 {
		t.Errorf("outside of the thread: %+v %v", got, err)
	}
	got, err := sam.Ephemerals(t.Context(), "#support", ts)
	if err != nil || len(got) != 1 {
		t.Fatalf("in the thread: %+v %v", got, err)
	}
	button, ok := Button(got[0].Blocks, "Yes")
	if !ok {
		t.Fatalf("no button: %s", got[0].Blocks)
	}
	if err := sam.Press(t.Context(), got[0], button); err != nil {
		t.Fatal(err)
	}
	e := o.next()
	container, _ := e.Payload["container"].(object)
	if e.Payload["type"] != "block_actions" || container["is_ephemeral"] != true || container["thread_ts"] != ts || container["message_ts"] != got[0].TS {
		t.Errorf("the app received %+v", e)
	}
}
