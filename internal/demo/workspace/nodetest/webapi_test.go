package nodetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/internal/demo/workspace"
)

func streams(t *testing.T, d *harness) {
	ts := d.says("sam", "#support", "Tell me all of it", "")
	to := obj{"channel": "C0001", "thread_ts": ts, "recipient_user_id": "U0100", "recipient_team_id": "T0001"}
	args := obj{"pieces": arr{
		obj{"markdown_text": strings.Repeat("word ", 60)},
		obj{"chunks": arr{obj{"type": "task_update", "id": "1", "title": "Look it up", "status": "in_progress"}}},
		obj{"markdown_text": "and "},
		obj{"chunks": arr{obj{"type": "task_update", "id": "1", "title": "Look it up", "status": "complete", "output": "Found"}}},
	}, "stop": obj{
		"markdown_text": "the end.",
		"blocks":        arr{obj{"type": "context_actions", "elements": arr{obj{"type": "feedback_buttons", "action_id": "feedback", "positive_button": obj{"text": obj{"type": "plain_text", "text": "Good"}, "value": "good"}, "negative_button": obj{"text": obj{"type": "plain_text", "text": "Bad"}, "value": "bad"}}}}},
	}}
	for k, v := range to {
		args[k] = v
	}
	var stopped obj
	d.done(&stopped, "stream", args)
	m := d.sees("sam", "#support", ts, "the streamed message", func(m obj) bool { return m["ts"] == stopped["ts"] })
	if text := text1(m, "text"); !strings.HasPrefix(text, "word word") || !strings.HasSuffix(text, "and the end.") {
		t.Errorf("the stream is %q", text)
	}
	var kinds []string
	for _, b := range m["blocks"].([]any) {
		kinds = append(kinds, text1(b, "type"))
		if text1(b, "type") == "task_card" {
			same(t, b, "status", "complete")
		}
	}
	if want := []string{"markdown", "task_card", "markdown", "context_actions"}; !slices.Equal(kinds, want) {
		t.Errorf("the stream's blocks are %v instead of %v", kinds, want)
	}
	d.does("sam/actions", obj{"channel": "#support", "ts": stopped["ts"], "action_id": "feedback", "value": "bad"})
	same(t, d.see("action"), "action.value", "bad")
	code, _ := d.refused("chat.appendStream", obj{"channel": "C0001", "ts": stopped["ts"], "markdown_text": "more"})
	if code != "message_not_in_streaming_state" {
		t.Errorf("appending to a stopped stream: %s", code)
	}
}

func files(t *testing.T, d *harness) {
	ts := d.says("sam", "#support", "Send me both", "")
	var sent []obj
	d.done(&sent, "upload", obj{
		"channel_id": "C0001", "thread_ts": ts, "initial_comment": "Here they are",
		"contents": arr{obj{"text": "a,b\n1,2\n", "filename": "table.csv", "title": "Table"}, obj{"text": "Größe", "filename": "note.txt"}},
	})
	if len(sent) != 2 {
		t.Fatalf("uploaded: %v", sent)
	}
	m := d.sees("sam", "#support", ts, "the files", texted("Here they are"))
	same(t, m, "files.0.name", "table.csv")
	same(t, m, "files.0.title", "Table")
	same(t, m, "files.1.name", "note.txt")
	info := d.call("files.info", obj{"file": dig(m, "files", "1", "id")})
	same(t, info, "file.size", float64(len("Größe")))
	resp, err := http.Get(text1(info, "file", "url_private"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "Größe" {
		t.Errorf("the file is %q, %v", body, err)
	}
}

func attachments(t *testing.T, d *harness) {
	d.does("sam/messages", obj{"channel": "#support", "text": "See for yourself", "files": arr{obj{"name": "photo.png", "base64": "iVBORw0KGgo="}}})
	all := d.seeAll("file_share", "file_shared")
	saw := all["file_share"]
	same(t, saw, "user", "U0100")
	same(t, saw, "files.0.name", "photo.png")
	same(t, saw, "files.0.mimetype", "image/png")
	same(t, saw, "files.0.size", 8.0)
	same(t, all["file_shared"], "file_id", dig(saw, "files", "0", "id"))
}

func pages(t *testing.T, d *harness) {
	channel := text1(d.call("conversations.open", obj{"users": "U0002"}), "channel", "id")
	thread := text1(d.call("chat.postMessage", obj{"channel": channel, "text": "0"}), "ts")
	for i := range 6 {
		d.call("chat.postMessage", obj{"channel": channel, "text": fmt.Sprint("top ", i)})
		d.call("chat.postMessage", obj{"channel": channel, "text": fmt.Sprint("reply ", i), "thread_ts": thread})
	}
	walk := func(method, field string, args obj) (sizes []int, all []string) {
		t.Helper()
		args["method"], args["field"] = method, field
		var found []arr
		d.done(&found, "pages", args)
		for _, page := range found {
			sizes = append(sizes, len(page))
			for _, item := range page {
				all = append(all, text1(item, "text")+text1(item, "name"))
			}
		}
		return sizes, all
	}
	expect := func(what string, sizes, want []int) {
		t.Helper()
		if !slices.Equal(sizes, want) {
			t.Errorf("%s came in pages of %v instead of %v", what, sizes, want)
		}
	}
	sizes, all := walk("conversations.history", "messages", obj{"channel": channel, "limit": 3})
	expect("the history", sizes, []int{3, 3, 1})
	if want := []string{"top 5", "top 4", "top 3", "top 2", "top 1", "top 0", "0"}; !slices.Equal(all, want) {
		t.Errorf("the history is %v", all)
	}
	_, all = walk("conversations.replies", "messages", obj{"channel": channel, "ts": thread, "limit": 4})
	if want := []string{"0", "reply 0", "reply 1", "reply 2", "reply 3", "reply 4", "reply 5"}; !slices.Equal(slices.Compact(all), want) {
		t.Errorf("the thread is %v", all)
	}
	sizes, _ = walk("users.list", "members", obj{"limit": 5})
	expect("the people", sizes, []int{5, 5, 2})
	sizes, all = walk("conversations.list", "channels", obj{"limit": 3, "types": "public_channel"})
	expect("the channels", sizes, []int{3, 1})
	if !slices.Contains(all, "support") {
		t.Errorf("the channels are %v", all)
	}
	sizes, _ = walk("conversations.members", "members", obj{"channel": "C0001", "limit": 4})
	expect("the members", sizes, []int{4, 4, 1})
}

func people(t *testing.T, d *harness) {
	same(t, d.call("auth.test", nil), "user_id", "U0BOT")
	same(t, d.call("users.info", obj{"user": "U0001"}), "user.profile.email", "ada@example.com")
	same(t, d.call("users.info", obj{"user": "U0900"}), "user.is_restricted", true)
	same(t, d.call("users.info", obj{"user": "U0902"}), "user.deleted", true)
	same(t, d.call("users.lookupByEmail", obj{"email": "teo@example.com"}), "user.id", "U0002")
	same(t, d.call("usergroups.list", obj{"include_users": true}), "usergroups.0.users.0", "U0001")
	same(t, d.call("usergroups.users.list", obj{"usergroup": "S0001"}), "users.1", "U0101")
	same(t, d.call("team.info", nil), "team.domain", "countersign-demo")
	same(t, d.call("bots.info", obj{"bot": "B0001"}), "bot.user_id", "U0BOT")
	same(t, d.call("conversations.info", obj{"channel": "C0001", "include_num_members": true}), "channel.name", "support")
	ts := d.says("sam", "#support", "Link to me", "")
	link := text1(d.call("chat.getPermalink", obj{"channel": "C0001", "message_ts": ts}), "permalink")
	if want := d.http.URL + "/archives/C0001/p" + strings.ReplaceAll(ts, ".", ""); link != want {
		t.Errorf("the permalink is %s instead of %s", link, want)
	}
	title := "Something else"
	if err := d.srv.ChangeUser("U0100", workspace.UserChange{Title: &title}); err != nil {
		t.Fatal(err)
	}
	same(t, d.see("user_change"), "user.profile.title", title)
}

func refusals(t *testing.T, d *harness) {
	for _, test := range []struct {
		method string
		args   obj
		code   string
	}{
		{"chat.postMessage", obj{"channel": "C0404", "text": "x"}, "channel_not_found"},
		{"chat.postMessage", obj{"channel": "C0001"}, "no_text"},
		{"chat.update", obj{"channel": "C0001", "ts": "1.1", "text": "x"}, "message_not_found"},
		{"users.info", obj{"user": "U0404"}, "user_not_found"},
		{"users.lookupByEmail", obj{"email": "nobody@example.com"}, "users_not_found"},
		{"views.open", obj{"trigger_id": "1.2.3", "view": obj{"type": "modal", "title": obj{"type": "plain_text", "text": "x"}, "blocks": arr{}}}, "invalid_trigger_id"},
		{"no.such.method", obj{}, "unknown_method"},
	} {
		if code, _ := d.refused(test.method, test.args); code != test.code {
			t.Errorf("%s %v is refused with %s instead of %s", test.method, test.args, code, test.code)
		}
	}
	_, data := d.refused("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": arr{obj{"type": "divider"}, obj{"type": "section"}}})
	same(t, data, "error", "invalid_blocks")
	if reason := text1(data, "response_metadata", "messages", "0"); !strings.Contains(reason, "/blocks/1") {
		t.Errorf("the reason does not point at the faulty block: %v", data)
	}
	for token, code := range map[string]string{"xoxb-wrong": "invalid_auth", workspace.DemoAppToken: "not_allowed_token_type"} {
		line := d.order("as", obj{"token": token, "method": "auth.test"})
		if line.Error == nil || line.Error.Data["error"] != code {
			t.Errorf("with the token %s: %s %+v instead of %s", token, line.Result, line.Error, code)
		}
	}
}

func rateLimits(t *testing.T, d *harness) {
	limited := workspace.Fault{Fault: workspace.FaultRateLimited, Method: "chat.postMessage", RetryAfter: 1}
	if err := d.srv.Inject(limited); err != nil {
		t.Fatal(err)
	}
	var waited struct {
		Milliseconds float64         `json:"milliseconds"`
		Result       json.RawMessage `json:"result"`
	}
	d.done(&waited, "timed", obj{"method": "chat.postMessage", "channel": "C0001", "text": "after a wait"})
	if waited.Milliseconds < 1000 {
		t.Errorf("the client waited for %.0f ms instead of the second that it was told", waited.Milliseconds)
	}
	d.sees("sam", "#support", "", "what was posted after the wait", texted("after a wait"))
	if err := d.srv.Inject(limited); err != nil {
		t.Fatal(err)
	}
	line := d.order("impatient", obj{"method": "chat.postMessage", "channel": "C0001", "text": "x"})
	if line.Error == nil || line.Error.Code != "slack_webapi_rate_limited_error" || line.Error.RetryAfter != 1 {
		t.Errorf("a client that doesn't wait: %s %+v", line.Result, line.Error)
	}
}
