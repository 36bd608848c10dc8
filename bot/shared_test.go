package bot

import (
	"strings"
	"testing"
)

// stands counts the messages in the approvals channel that have the words.
func (w *workbench) stands(words string) (n int) {
	w.t.Helper()
	for _, p := range w.sees("ada", "#support-approvals", "") {
		if strings.Contains(p.Text, words) {
			n++
		}
	}
	return n
}

// A channel that comes to be shared with another organisation loses its cards at once: they go to each person by direct message, and are decided there. What
// comes later goes there from the start. Once it is shared no more, cards stand in it again.
func TestCardsLeaveSharedChannel(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	m := w.buttonOn("C0002", card, actApprove)
	if err := w.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	w.until("no card stands in the shared channel", func() bool { return w.stands("ORD-123") == 0 })
	dm := w.finds("teo", "U0BOT", "", "ORD-123", "Waits for Team Lead")
	w.delivers("late", click{"U0002", "T0001", "C0002", card.TS, actApprove, m.String()})
	w.until("a click on what was taken away is refused", func() bool { return len(w.denials(m.Ref)) == 1 })
	if got := w.denials(m.Ref)[0]; !strings.HasPrefix(got, "replaced ") {
		t.Errorf("recorded as %q", got)
	}
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	w.finds("teo", "U0BOT", "", "ORD-9", "Waits for Team Lead")
	if n := w.stands("ORD-9"); n != 0 {
		t.Errorf("%d cards stand in the shared channel", n)
	}
	w.quiet()
	w.clicks("teo", "U0BOT", dm, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	if !strings.Contains(w.log.String(), "shared with another organisation") {
		t.Error("the operator was not told")
	}
	if err := w.slack.ShareChannel("C0002", false); err != nil {
		t.Fatal(err)
	}
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-77","amount":5}`)
	w.finds("teo", "#support-approvals", "", "ORD-77", "Waits for Team Lead")
}

// The bot finds out by itself that a channel is shared, where Slack tells of it late or never; and the policy may let cards stand in such a channel.
func TestSharedChannelThatNobodyToldOf(t *testing.T) {
	for name, allowed := range map[string][]string{"not named": nil, "by name": {"#supplier-desk"}, "by id": {"C0004"}} {
		w := newWorkbench(t, func(w *workbench) {
			w.policy.SharedChannels = allowed
			w.policy.Approvers[1].Cards = "#supplier-desk"
		})
		if w.says("sam", "#support", refundCall); len(allowed) > 0 {
			w.finds("ada", "#supplier-desk", "", "ORD-123", "Waits for Team Lead")
			continue
		}
		w.finds("teo", "U0BOT", "", "ORD-123", "Waits for Team Lead")
		for _, p := range w.sees("ada", "#supplier-desk", "") {
			if strings.Contains(p.raw, "ORD-123") {
				t.Errorf("%s: a card stands among strangers: %s", name, p.Text)
			}
		}
	}
}

// A policy that names the channel while it is shared counts at once, for new cards.
func TestSharedChannelIsNamedLater(t *testing.T) {
	w := newWorkbench(t)
	if err := w.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	w.says("sam", "#support", refundCall)
	w.finds("teo", "U0BOT", "", "ORD-123")
	if w.stands("ORD-123") != 0 {
		t.Error("a card stands in the shared channel")
	}
	w.quiet()
	p := testPolicy()
	p.SharedChannels = []string{"#support-approvals"}
	w.decree(p)
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	w.finds("teo", "#support-approvals", "", "ORD-9")
}
