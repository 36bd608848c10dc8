package bot

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
)

// does performs an action of a person in a channel, such as remove, invite or archive.
func (h *harness) does(user, what, channel string, users ...string) {
	h.t.Helper()
	if out := h.call("POST", "/people/"+user+"/"+what, map[string]any{"channel": channel, "users": users}); out["ok"] != true {
		h.t.Fatalf("%s could not %s: %v", user, what, out)
	}
}

// The method "told" counts the log lines for the operator about channels.
func (h *harness) told() int {
	return strings.Count(h.log.String(), `level=ERROR msg="the bot can't write in a channel any more`)
}

// If the bot is removed from the cards' channel, each approver gets the open cards by direct message, and can decide
// there. After the bot is invited again, new cards are posted in the channel, and the old cards show how their requests
// ended.
func TestRemovedFromTheCardsChannel(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	old := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	h.does("teo", "remove", "#support-approvals", "U0BOT")
	card := h.finds("teo", "U0BOT", "", "Waits for Team Lead")
	h.clicks("teo", "U0BOT", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	other := h.says("sam", "#support", refundCall)
	h.until("a new card came by direct message", func() bool { return len(botMessages(h, "teo", "U0BOT", "")) == 2 })
	h.finds("sam", "#support", other, "Waits for")
	h.quiet()
	if n := h.told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}
	if n := len(botMessages(h, "teo", "#support-approvals", "")); n != 1 {
		t.Errorf("%d cards in the channel", n)
	}
	h.does("teo", "invite", "#support-approvals", "U0BOT")
	if done := h.finds("teo", "#support-approvals", "", "It ran"); done.TS != old.TS || done.has(control.ActApprove) {
		t.Errorf("the old card: %s", done.raw)
	}
	h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
}

// If the conversation's channel is archived while a call waits, the requester gets the messages by direct message. The
// messages include the button that withdraws the call.
func TestArchivedConversation(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	h.does("teo", "archive", "#support")
	step := h.finds("sam", "U0BOT", "", "Waits for")
	h.clicks("sam", "U0BOT", step, control.ActWithdraw)
	h.finds("sam", "U0BOT", "", "results: withdrawn")
	h.finds("teo", "#support-approvals", "", "Withdrawn by")
}

// If Slack sends no event, the bot notices the lost channel at the next post in this channel. The bot then moves the
// other open messages.
func TestLostChannelUnheard(t *testing.T) {
	t.Parallel()
	slack := &refuser{}
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
	h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	slack.refuse(func(method, body string) string {
		if method == "chat.postMessage" && strings.Contains(body, "channel=C0002") {
			return "is_archived"
		}
		return ""
	})
	h.says("sam", "#support", refundCall)
	h.until("both cards came by direct message", func() bool { return len(botMessages(h, "teo", "U0BOT", "")) == 2 })
	slack.refuse(nil)
	h.says("sam", "#support", refundCall) // the channel was unarchived, also without an event
	h.until("the channel has a card again, and the old one", func() bool { return len(botMessages(h, "teo", "#support-approvals", "")) == 2 })
	h.quiet()
	if n := h.told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}
}

// If Slack sends no event and does not list the channel any more, the bot knows only the channel's name in the policy.
// When the bot is back in the channel, the old card shows how its request ended.
func TestLostChannelIsNotListed(t *testing.T) {
	t.Parallel()
	slack := &refuser{}
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
	h.says("sam", "#support", refundCall)
	old := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	slack.refuse(func(method, body string) string {
		if method == "users.conversations" || method == "conversations.list" || strings.HasPrefix(method, "chat.") && strings.Contains(body, "channel=C0002") {
			return "channel_not_found"
		}
		return ""
	})
	h.does("teo", "archive", "#support") // an event about any channel discards the cached list
	h.clicks("teo", "#support-approvals", old, control.ActApprove)
	h.finds("teo", "U0BOT", "", "It ran")
	slack.refuse(nil)
	h.does("teo", "remove", "#support-approvals", "U0BOT")
	h.does("teo", "invite", "#support-approvals", "U0BOT")
	if done := h.finds("teo", "#support-approvals", "", "It ran"); done.TS != old.TS || done.has(control.ActApprove) {
		t.Errorf("the old card: %s", done.raw)
	}
}

// If a thread's only message was deleted without an event, Slack posts the bot's reply to the whole channel. The bot
// deletes this reply. The bot sends the reply and all later messages to the requester by direct message.
func TestStrayAnswer(t *testing.T) {
	t.Parallel()
	t.Run("at once", func(t *testing.T) { strayAnswer(t, nil) })
	t.Run("when Slack can't do it at first", func(t *testing.T) {
		strayAnswer(t, &workspace.Fault{Fault: workspace.FaultError, Method: "chat.delete", Error: "internal_error"})
	})
	t.Run("when Slack's answer is lost", func(t *testing.T) {
		strayAnswer(t, &workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage"})
	})
}

func strayAnswer(t *testing.T, fault *workspace.Fault) {
	h := newHarness(t, func(h *harness) { h.pause = make(chan struct{}) })
	root := h.says("sam", "#support", refundCall)
	h.until("it thinks", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/sam/channels/%23support/messages?thread_ts="+root, nil)["status"]), "thinking")
	})
	if err := h.slack.Expire("C0001", root); err != nil {
		t.Fatal(err)
	}
	if fault != nil {
		if err := h.slack.Inject(*fault); err != nil {
			t.Fatal(err)
		}
	}
	close(h.pause)
	step := h.finds("sam", "U0BOT", "", "Waits for")
	h.clicks("sam", "U0BOT", step, control.ActWithdraw)
	h.finds("sam", "U0BOT", "", "results: withdrawn")
	h.quiet()
	for _, p := range h.sees("sam", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("the whole channel was told: %s", p.Text)
		}
	}
}

// If Slack reports that the thread of an answer does not exist, the requester gets the answer by direct message.
func TestThreadNotFound(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "chat.postMessage", Error: "thread_not_found"}); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", "@bot hello")
	h.finds("sam", "U0BOT", "", "results:")
	h.quiet()
	if h.told() != 0 || !strings.Contains(h.log.String(), "Slack refused a message permanently") {
		t.Error("the operator was not told of the thread, or was told of a channel")
	}
}

// countsCards counts the messages in the approvals channel that contain the words.
func (h *harness) countsCards(words string) (n int) {
	h.t.Helper()
	for _, p := range h.sees("ada", "#support-approvals", "") {
		if strings.Contains(p.Text, words) {
			n++
		}
	}
	return n
}

// When a channel becomes shared with another organisation, the cards in it move to direct messages immediately, and
// people decide them in the direct messages. New cards are also sent by direct message. When the channel is no longer
// shared, cards are posted in it again.
func TestCardsLeaveSharedChannel(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, control.ActApprove)
	if err := h.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	h.until("no card is in the shared channel", func() bool { return h.countsCards("ORD-123") == 0 })
	dm := h.finds("teo", "U0BOT", "", "ORD-123", "Waits for Team Lead")
	h.delivers("late", click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, m.String()})
	h.until("a click on what was taken away is refused", func() bool { return len(h.denials(m.Ref)) == 1 })
	if got := h.denials(m.Ref)[0]; !strings.HasPrefix(got, "replaced ") {
		t.Errorf("recorded as %q", got)
	}
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	h.finds("teo", "U0BOT", "", "ORD-9", "Waits for Team Lead")
	if n := h.countsCards("ORD-9"); n != 0 {
		t.Errorf("%d cards are in the shared channel", n)
	}
	h.quiet()
	h.clicks("teo", "U0BOT", dm, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	if !strings.Contains(h.log.String(), "shared with another organisation") {
		t.Error("the operator was not told")
	}
	if err := h.slack.ShareChannel("C0002", false); err != nil {
		t.Fatal(err)
	}
	h.quiet()
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-77","amount":5}`)
	h.finds("teo", "#support-approvals", "", "ORD-77", "Waits for Team Lead")
}

// A channel can become shared while a card is being posted in it. The post succeeds, but the card leaves the channel.
func TestChannelIsSharedDuringPost(t *testing.T) {
	t.Parallel()
	posting, shared := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slack := &refuser{answer: func(method, body string) string {
		if method == "chat.postMessage" && strings.Contains(body, "channel=C0002") {
			once.Do(func() { close(posting) })
			<-shared
		}
		return ""
	}}
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
	h.says("sam", "#support", refundCall)
	<-posting
	if err := h.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	h.until("the bot notices it", func() bool { return strings.Contains(h.log.String(), "shared with another organisation") })
	close(shared)
	h.finds("teo", "U0BOT", "", "ORD-123", "Waits for Team Lead")
	h.until("no card is in the shared channel", func() bool { return h.countsCards("ORD-123") == 0 })
	h.quiet()
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	h.finds("teo", "U0BOT", "", "ORD-9", "Waits for Team Lead")
	if n := h.countsCards("ORD-9"); n != 0 {
		t.Errorf("%d cards are in the shared channel", n)
	}
}

// Even without an event, the bot notices that a channel is shared. The policy may allow cards in such a channel.
func TestSharedChannelThatNobodyToldOf(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string][]string{"not named": nil, "by name": {"#supplier-desk"}, "by id": {"C0004"}} {
		h := newHarness(t, func(h *harness) {
			h.policy.SharedChannels = allowed
			h.policy.Approvers[1].Cards = "#supplier-desk"
		})
		if h.says("sam", "#support", refundCall); len(allowed) > 0 {
			h.finds("ada", "#supplier-desk", "", "ORD-123", "Waits for Team Lead")
			continue
		}
		h.finds("teo", "U0BOT", "", "ORD-123", "Waits for Team Lead")
		for _, p := range h.sees("ada", "#supplier-desk", "") {
			if strings.Contains(p.raw, "ORD-123") {
				t.Errorf("%s: a card is visible to another organisation: %s", name, p.Text)
			}
		}
	}
}

// If a changed policy names a shared channel, new cards immediately go to this channel.
func TestSharedChannelIsNamedLater(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := h.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", refundCall)
	h.finds("teo", "U0BOT", "", "ORD-123")
	h.until("no card is in the shared channel", func() bool { return h.countsCards("ORD-123") == 0 })
	h.quiet()
	p := bottest.Policy()
	p.SharedChannels = []string{"#support-approvals"}
	h.setPolicy(p)
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	h.finds("teo", "#support-approvals", "", "ORD-9")
}
