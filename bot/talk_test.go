package bot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/internal/workspace"
)

// A direct message is a conversation of its own; "start over" begins another.
func TestDirectMessage(t *testing.T) { inBothWays(t, testDirectMessage) }

func testDirectMessage(t *testing.T, w *workbench) {
	w.says("sam", "U0BOT", "hello")
	w.finds("sam", "U0BOT", "", "results:")
	w.says("sam", "U0BOT", `call issue_refund {"order_id":"ORD-9","amount":5}`)
	card := w.finds("teo", "#support-approvals", "", "ORD-9", "in a direct message to the bot")
	if strings.Contains(card.raw, "See the conversation") {
		t.Error("a link into somebody else's direct messages opens for nobody")
	}
	step := w.finds("sam", "U0BOT", "", "Waits for", "Team Lead")
	w.clicks("sam", "U0BOT", step, actWithdraw)
	w.finds("sam", "U0BOT", "", "Withdrawn by <@U0100>")
	w.finds("sam", "U0BOT", "", "results: withdrawn")
	w.finds("teo", "#support-approvals", "", "Withdrawn by <@U0100>")
}

// Replies in a thread go on with its conversation without a mention; in other threads and channels the bot stays silent.
func TestThreads(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", "just talking to colleagues")
	other := w.says("ada", "#support", "another topic")
	root := w.says("sam", "#support", "@bot hello")
	w.finds("sam", "#support", root, "results:")
	w.saysIn("ada", "#support", "and this without a mention", root)
	w.until("two answers", func() bool { return len(w.sees("sam", "#support", root)) == 4 })
	w.saysIn("sam", "#support", "not for the bot", other)
	w.saysIn("sam", "#support", "@bot but this is", other)
	w.finds("sam", "#support", other, "results:")
	if n := len(w.sees("sam", "#support", other)); n != 4 {
		t.Errorf("%d messages in the other thread", n)
	}
	w.until("nothing waits", func() bool { return len(unhandled(t, w)) == 0 })
	for _, p := range w.sees("sam", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("the bot spoke at the top level: %s", p.Text)
		}
	}
}

// Messages that come while a call waits are held back; their sender is told, and can go on without the call.
func TestQueuedMessage(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.saysIn("sam", "#support", "never mind, what is the weather?", root)
	w.finds("sam", "#support", root, "1 message waits", "Refund for order ORD-123", "Team Lead")
	w.saysIn("ada", "#support", "me too", root)
	notice := w.finds("sam", "#support", root, "2 messages wait")
	w.clicks("priya", "#support", notice, actGoOn)
	w.finds("priya", "#support", root, "only somebody who asked for this can do that")
	w.clicks("sam", "#support", notice, actGoOn)
	w.finds("sam", "#support", root, "Withdrawn by <@U0100>")
	w.finds("sam", "#support", root, "The message that waited here was taken up")
	w.finds("sam", "#support", root, "results: withdrawn")
	w.finds("teo", "#support-approvals", "", "Withdrawn by <@U0100>")
}

// Somebody who may not ask is told why, in words; nothing is asked of the model.
func TestDeniedAskers(t *testing.T) {
	w := newWorkbench(t)
	w.says("gus", "#support", "@bot hello")
	w.finds("gus", "#support", "", "Guests of this workspace can't ask")
	w.says("sam", "#general", "@bot hello")
	w.finds("sam", "#general", "", "not set up to answer in this channel")
	w.says("sam", "#support", "@bot")
	w.finds("sam", "#support", "", "nothing in your message")
	for _, p := range w.sees("ada", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("somebody else saw what was told to one person: %s", p.Text)
		}
	}
}

// While the agent thinks, the thread says so.
func TestThinkingStatus(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.pause = make(chan struct{}) })
	root := w.says("sam", "#support", "@bot hello")
	status := func() string {
		out := w.call("GET", "/people/sam/channels/%23support/messages?thread_ts="+root, nil)
		return fmt.Sprint(out["status"])
	}
	w.until("it is thinking", func() bool { return strings.Contains(status(), "is thinking") })
	close(w.pause)
	w.finds("sam", "#support", root, "results:")
	w.until("it is done", func() bool { return !strings.Contains(status(), "is thinking") })
}

// A long answer arrives whole, in several messages.
func TestLongAnswer(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.answer = strings.Repeat("All of this has to arrive.\n\n", 700) + "The end." })
	root := w.says("sam", "#support", "@bot tell me everything")
	w.finds("sam", "#support", root, "The end.")
	n := 0
	for _, p := range w.sees("sam", "#support", root) {
		n += strings.Count(p.raw, `"text":"All of this has to arrive."`)
	}
	if n != 700 {
		t.Errorf("%d of 700 sentences arrived", n)
	}
}

// What Slack delivers twice, or late, or through another socket changes nothing; what it could not deliver comes again.
func TestDeliveries(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.overHTTP = false })
	for _, f := range []workspace.Fault{
		{Fault: workspace.FaultDuplicateDelivery, Type: "events_api", Times: 3},
		{Fault: workspace.FaultLostAck},
		{Fault: workspace.FaultLateDelivery, Type: "events_api", DelayMS: 50},
	} {
		if err := w.slack.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultDuplicateDelivery, Type: "interactive"}); err != nil {
		t.Fatal(err)
	}
	if err := w.slack.Disconnect("refresh_requested"); err != nil {
		t.Fatal(err)
	}
	w.until("both sockets were refreshed", func() bool {
		return w.slack.Sockets() == sockets && strings.Count(w.log.String(), "connected to Slack") == 2*sockets
	})
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	w.slack.DropSockets()
	w.until("both sockets are back", func() bool { return w.slack.Sockets() == sockets })
	w.saysIn("sam", "#support", "still there?", root)
	w.until("the second answer", func() bool {
		n := 0
		for _, p := range w.sees("sam", "#support", root) {
			if strings.Contains(p.Text, "results:") {
				n++
			}
		}
		return n == 2
	})
	w.until("nothing waits", func() bool { return len(unhandled(t, w)) == 0 })
	cards := 0
	for _, p := range w.sees("teo", "#support-approvals", "") {
		if p.User == "U0BOT" {
			cards++
		}
	}
	if cards != 1 || len(w.runs()) != 1 {
		t.Errorf("%d cards, ran %q", cards, w.runs())
	}
}

// Slack's own rate limits slow the bot down and lose nothing.
func TestRateLimits(t *testing.T) {
	w := newWorkbench(t)
	for _, method := range []string{"chat.postMessage", "users.info", "chat.update"} {
		if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultRateLimited, Method: method, RetryAfter: 1, Times: 2}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	w.finds("teo", "#support-approvals", "", "It ran")
	if time.Since(began) < time.Second {
		t.Error("Retry-After was not waited for")
	}
}
