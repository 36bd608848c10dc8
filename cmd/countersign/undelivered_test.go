package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// refusingWhen is a handler in front of the workspace. It answers some calls with an error code.
type refusingWhen struct {
	next http.Handler
	mu   sync.Mutex
	code func(method string, form url.Values) string // returns the error code; empty: the workspace answers
}

func (p *refusingWhen) refuses(code func(method string, form url.Values) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code = code
}

func (p *refusingWhen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := argumentsOf(r, body)
	p.mu.Lock()
	code := ""
	if p.code != nil {
		code = p.code(method, form)
	}
	p.mu.Unlock()
	if code == "" {
		p.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"ok": false, "error": code, "needed": map[string]string{"missing_scope": "users:read"}[code]})
}

// inRefusingSlack runs a test in faked time, with a Slack that refuses the calls that the test chooses.
func inRefusingSlack(t *testing.T, fn func(*synctestHarness, *refusingWhen)) {
	t.Helper()
	slack := &refusingWhen{}
	inFakedTime(t, func(b *synctestHarness) {
		b.front = func(h http.Handler) http.Handler { slack.next = h; return slack }
	}, func(b *synctestHarness) { fn(b, slack) })
}

// pendingText returns the output of countersign pending.
func (b *synctestHarness) pendingText() string {
	b.Helper()
	p := pending{Now: time.Now().UTC()}
	b.ok(p.readAll(b.ctx, b.bot.workflow))
	var out bytes.Buffer
	p.print(&out, false)
	return out.String()
}

// saysOf checks the output of countersign pending and of /readyz. If ready is "", /readyz must report nothing.
func (b *synctestHarness) saysOf(ready string, lines ...string) {
	b.Helper()
	text := b.pendingText()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			b.Errorf("pending does not say %q:\n%s", line, text)
		}
	}
	if len(lines) == 0 && strings.Contains(text, "!") {
		b.Errorf("pending says:\n%s", text)
	}
	switch err := reportUndelivered(b.bot.workflow)(b.ctx); {
	case ready == "" && err != nil:
		b.Errorf("/readyz says: %v", err)
	case ready != "" && (err == nil || !strings.Contains(err.Error(), ready)):
		b.Errorf("/readyz does not say %q: %v", ready, err)
	}
}

// TestLeftoverCardsAreDeletedInTheEnd: Slack refuses to change or delete a decided card. The bot deletes the card when
// Slack allows it, even after a restart. Until then, the card's buttons have no effect, and the bot tells the operator
// about the card.
func TestLeftoverCardsAreDeletedInTheEnd(t *testing.T) {
	inRefusingSlack(t, func(b *synctestHarness, slack *refusingWhen) {
		b.says("plain 1")
		b.pass(10 * time.Second)
		old := b.card("1")
		slack.refuses(func(method string, form url.Values) string {
			if form.Get("ts") != old.TS {
				return ""
			}
			return map[string]string{"chat.update": "edit_window_closed", "chat.delete": "cant_delete_message"}[method]
		})
		b.ok(b.approve("teo", "1", old))
		b.pass(30 * time.Second)
		stays := func() bool {
			messages, err := b.as("teo").Messages(b.ctx, old.Channel, "")
			b.ok(err)
			return slices.ContainsFunc(messages, func(m workspaceclient.Message) bool { return m.TS == old.TS })
		}
		if !stays() || b.runs["1"] != 1 {
			t.Fatalf("the old card stays: %t; runs: %d", stays(), b.runs["1"])
		}
		b.saysOf("Slack neither changes nor deletes 1 old message, one since ",
			"! Slack neither changes nor deletes an old message of request "+b.request("1").ID+", since ",
			fmt.Sprintf("(%s, message %s: cant_delete_message). Its buttons do nothing. The deletion is tried again at ", old.Channel, old.TS))
		b.approve("teo", "1", old)
		b.pass(5 * time.Minute)
		b.restart()
		b.pass(3 * time.Minute)
		if !stays() || b.runs["1"] != 1 {
			t.Errorf("the old card stays: %t; runs: %d", stays(), b.runs["1"])
		}
		slack.refuses(nil)
		b.pass(16 * time.Minute)
		if stays() {
			t.Error("the old card is still there")
		}
		b.saysOf("")
		b.view(func(r store.Reader) error {
			timers, err := r.Timers(store.TimerLeftover, 10)
			if len(timers) > 0 {
				t.Errorf("timers are left: %v", timers)
			}
			return err
		})
		if len(b.log.with("an old message is deleted")) != 1 {
			t.Error("the log does not say that it is deleted")
		}
	})
}

// TestRefusedMessagesAreTold: countersign pending and /readyz report an answer that Slack refuses everywhere, until
// Slack shows the answer. The report has the reason and the remedy.
func TestRefusedMessagesAreTold(t *testing.T) {
	inRefusingSlack(t, func(b *synctestHarness, slack *refusingWhen) {
		b.saysOf("")
		if text := b.pendingText(); text != "Nothing waits.\n" {
			t.Errorf("pending says %q", text)
		}
		slack.refuses(func(method string, _ url.Values) string {
			return map[string]string{"chat.postMessage": "restricted_action"}[method]
		})
		thread := b.says("say hello")
		b.pass(time.Minute)
		since := time.Now().UTC().Format("2006-01-02 15:04")[:13]
		b.saysOf("Slack refuses 1 message, the first since ", "! Slack refuses an answer in #support and to U0100 by direct message, since "+since,
			": chat.postMessage: restricted_action. Let the app write there, in the channel's settings or the workspace's. It is tried again at ")
		if text := b.pendingText(); strings.Contains(text, "Nothing waits.") {
			t.Errorf("pending says %q", text)
		}
		b.restart()
		b.pass(time.Minute)
		first := reportUndelivered(b.bot.workflow)(b.ctx).Error()
		b.pass(11 * time.Minute) // the bot has tried the message again
		if again := reportUndelivered(b.bot.workflow)(b.ctx).Error(); again != first {
			t.Errorf("/readyz said %q, and then %q", first, again)
		}
		slack.refuses(nil)
		b.pass(25 * time.Minute)
		b.saysOf("")
		messages, err := b.as("sam").Messages(b.ctx, "countersign", "")
		b.ok(err)
		if n := len(b.replies(thread)); n+len(messages) != 1 {
			t.Errorf("the answer is there %d times", n+len(messages))
		}
	})
}

// TestMessagesWaitForTheirWriter: the bot keeps messages while Slack does not say who wrote them. The bot handles the
// messages later, in their order, even after a restart. The bot tells the writers and the operator about the delay.
func TestMessagesWaitForTheirWriter(t *testing.T) {
	inRefusingSlack(t, func(b *synctestHarness, slack *refusingWhen) {
		slack.refuses(func(method string, _ url.Values) string {
			return map[string]string{"users.info": "missing_scope"}[method]
		})
		thread := b.says("say one")
		b.pass(3 * time.Second)
		for _, text := range []string{"say two", "say three"} {
			_, err := b.as("sam").Say(b.ctx, "#support", thread, "@Countersign "+text)
			b.ok(err)
			b.pass(time.Second) // a pause, because Slack may send the messages on two sockets, and messages on two sockets have no order
		}
		b.pass(20 * time.Second)
		if !b.isTold("", "I keep it and try again for an hour") {
			t.Error("the writer is not told that the message waits")
		}
		b.saysOf("3 messages of people wait, because Slack does not say who wrote them, since ",
			": users.info: missing_scope: users:read. Add the scope on the app's page OAuth & Permissions, and reinstall the app. Each is tried again for an hour")
		b.restart()
		b.pass(10 * time.Minute)
		if got := b.replies(thread); len(got) != 0 {
			t.Errorf("the bot answered %q", got)
		}
		slack.refuses(nil)
		b.pass(3 * time.Minute)
		b.saysOf("")
		var said []string
		b.view(func(r store.Reader) error {
			conv, err := r.ConversationAt(store.Place("T0001", "C0001", thread))
			if err != nil {
				return err
			}
			messages, err := r.Messages(conv.ID, 0)
			for _, m := range messages {
				if m.Role == store.RoleUser {
					said = append(said, m.Text)
				}
			}
			return err
		})
		if !slices.Equal(said, []string{"say one", "say two", "say three"}) {
			t.Errorf("the conversation has %q", said)
		}
		if got := b.replies(thread); len(got) == 0 {
			t.Error("nobody was answered")
		}
	})
}

// TestMessagesThatWaitTooLong: Slack does not tell the bot who wrote the messages of a conversation. After an hour, the
// bot sets all these messages aside, and tells their writer.
func TestMessagesThatWaitTooLong(t *testing.T) {
	inRefusingSlack(t, func(b *synctestHarness, slack *refusingWhen) {
		slack.refuses(func(method string, _ url.Values) string {
			return map[string]string{"users.info": "access_denied"}[method]
		})
		thread := b.says("say one")
		_, err := b.as("sam").Say(b.ctx, "#support", thread, "@Countersign say two")
		b.ok(err)
		b.pass(59 * time.Minute)
		b.saysOf("2 messages of people wait", ": users.info: access_denied. Correct the cause in Slack. Each")
		b.pass(5 * time.Minute)
		b.saysOf("")
		if !b.isTold(thread, "nothing was done about your message") {
			t.Error("the writer is not told")
		}
		if n := len(b.log.with("a message was set aside, because Slack did not say who wrote it")); n != 2 {
			t.Errorf("the log says it %d times", n)
		}
		slack.refuses(nil)
		_, err = b.as("sam").Say(b.ctx, "#support", thread, "@Countersign say three")
		b.ok(err)
		b.pass(2 * time.Minute)
		if got := b.replies(thread); len(got) != 1 || !strings.Contains(got[0], "You said three") {
			t.Errorf("the bot answered %q", got)
		}
	})
}
