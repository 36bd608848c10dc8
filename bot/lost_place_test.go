package bot

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"countersign/internal/workspace"
)

// does has a person do something in a channel: remove, invite, archive, …
func (w *workbench) does(user, what, channel string, users ...string) {
	w.t.Helper()
	if out := w.call("POST", "/people/"+user+"/"+what, map[string]any{"channel": channel, "users": users}); out["ok"] != true {
		w.t.Fatalf("%s could not %s: %v", user, what, out)
	}
}

// told counts what the operator was told of channels.
func (w *workbench) told() int {
	return strings.Count(w.log.String(), `level=ERROR msg="the bot can't write in a channel any more`)
}

// The bot is removed from the channel of the cards: what is open there comes to each approver, and works there. Invited again, it posts there again, and
// what stands there from before shows how it ended.
func TestRemovedFromTheCardsChannel(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	old := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	w.does("teo", "remove", "#support-approvals", "U0BOT")
	card := w.finds("teo", "U0BOT", "", "Waits for Team Lead")
	w.clicks("teo", "U0BOT", card, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	other := w.says("sam", "#support", refundCall)
	w.until("a new card came by direct message", func() bool { return len(botMessages(w, "teo", "U0BOT", "")) == 2 })
	w.finds("sam", "#support", other, "Waits for")
	w.quiet()
	if n := w.told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}
	if n := len(botMessages(w, "teo", "#support-approvals", "")); n != 1 {
		t.Errorf("%d cards in the channel", n)
	}
	w.does("teo", "invite", "#support-approvals", "U0BOT")
	if done := w.finds("teo", "#support-approvals", "", "It ran"); done.TS != old.TS || done.has(actApprove) {
		t.Errorf("the old card: %s", done.raw)
	}
	w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
}

// The conversation's channel is archived while the call waits: what is said comes to whoever asked, by direct message, with the button to take it back.
func TestArchivedConversation(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	w.does("teo", "archive", "#support")
	step := w.finds("sam", "U0BOT", "", "Waits for")
	w.clicks("sam", "U0BOT", step, actWithdraw)
	w.finds("sam", "U0BOT", "", "results: withdrawn")
	w.finds("teo", "#support-approvals", "", "Withdrawn by")
}

// Nothing told the bot that it lost a channel: it finds out at its next post there, and moves what else is open.
func TestLostChannelUnheard(t *testing.T) {
	slack := &refuser{}
	w := newWorkbench(t, func(w *workbench) { w.http = &http.Client{Transport: slack} })
	w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	slack.refuse(func(method, body string) string {
		if method == "chat.postMessage" && strings.Contains(body, "channel=C0002") {
			return "is_archived"
		}
		return ""
	})
	w.says("sam", "#support", refundCall)
	w.until("both cards came by direct message", func() bool { return len(botMessages(w, "teo", "U0BOT", "")) == 2 })
	slack.refuse(nil)
	w.says("sam", "#support", refundCall) // it is opened again, which nobody tells either
	w.until("the channel has a card again, and the old one", func() bool { return len(botMessages(w, "teo", "#support-approvals", "")) == 2 })
	w.quiet()
	if n := w.told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}
}

// Nobody told the bot that the thread went with its only message, and Slack posts what was meant for it to the whole channel: that is taken back, and comes
// to whoever asked by direct message, as does what follows.
func TestStrayAnswer(t *testing.T) {
	t.Run("at once", func(t *testing.T) { strayAnswer(t, nil) })
	t.Run("when Slack can't do it at first", func(t *testing.T) {
		strayAnswer(t, &workspace.Fault{Fault: workspace.FaultError, Method: "chat.delete", Error: "internal_error"})
	})
	t.Run("when Slack's answer is lost", func(t *testing.T) {
		strayAnswer(t, &workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage"})
	})
}

func strayAnswer(t *testing.T, fault *workspace.Fault) {
	w := newWorkbench(t, func(w *workbench) { w.pause = make(chan struct{}) })
	root := w.says("sam", "#support", refundCall)
	w.until("it thinks", func() bool {
		return strings.Contains(fmt.Sprint(w.call("GET", "/people/sam/channels/%23support/messages?thread_ts="+root, nil)["status"]), "thinking")
	})
	if err := w.slack.Expire("C0001", root); err != nil {
		t.Fatal(err)
	}
	if fault != nil {
		if err := w.slack.Inject(*fault); err != nil {
			t.Fatal(err)
		}
	}
	close(w.pause)
	step := w.finds("sam", "U0BOT", "", "Waits for")
	w.clicks("sam", "U0BOT", step, actWithdraw)
	w.finds("sam", "U0BOT", "", "results: withdrawn")
	w.quiet()
	for _, p := range w.sees("sam", "#support", "") {
		if p.User == "U0BOT" {
			t.Errorf("the whole channel was told: %s", p.Text)
		}
	}
}

// Slack knows no thread any more for an answer: it comes to whoever asked, by direct message.
func TestThreadNotFound(t *testing.T) {
	w := newWorkbench(t)
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "chat.postMessage", Error: "thread_not_found"}); err != nil {
		t.Fatal(err)
	}
	w.says("sam", "#support", "@bot hello")
	w.finds("sam", "U0BOT", "", "results:")
	w.quiet()
	if w.told() != 0 || !strings.Contains(w.log.String(), "Slack refused this for good") {
		t.Error("the operator was not told, or of a channel")
	}
}
