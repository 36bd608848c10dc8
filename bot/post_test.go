package bot

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/slackapi"
	"countersign/store"
)

// replaceHarness is a stub of Slack that counts calls by path. It may refuse response_urls.
type replaceHarness struct {
	mu      sync.Mutex
	calls   map[string]int
	refused bool
}

func (h *replaceHarness) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[req.URL.Path]++
	status, kind, body := http.StatusOK, "application/json", `{"ok":true,"channel":"C1","ts":"1.1"}`
	switch {
	case req.URL.Path != "/response/1":
	case h.refused:
		status, body = http.StatusNotFound, `{"ok":false,"error":"expired_url"}`
	default:
		kind, body = "text/plain", "ok"
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (h *replaceHarness) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = true
}

func (h *replaceHarness) made(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[path]
}

// When the rate limit of chat.update is nearly reached, a decided card is updated through the response_url of the
// click. The bot uses the response_url until the limit on its uses or on its age is reached. After this, the bot
// updates the card with chat.update.
func TestReplaceWhatWasClicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slackSide := &replaceHarness{calls: map[string]int{}}
		b := New(Config{BotToken: "xoxb-1", Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: slackSide}})
		b.refused.read = true // this bot has no store from which it could read refusals
		vm := func(id string, state approvers.State) view.Model {
			return view.Model{Message: store.OutboxMessage{ID: id, Kind: store.OutboxCard, Channel: "C1", TS: "1.1"}, Request: &approvers.Request{State: state}}
		}
		d := block.Single(block.Paragraph(block.Say("Approved.")))
		changed := func(what string, s view.Model, replaced, updated int) {
			t.Helper()
			urls, updates := slackSide.made("/response/1"), slackSide.made("/api/chat.update")
			if _, err := b.Display.posts.change(toShow(t.Context(), s, store.Timer{}), s, d); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if n, m := slackSide.made("/response/1")-urls, slackSide.made("/api/chat.update")-updates; n != replaced || m != updated {
				t.Errorf("%s: %d by the address of a click, %d by chat.update; want %d, %d", what, n, m, replaced, updated)
			}
		}
		const url = "https://hooks.slack.com/response/1"
		b.Display.posts.replaced.noteClick("s1", url, b.Now())
		changed("while there is room", vm("s1", approvers.Approved), 0, 1)
		for range 20 {
			if _, _, _, err := b.api.UpdateMessageContext(slackapi.WithCallPriority(t.Context(), slackapi.CallPriority{Priority: slackapi.PriorityFirst}), "C1", "1.1", slack.MsgOptionText("x", false)); err != nil {
				t.Fatal(err)
			}
		}
		changed("while it asks", vm("s1", approvers.Pending), 0, 1)
		changed("another card", vm("s2", approvers.Approved), 0, 1)
		for range replaceTimes {
			changed("decided", vm("s1", approvers.Approved), 1, 0)
		}
		changed("used up", vm("s1", approvers.Approved), 0, 1)
		b.Display.posts.replaced.noteClick("s1", url, b.Now())
		slackSide.refuse()
		changed("refused", vm("s1", approvers.Approved), 1, 1)
		b.Display.posts.replaced.noteClick("s1", url, b.Now().Add(-replaceFor-time.Second))
		changed("too late", vm("s1", approvers.Approved), 0, 1)
	})
}

// A stand-in for Slack's API may answer a post without the message's thread_ts. The bot then asks whether the message
// is in the thread, and keeps it there.
func TestPostWhoseAnswerNamesNoThread(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	tap.answering("chat.postMessage", func(form url.Values) string {
		resp, err := http.PostForm(h.url+"/api/chat.postMessage", form)
		if err != nil {
			return noAnswer
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			return noAnswer
		}
		return strings.ReplaceAll(string(raw), `"thread_ts"`, `"no_thread_ts"`)
	})
	root := h.says("sam", "#support", "@bot hello")
	h.finds("sam", "#support", root, "results:")
	h.quiet()
	if n := len(botMessages(h, "sam", "#support", root)); n != 1 {
		t.Errorf("%d messages in the thread", n)
	}
	if n := len(botMessages(h, "sam", "U0BOT", "")); n > 0 {
		t.Errorf("%d direct messages", n)
	}
}
