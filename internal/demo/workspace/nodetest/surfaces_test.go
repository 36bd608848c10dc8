package nodetest

import "testing"

func slashCommands(t *testing.T, d *harness) {
	run := func(text string) obj {
		t.Helper()
		out := d.does("sam/commands", obj{"channel": "#support", "command": "/countersign", "text": text})
		saw := d.see("command")
		same(t, saw, "command", "/countersign")
		same(t, saw, "text", text)
		same(t, saw, "user_id", "U0100")
		same(t, saw, "user_name", "sam")
		same(t, saw, "channel_id", "C0001")
		same(t, saw, "channel_name", "support")
		same(t, saw, "team_id", "T0001")
		there(t, saw, "team_domain", "api_app_id", "response_url", "trigger_id")
		return out
	}
	same(t, run("quick"), "message.text", "A quick answer")
	same(t, d.sees("sam", "#support", "", "the command's answer", texted("A quick answer")), "is_ephemeral", true)
	run("everybody")
	d.sees("ada", "#support", "", "the answer for everybody", texted("For everybody"))
	run("later")
	d.sees("sam", "#support", "", "the first answer through the response URL", texted("First"))
	d.sees("ada", "#support", "", "the second, for everybody", texted("Second"))
	run("form")
	d.view("sam", "From a command")
}

func shortcuts(t *testing.T, d *harness) {
	d.does("kenji/shortcuts", obj{"callback_id": "ask_countersign"})
	saw := d.see("shortcut")
	same(t, saw, "type", "shortcut")
	same(t, saw, "user.id", "U0004")
	d.view("kenji", "From a shortcut")

	ts := d.says("sam", "#support", "A parcel got lost", "")
	d.does("ada/shortcuts", obj{"callback_id": "hand_over", "channel": "#support", "ts": ts})
	saw = d.see("shortcut")
	same(t, saw, "type", "message_action")
	same(t, saw, "message.ts", ts)
	same(t, saw, "message_ts", ts)
	same(t, saw, "channel.id", "C0001")
	d.sees("ada", "#support", "", "the answer to the shortcut", texted("Taken over: A parcel got lost"))
}

func appHome(t *testing.T, d *harness) {
	d.reads("ingrid/home")
	opened := d.see("app_home_opened")
	same(t, opened, "user", "U0003")
	same(t, opened, "tab", "home")
	published := d.see("published")
	same(t, published, "type", "home")
	view := d.reads("ingrid/home")["view"]
	same(t, view, "blocks.0.text.text", "Welcome")
	same(t, d.see("app_home_opened"), "view.id", published["id"])
	d.see("published")
	same(t, d.reads("ingrid/home?quiet=true"), "view.blocks.0.text.text", "Back again")
	d.does("ingrid/actions", obj{"view_id": "home", "action_id": "home_button"})
	pressed := d.see("home button")
	same(t, pressed, "container.type", "view")
	same(t, pressed, "view", published["id"])
}

func agentThreads(t *testing.T, d *harness) {
	root := text1(d.does("sam/agent_threads", obj{"context": "#support"}), "thread_ts")
	started := d.see("assistant_thread_started")
	same(t, started, "assistant_thread.user_id", "U0100")
	same(t, started, "assistant_thread.thread_ts", root)
	same(t, started, "assistant_thread.context.channel_id", "C0001")
	d.sees("sam", "U0BOT", root, "the app's greeting", texted("What can I do for you?"))
	d.until("sam was never offered the app's prompts", func() bool {
		return text1(d.reads("sam/channels/U0BOT/messages?thread_ts="+root), "prompts", "0", "message") == "Refund order 7"
	})
	d.does("sam/looks", obj{"context": "#general", "thread_ts": root})
	same(t, d.see("assistant_thread_context_changed"), "assistant_thread.context.channel_id", "C0000")

	d.says("sam", "U0BOT", "Refund order 7", root)
	saw := d.see("thinking")
	same(t, saw, "message.text", "Refund order 7")
	same(t, saw, "message.channel_type", "im")
	same(t, saw, "context.channel_id", "C0000")
	streamed := d.see("streamed")
	same(t, streamed, "message.text", "**Order 7** is refunded.")
	d.sees("sam", "U0BOT", root, "the streamed answer", texted("**Order 7** is refunded."))
	same(t, d.reads("sam/channels/U0BOT/messages?thread_ts="+root), "title", "Refund order 7")

	ts := text1(d.call("chat.startStream", obj{"channel": dig(saw, "message", "channel"), "thread_ts": root, "markdown_text": "On and on"}), "ts")
	d.does("sam/stop", obj{"channel": "U0BOT", "thread_ts": root})
	same(t, d.see("agent_session_stopped"), "streaming_message_ts.0", ts)
	if code, _ := d.refused("chat.appendStream", obj{"channel": dig(saw, "message", "channel"), "ts": ts, "markdown_text": " and on"}); code != "stopped_by_user" {
		t.Errorf("appending to a stream that somebody stopped is refused with %s", code)
	}
}
