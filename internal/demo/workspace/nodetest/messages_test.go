package nodetest

import (
	"net/http"
	"slices"
	"testing"
)

func messages(t *testing.T, d *harness) {
	ts := d.says("sam", "#support", "hello desk, are you there?", "")
	saw := d.see("message")
	same(t, saw, "message.type", "message")
	same(t, saw, "message.channel", "C0001")
	same(t, saw, "message.channel_type", "channel")
	same(t, saw, "message.user", "U0100")
	same(t, saw, "message.ts", ts)
	same(t, saw, "message.text", "hello desk, are you there?")
	same(t, saw, "context.botId", "B0001")
	same(t, saw, "context.botUserId", "U0BOT")
	same(t, saw, "context.teamId", "T0001")
	said := d.see("said")
	same(t, said, "channel", "C0001")
	same(t, said, "message.thread_ts", ts)
	same(t, said, "message.bot_id", "B0001")
	same(t, said, "message.bot_profile.app_id", "A0001")
	d.sees("sam", "#support", ts, "the answer in the thread", texted("Hello"))

	d.says("ada", "#support", "order 17", "")
	d.sees("sam", "#support", "", "an answer made of the message's own words", texted("Order 17 it is."))
}

func mentions(t *testing.T, d *harness) {
	ts := d.says("sam", "#support", "@Countersign what is new?", "")
	saw := d.see("app_mention")
	same(t, saw, "event.ts", ts)
	same(t, saw, "event.user", "U0100")
	same(t, saw, "event.channel", "C0001")
	same(t, saw, "event.text", "<@U0BOT> what is new?")
	same(t, saw, "body.team_id", "T0001")
	same(t, saw, "body.api_app_id", "A0001")
	there(t, saw, "body.event_id", "body.event_time", "body.authorizations.0.user_id")
	d.sees("sam", "#support", ts, "the mention answered in its thread", texted("<@U0100> asked"))
}

func changes(t *testing.T, d *harness) {
	ts := d.says("ada", "#support", "To be changed", "")
	d.does("ada/edit", obj{"channel": "#support", "ts": ts, "text": "Changed"})
	changed := d.see("message_changed")
	same(t, changed, "message.text", "Changed")
	same(t, changed, "message.edited.user", "U0001")
	same(t, changed, "previous_message.text", "To be changed")

	d.does("sam/reactions", obj{"channel": "#support", "ts": ts, "name": "eyes"})
	added := d.see("reaction_added")
	same(t, added, "reaction", "eyes")
	same(t, added, "user", "U0100")
	same(t, added, "item.ts", ts)
	same(t, added, "item_user", "U0001")
	d.does("sam/reactions", obj{"channel": "#support", "ts": ts, "name": "eyes", "remove": true})
	d.see("reaction_removed")
	d.call("reactions.add", obj{"channel": "C0001", "timestamp": ts, "name": "tada"})
	same(t, d.call("reactions.get", obj{"channel": "C0001", "timestamp": ts}), "message.reactions.0.name", "tada")
	d.call("reactions.remove", obj{"channel": "C0001", "timestamp": ts, "name": "tada"})

	d.does("ada/delete", obj{"channel": "#support", "ts": ts})
	same(t, d.see("message_deleted"), "deleted_ts", ts)

	d.does("priya/leave", obj{"channel": "#support"})
	same(t, d.see("member_left_channel"), "user", "U0101")
	d.does("ada/invite", obj{"channel": "#support", "users": arr{"priya"}})
	joined := d.see("member_joined_channel")
	same(t, joined, "user", "U0101")
	same(t, joined, "inviter", "U0001")

	sent := d.call("chat.postMessage", obj{"channel": "C0001", "text": "first"})
	d.call("chat.update", obj{"channel": "C0001", "ts": sent["ts"], "text": "second"})
	d.sees("sam", "#support", "", "the app's own edit", texted("second"))
	d.call("chat.delete", obj{"channel": "C0001", "ts": sent["ts"]})
}

func choices(t *testing.T, d *harness) {
	thread := d.says("sam", "#support", "hello desk", "")
	ts := text1(d.see("said"), "ts")
	choose := func(action string, value any) obj {
		t.Helper()
		d.does("sam/actions", obj{"channel": "#support", "ts": ts, "action_id": action, "value": value})
		saw := d.see("action")
		same(t, saw, "name", action)
		same(t, saw, "container.type", "message")
		same(t, saw, "container.message_ts", ts)
		same(t, saw, "container.thread_ts", thread)
		return saw
	}
	same(t, choose("priority", "high"), "action.selected_option.value", "high")
	same(t, choose("labels", arr{"bug", "praise"}), "action.selected_options.1.value", "praise")
	same(t, choose("assignee", "ada"), "action.selected_user", "U0001")
	same(t, choose("where", "#general"), "action.selected_conversation", "C0000")
	same(t, choose("channel", "#general"), "action.selected_channel", "C0000")
	same(t, choose("more", "copy"), "action.selected_option.value", "copy")
	same(t, choose("due", "2026-03-09"), "action.selected_date", "2026-03-09")
	same(t, choose("hour", "09:30"), "action.selected_time", "09:30")
	same(t, choose("moment", 1772960400), "action.selected_date_time", 1772960400.0)
	same(t, choose("steps", arr{"two"}), "action.selected_options.0.value", "two")
	same(t, choose("feedback", "good"), "action.value", "good")
	last := choose("size", "large")
	same(t, last, "action.selected_option.value", "large")
	same(t, last, "state.choices.priority.selected_option.value", "high")

	offered := d.does("sam/options", obj{"channel": "#support", "ts": ts, "action_id": "product", "value": "ka"})
	asked := d.see("options")
	same(t, asked, "type", "block_suggestion")
	same(t, asked, "value", "ka")
	same(t, offered, "options.0.value", "kayak")
	same(t, choose("product", "kayak"), "action.selected_option.value", "kayak")

	d.does("sam/actions", obj{"channel": "#support", "ts": ts, "action_id": "replace"})
	body := d.see("replace")
	same(t, body, "message.ts", ts)
	there(t, body, "trigger_id", "response_url", "api_app_id", "team.id", "user.id")
	d.sees("sam", "#support", thread, "the message replaced through its response URL", func(m obj) bool { return m["ts"] == ts && m["text"] == "Replaced" })
	if status, out := d.person("POST", "sam/actions", obj{"channel": "#support", "ts": ts, "action_id": "remove"}); status == http.StatusOK {
		t.Errorf("a button that was replaced was pressed: %v", out)
	}
}

func ephemerals(t *testing.T, d *harness) {
	d.says("sam", "#support", "whisper please", "")
	there(t, d.see("whispered"), "message_ts")
	m := d.sees("sam", "#support", "", "the ephemeral message", texted("Only for you"))
	same(t, m, "is_ephemeral", true)
	list, _ := d.reads("ada/channels/C0001/messages")["messages"].([]any)
	if slices.ContainsFunc(list, func(m any) bool { return text1(m, "text") == "Only for you" }) {
		t.Error("somebody else sees the ephemeral message")
	}
	d.does("sam/actions", obj{"channel": "#support", "ts": m["ts"], "action_id": "replace"})
	body := d.see("replace")
	same(t, body, "container.is_ephemeral", true)
	if body["message"] != nil {
		t.Error("the payload of a press on an ephemeral message contains the message")
	}
	replaced := d.sees("sam", "#support", "", "the ephemeral replaced", texted("Replaced"))
	same(t, replaced, "is_ephemeral", true)

	d.says("ada", "#support", "whisper again", "")
	d.see("whispered")
	m = d.sees("ada", "#support", "", "the second ephemeral", texted("Only for you"))
	d.does("ada/actions", obj{"channel": "#support", "ts": m["ts"], "action_id": "remove"})
	d.until("ada still sees the ephemeral message that the app deleted", func() bool {
		list, _ := d.reads("ada/channels/C0001/messages")["messages"].([]any)
		return !slices.ContainsFunc(list, func(m any) bool { return text1(m, "text") == "Only for you" })
	})
}
