package workspace

import (
	"encoding/json"
	"testing"

	"github.com/slack-go/slack/socketmode"
)

// A button tells where it was pressed: in a channel, in a thread, or in what only one person sees, which Slack doesn't
// send along.
func TestWhereAButtonWas(t *testing.T) {
	b := newBench(t)
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
