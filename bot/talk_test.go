package bot

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
)

// A direct message is a separate conversation. The words "start over" begin another conversation.
func TestDirectMessage(t *testing.T) { inBothWays(t, testDirectMessage) }

func testDirectMessage(t *testing.T, h *harness) {
	h.says("sam", "U0BOT", "hello")
	h.finds("sam", "U0BOT", "", "results:")
	h.says("sam", "U0BOT", `call issue_refund {"order_id":"ORD-9","amount":5}`)
	card := h.finds("teo", "#support-approvals", "", "ORD-9", "in a direct message:")
	if strings.Contains(card.raw, "|#support>") {
		t.Error("a link into somebody else's direct messages opens for nobody")
	}
	step := h.finds("sam", "U0BOT", "", "Waits for", "Team Lead")
	h.clicks("sam", "U0BOT", step, control.ActWithdraw)
	h.finds("sam", "U0BOT", "", "Withdrawn by <@U0100>")
	h.finds("sam", "U0BOT", "", "results: withdrawn")
	h.finds("teo", "#support-approvals", "", "Withdrawn by <@U0100>")
}

// Replies in a thread continue the conversation of this thread without a mention. In other threads and channels, the
// bot does not answer.
func TestThreads(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", "just talking to colleagues")
	other := h.says("ada", "#support", "another topic")
	root := h.says("sam", "#support", "@bot hello")
	h.finds("sam", "#support", root, "results:")
	h.saysIn("ada", "#support", "and this without a mention", root)
	h.until("two answers", func() bool { return len(h.sees("sam", "#support", root)) == 4 })
	h.saysIn("sam", "#support", "not for the bot", other)
	h.saysIn("sam", "#support", "@bot but this is", other)
	h.finds("sam", "#support", other, "results:")
	if n := len(h.sees("sam", "#support", other)); n != 4 {
		t.Errorf("%d messages in the other thread", n)
	}
	h.until("nothing waits", func() bool { return len(unhandled(t, h)) == 0 })
	for _, p := range h.sees("sam", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("the bot spoke at the top level: %s", p.Text)
		}
	}
}

// Messages that arrive while a call waits are queued. The sender is told about the queue, and can continue without the
// call.
func TestQueuedMessage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.saysIn("sam", "#support", "never mind, what is the weather?", root)
	h.finds("sam", "#support", root, "1 message waits", "Refund for order ORD-123", "Team Lead")
	h.saysIn("ada", "#support", "me too", root)
	notice := h.finds("sam", "#support", root, "2 messages wait")
	h.clicks("priya", "#support", notice, control.ActWithdrawAll)
	h.finds("priya", "#support", root, "only somebody who asked for this can do that")
	h.clicks("sam", "#support", notice, control.ActWithdrawAll)
	h.finds("sam", "#support", root, "Withdrawn by <@U0100>")
	h.finds("sam", "#support", root, "The agent has read the message that waited here")
	h.finds("sam", "#support", root, "results: withdrawn")
	h.finds("teo", "#support-approvals", "", "Withdrawn by <@U0100>")
}

// If Slack refuses all posts of the bot, a person who clicks gets the reply through the response URL of the click.
func TestReplyWithoutToken(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	for _, method := range []string{"chat.postEphemeral", "conversations.open", "chat.postMessage"} {
		tap.answering(method, func(url.Values) string { return `{"ok":false,"error":"account_inactive"}` })
	}
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "you are not a member of that role")
}

// A person who may not ask the agent is told the reason, and the model is not called.
func TestDeniedAskers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("gus", "#support", "@bot hello")
	h.finds("gus", "#support", "", "Guests of this workspace can't ask")
	h.says("sam", "#general", "@bot hello")
	h.finds("sam", "#general", "", "not set up to answer in this channel")
	h.says("sam", "#support", "@bot")
	h.finds("sam", "#support", "", "nothing in your message")
	for _, p := range h.sees("ada", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("somebody else saw what was told to one person: %s", p.Text)
		}
	}
}

// While the agent thinks, the thread's status says that it thinks.
func TestThinkingStatus(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.pause = make(chan struct{}) })
	root := h.says("sam", "#support", "@bot hello")
	status := func() string {
		out := h.call("GET", "/people/sam/channels/%23support/messages?thread_ts="+root, nil)
		return fmt.Sprint(out["status"])
	}
	h.until("it is thinking", func() bool { return strings.Contains(status(), "is thinking") })
	close(h.pause)
	h.finds("sam", "#support", root, "results:")
	h.until("it is done", func() bool { return !strings.Contains(status(), "is thinking") })
}

// Slack removes a status after two minutes. A status is renewed before this time, even if the same status is shown again
// and again.
func TestStatusIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slackSide := &replaceHarness{calls: map[string]int{}}
		b := New(Config{BotToken: "xoxb-1", Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: slackSide}})
		b.refused.read = true // this bot has no store from which it could read refusals
		for range 200 {
			b.Display.statuses.set(t.Context(), destination{"C1", "1.1"}, status{turn: "turn", text: "is thinking…"}, false)
			time.Sleep(3 * time.Second)
		}
		if n := slackSide.made("/api/assistant.threads.setStatus"); n != 7 {
			t.Errorf("the status was set %d times in ten minutes", n)
		}
	})
}

// Slack refuses the file of a very long answer because of its type or its size. The answer comes as messages, and the
// file of the next answer is uploaded.
func TestOneFileIsRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"file_type_not_allowed", "file_upload_size_restricted"} {
		tap := new(recordingTransport)
		h := newHarness(t, func(h *harness) {
			h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap}
			h.answer = strings.Repeat("All of this has to arrive.\n\n", 4000) + "The end."
		})
		tap.answering("files.getUploadURLExternal", func(url.Values) string { return `{"ok":false,"error":"` + code + `"}` })
		root := h.says("sam", "#support", "@bot tell me everything")
		h.finds("sam", "#support", root, "The end.")
		h.quiet()
		tap.answering("files.getUploadURLExternal", nil)
		h.says("sam", "#support", "@bot tell me everything")
		h.quiet()
		if n := tap.calls("files.completeUploadExternal", func(url.Values) bool { return true }); n != 1 {
			t.Errorf("%s: %d files were uploaded later", code, n)
		}
	}
}

// A long answer arrives complete, in several messages. The store has the ts of each message.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.answer = strings.Repeat("All of this has to arrive.\n\n", 700) + "The end." })
	root := h.says("sam", "#support", "@bot tell me everything")
	h.finds("sam", "#support", root, "The end.")
	n := 0
	var parts []string
	for _, p := range h.sees("sam", "#support", root) {
		if in := strings.Count(p.raw, `"text":"All of this has to arrive."`); in > 0 {
			n += in
			parts = append(parts, p.TS)
		}
	}
	if n != 700 || len(parts) < 2 {
		t.Fatalf("%d of 700 sentences arrived, in the messages %v", n, parts)
	}
	h.until("the messages are recorded", func() bool {
		s, _, err := h.workflow.Views.Delivery(t.Context(), "C0001", parts[0])
		return err == nil && slices.Equal(s.Parts, parts[1:])
	})
}

// Deliveries that arrive twice, late, or through another socket change nothing. Slack repeats a delivery that failed.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.overHTTP = false })
	for _, f := range []workspace.Fault{
		{Fault: workspace.FaultDuplicateDelivery, Type: "events_api", Times: 3},
		{Fault: workspace.FaultLostAck},
		{Fault: workspace.FaultLateDelivery, Type: "events_api", DelayMS: 50},
	} {
		if err := h.slack.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultDuplicateDelivery, Type: "interactive"}); err != nil {
		t.Fatal(err)
	}
	if err := h.slack.Disconnect("refresh_requested"); err != nil {
		t.Fatal(err)
	}
	h.until("both sockets were refreshed", func() bool {
		return h.slack.Sockets() == sockets && strings.Count(h.log.String(), "connected to Slack") == 2*sockets
	})
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.slack.DropSockets()
	h.until("both sockets are back", func() bool { return h.slack.Sockets() == sockets })
	h.saysIn("sam", "#support", "still there?", root)
	h.until("the second answer", func() bool {
		n := 0
		for _, p := range h.sees("sam", "#support", root) {
			if strings.Contains(p.Text, "results:") {
				n++
			}
		}
		return n == 2
	})
	h.until("nothing waits", func() bool { return len(unhandled(t, h)) == 0 })
	cards := 0
	for _, p := range h.sees("teo", "#support-approvals", "") {
		if p.User == "U0BOT" {
			cards++
		}
	}
	if cards != 1 || len(h.runs()) != 1 {
		t.Errorf("%d cards, ran %q", cards, h.runs())
	}
}

// Slack's rate limits slow the bot down, but no message is lost.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, method := range []string{"chat.postMessage", "users.info", "chat.update"} {
		if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultRateLimited, Method: method, RetryAfter: 1, Times: 2}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.finds("teo", "#support-approvals", "", "It ran")
	if time.Since(began) < time.Second {
		t.Error("Retry-After was not waited for")
	}
}
