package bot

import (
	"strings"
	"testing"

	"countersign/bot/bottest"
	"countersign/bot/render"
)

// stands counts the messages in the approvals channel that have the words.
func (h *harness) stands(words string) (n int) {
	h.t.Helper()
	for _, p := range h.sees("ada", "#support-approvals", "") {
		if strings.Contains(p.Text, words) {
			n++
		}
	}
	return n
}

// A channel that comes to be shared with another organisation loses its cards at once: they go to each person by direct
// message, and are decided there. What comes later goes there from the start. Once it is shared no more, cards stand in
// it again.
func TestCardsLeaveSharedChannel(t *testing.T) {
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, render.ActApprove)
	if err := h.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	h.until("no card stands in the shared channel", func() bool { return h.stands("ORD-123") == 0 })
	dm := h.finds("teo", "U0BOT", "", "ORD-123", "Waits for Team Lead")
	h.delivers("late", click{"U0002", "T0001", "C0002", card.TS, render.ActApprove, m.String()})
	h.until("a click on what was taken away is refused", func() bool { return len(h.denials(m.Ref)) == 1 })
	if got := h.denials(m.Ref)[0]; !strings.HasPrefix(got, "replaced ") {
		t.Errorf("recorded as %q", got)
	}
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	h.finds("teo", "U0BOT", "", "ORD-9", "Waits for Team Lead")
	if n := h.stands("ORD-9"); n != 0 {
		t.Errorf("%d cards stand in the shared channel", n)
	}
	h.quiet()
	h.clicks("teo", "U0BOT", dm, render.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	if !strings.Contains(h.log.String(), "shared with another organisation") {
		t.Error("the operator was not told")
	}
	if err := h.slack.ShareChannel("C0002", false); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-77","amount":5}`)
	h.finds("teo", "#support-approvals", "", "ORD-77", "Waits for Team Lead")
}

// The bot finds out by itself that a channel is shared, where Slack tells of it late or never; and the policy may let
// cards stand in such a channel.
func TestSharedChannelThatNobodyToldOf(t *testing.T) {
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
				t.Errorf("%s: a card stands among strangers: %s", name, p.Text)
			}
		}
	}
}

// A policy that names the channel while it is shared counts at once, for new cards.
func TestSharedChannelIsNamedLater(t *testing.T) {
	h := newHarness(t)
	if err := h.slack.ShareChannel("C0002", true); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", refundCall)
	h.finds("teo", "U0BOT", "", "ORD-123")
	if h.stands("ORD-123") != 0 {
		t.Error("a card stands in the shared channel")
	}
	h.quiet()
	p := bottest.Policy()
	p.SharedChannels = []string{"#support-approvals"}
	h.decree(p)
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	h.finds("teo", "#support-approvals", "", "ORD-9")
}
