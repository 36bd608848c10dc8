package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/store"
)

func TestReadableText(t *testing.T) {
	t.Parallel()
	called := func(user string) string { return map[string]string{"U2": "Teo"}[user] }
	for in, want := range map[string]string{
		"<@UBOT> refund ORD-1 please":               "refund ORD-1 please",
		"<@UBOT|countersign> hi":                    "hi",
		"ask <@U2> and <@U3|kim>":                   "ask @Teo and @kim",
		"in <#C1|support> or <#C2>":                 "in #support or #C2",
		"<!here> <!subteam^S1|@support> <!channel>": "@here @support @channel",
		"1 &lt; 2 &amp;&amp; 3 &gt; 2":              "1 < 2 && 3 > 2",
		"&lt;@U2&gt; typed, not a mention":          "<@U2> typed, not a mention",
		"see <https://x.example/a?b=1&amp;c=2>":     "see https://x.example/a?b=1&c=2",
		"see <https://x.example|x.example>":         "see https://x.example",
		"see <https://evil.example|bank.example>":   "see bank.example (https://evil.example)",
		"mail <mailto:a@b.example|a@b.example>":     "mail a@b.example",
		"on <!date^1^{date}|1 Jan 1970>":            "on 1 Jan 1970",
		"a < b and c > d":                           "a < b and c > d",
		"<@UBOT>":                                   "",
	} {
		if got := readableText(in, "UBOT", called); got != want {
			t.Errorf("%q reads %q, want %q", in, got, want)
		}
	}
}

// The model reads a message in the form that the person typed. Slack's escapes are undone, and only Slack's own markup
// is changed.
func FuzzReadableText(f *testing.F) {
	for _, s := range []string{"<@UBOT> hi", "<<a|b>|c>", "<!date^", "&lt;@UBOT&gt;", "<|>", "a & b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := readableText("<@UBOT> "+block.Escape(s), "UBOT", strings.ToLower); got != strings.TrimSpace(s) {
			t.Errorf("typed %q, read %q", s, got)
		}
		readableText(s, "UBOT", strings.ToLower)
	})
}

func TestStartsAnew(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"Start over": true, "start over.": true, "new conversation": true, "don't start over": false, "": false} {
		if startsNewConversation(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// About a reply in a thread without the bot, the bot asks Slack only who wrote the reply: it looks up no mentioned
// person, and fetches no file. In a conversation with the bot, a message with very many mentions causes few look-ups.
func TestLookUpsForMessages(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	tap.answering("users.info", func(form url.Values) string {
		if !strings.HasPrefix(form.Get("user"), "U9") {
			return ""
		}
		return person(func(u, profile map[string]any) { profile["real_name"] = "Person " + u["id"].(string) })(form)
	})
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	var mentions strings.Builder
	for n := range 400 {
		fmt.Fprintf(&mentions, "<@U9%03d> ", n)
	}
	root := h.says("ada", "#support", "who is on call?")
	replies := func(text string) {
		h.call("POST", "/people/sam/messages", map[string]any{"channel": "#support", "thread_ts": root, "text": text, "files": []any{file("names.txt", "Kim")}})
	}
	lookups := func() (names, files int) {
		return tap.calls("users.info", func(form url.Values) bool { return strings.HasPrefix(form.Get("user"), "U9") }),
			tap.calls("names.txt", func(url.Values) bool { return true })
	}
	replies(mentions.String())
	h.quiet() // the two messages may come over two sockets, in any order
	h.saysIn("priya", "#support", "@bot hello", root)
	h.finds("priya", "#support", root, "results:")
	if names, files := lookups(); names > 0 || files > 0 {
		t.Errorf("for a thread without the bot, Slack was asked about %d people and for %d files", names, files)
	}
	replies(mentions.String())
	h.until("two answers", func() bool { return len(botMessages(h, "sam", "#support", root)) == 2 })
	if names, files := lookups(); names != maxNamesAsked || files != 1 {
		t.Errorf("for a conversation with the bot, Slack was asked about %d people and for %d files", names, files)
	}
	said := func() string {
		var text string
		err := h.store.View(t.Context(), func(r store.Reader) error {
			conv, err := r.ConversationAt("T0001/C0001/" + root)
			if err != nil {
				return err
			}
			all, err := r.Messages(conv.ID, 0)
			for _, m := range all {
				if m.Attached != "" {
					text = m.Text
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}()
	if !strings.HasPrefix(said, "@Person U9000 @Person U9001 ") || !strings.Contains(said, "@U9399") {
		t.Errorf("the model reads %q", said)
	}
}

// The method "edits" makes a person edit their own message.
func (h *harness) edits(user, channel, ts, text string) {
	h.t.Helper()
	if out := h.call("POST", "/people/"+user+"/edit", map[string]any{"channel": channel, "ts": ts, "text": strings.ReplaceAll(text, "@bot", "<@U0BOT>")}); out["ok"] != true {
		h.t.Fatalf("%s could not edit it: %v", user, out)
	}
}

// deletes makes a person delete their own message, or makes an admin delete any message.
func (h *harness) deletes(user, channel, ts string) {
	h.t.Helper()
	if out := h.call("POST", "/people/"+user+"/delete", map[string]any{"channel": channel, "ts": ts}); out["ok"] != true {
		h.t.Fatalf("%s could not delete it: %v", user, out)
	}
}

// The method "unseen" waits until no message of the bot with these words is visible to a person.
func (h *harness) unseen(user, channel, thread, words string) {
	h.t.Helper()
	h.until(fmt.Sprintf("%s does not see %q in %s any more", user, words, channel), func() bool {
		for _, p := range h.sees(user, channel, thread) {
			if p.User == "U0BOT" && strings.Contains(p.Text, words) {
				return false
			}
		}
		return true
	})
}

// If the requester edits a message that the agent has already read, the card reports the edit. The requester gets a
// message about the edit, and can withdraw the call from this message. A link preview is not an edit.
func TestEditedSince(t *testing.T) { inBothWays(t, testEditedSince) }

func testEditedSince(t *testing.T, h *harness) {
	root := h.says("sam", "#support", refundCall+"\nhttps://example.com")
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	if err := h.slack.Unfurl("C0001", root, "https://example.com"); err != nil {
		t.Fatal(err)
	}
	h.edits("sam", "#support", root, "@bot please <refund> ORD-124 instead")
	card := h.finds("teo", "#support-approvals", "", "Edited later", "please &lt;refund&gt; ORD-124 instead", "ORD-123")
	told := h.finds("sam", "#support", root, "<@U0100>, this changes nothing by itself", "Refund for order ORD-123")
	h.clicks("gus", "#support", told, control.ActWithdraw)
	h.finds("gus", "#support", root, "only somebody who asked for this can do that")
	h.clicks("sam", "#support", told, control.ActWithdraw)
	h.finds("teo", "#support-approvals", "", "Withdrawn by <@U0100>")
	h.unseen("sam", "#support", root, "changes nothing by itself")
	h.finds("sam", "#support", root, "results: withdrawn")
	if n := strings.Count(card.Text, "Edited later"); n != 1 {
		t.Errorf("the card mentions the edit %d times:\n%s", n, card.Text)
	}
	h.quiet()
	if n := len(botMessages(h, "sam", "#support", root)); n != 2 {
		t.Errorf("%d messages in the thread: an edited mention was answered, too", n)
	}
}

// If an admin deletes the requester's message, the call stays pending, and the card reports the deletion. The bot tells
// the requester how to withdraw the call.
func TestDeletedSince(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.finds("sam", "#support", root, "Waits for")
	h.quiet()
	h.deletes("ingrid", "#support", root)
	card := h.finds("teo", "#support-approvals", "", "Deleted later", "waits until it is decided or withdrawn")
	h.finds("sam", "#support", root, "The message that asked for this was deleted", "<@U0100>")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.unseen("sam", "#support", root, "was deleted")
}

// If a queued message is edited, its stored text is updated. If the queued message is deleted, the message and its
// notice are removed.
func TestQueuedMessageIsReworded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	ts := h.saysIn("ada", "#support", "thanks", root)
	h.finds("sam", "#support", root, "1 message waits")
	h.deletes("ada", "#support", ts)
	h.unseen("sam", "#support", root, "1 message waits")
	ts = h.saysIn("ada", "#support", "one more thing", root)
	h.finds("sam", "#support", root, "1 message waits")
	h.edits("ada", "#support", ts, "one more: call search_orders {}")
	h.quiet()
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.until("the edited words were read", func() bool {
		var texts []string
		err := h.store.View(context.Background(), func(r store.Reader) error {
			conv, err := r.ConversationAt("T0001/C0001/" + root)
			if err != nil {
				return err
			}
			messages, err := r.Messages(conv.ID, 0)
			for _, m := range messages {
				if m.Role == store.RoleUser && m.State == store.MessageTaken {
					texts = append(texts, m.Text)
				}
			}
			return err
		})
		return err == nil && len(texts) == 2 && texts[1] == "one more: call search_orders {}"
	})
}

// If the requester's only message is deleted while the agent works on the answer, Slack removes the thread. The answer
// comes by direct message, and no message is posted to the whole channel.
func TestDeletedRoot(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.pause = make(chan struct{}) })
	root := h.says("sam", "#support", "@bot hello")
	h.until("it thinks", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/sam/channels/%23support/messages?thread_ts="+root, nil)["status"]), "thinking")
	})
	h.deletes("sam", "#support", root)
	h.until("the deletion was heard", func() bool {
		var gone bool
		err := h.store.View(context.Background(), func(r store.Reader) error {
			conv, err := r.ConversationAt("T0001/C0001/" + root)
			gone = conv.Gone
			return err
		})
		return err == nil && gone
	})
	close(h.pause)
	h.finds("sam", "U0BOT", "", "results:")
	for _, p := range h.sees("sam", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("the whole channel was told: %s", p.Text)
		}
	}
}

// The bot does not store events about changed or deleted messages between other people.
func TestWhatOthersDoAmongThemselves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", "@bot hello") // makes the bot look up its own user id
	h.quiet()
	message := func(user, text, more string) string {
		return fmt.Sprintf(`{"type":"message","user":%q,"text":%q,"ts":"5.1"%s}`, user, text, more)
	}
	change := func(subtype, now, was string) string {
		if now != "" {
			now = `"message":` + now + ","
		}
		return fmt.Sprintf(`{"type":"message","subtype":%q,"channel":"C0001","channel_type":"channel","ts":"6.1","deleted_ts":"5.1",%s"previous_message":%s}`, subtype, now, was)
	}
	edited := `,"edited":{"user":"U0100","ts":"6.0"}`
	for name, c := range map[string]struct {
		event string
		kept  bool
	}{
		"an edit among people":             {change("message_changed", message("U0100", "b", edited), message("U0100", "a", "")), false},
		"an edit with a mention":           {change("message_changed", message("U0100", "<@U0BOT> b", edited), message("U0100", "a", "")), true},
		"an edit that takes it out":        {change("message_changed", message("U0100", "b", edited), message("U0100", "<@U0BOT> a", "")), true},
		"an edit in a thread":              {change("message_changed", message("U0100", "b", edited+`,"thread_ts":"4.1"`), message("U0100", "a", `,"thread_ts":"4.1"`)), true},
		"a preview":                        {change("message_changed", message("U0100", "<@U0BOT> a", `,"attachments":[{}]`), message("U0100", "<@U0BOT> a", "")), false},
		"a preview after an edit":          {change("message_changed", message("U0100", "<@U0BOT> a", edited+`,"attachments":[{}]`), message("U0100", "<@U0BOT> a", edited)), false},
		"the bot's own update":             {change("message_changed", message("U0BOT", "b", `,"bot_id":"B0001","thread_ts":"4.1"`), message("U0BOT", "a", `,"bot_id":"B0001","thread_ts":"4.1"`)), false},
		"a deletion among people":          {change("message_deleted", "", message("U0100", "a", "")), false},
		"a deletion of a mention":          {change("message_deleted", "", message("U0100", "<@U0BOT> a", "")), true},
		"a deletion of the bot's own":      {change("message_deleted", "", message("U0BOT", "a", `,"bot_id":"B0001"`)), true},
		"a deletion of an unknown message": {`{"type":"message","subtype":"message_deleted","channel":"C0001","channel_type":"channel","ts":"6.1","deleted_ts":"5.1"}`, true},
		"Slackbot":                         {`{"type":"message","user":"USLACKBOT","text":"You have been removed from #support","channel":"D9","channel_type":"im","ts":"7.1"}`, false},
	} {
		raw, err := json.Marshal(map[string]any{"type": "event_callback", "event_id": "Ev-" + name, "event": json.RawMessage(c.event)})
		if err != nil {
			t.Fatal(err)
		}
		e, err := readEnvelope(raw)
		if err != nil {
			t.Fatal(err)
		}
		if kept := e.Event.forUs() && !h.bot.chatter(e.Event); kept != c.kept {
			t.Errorf("%s: kept is %t", name, kept)
		}
	}
}
