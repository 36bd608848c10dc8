package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"countersign/bot/render/control"
)

// typed sends a command, and waits for the answer.
func (h *harness) typed(user, text string, words ...string) posted {
	h.t.Helper()
	h.commands(user, "#support", text)
	return h.answered(user, "#support", words...)
}

// The command explain says who would have to allow a call in the channel of the command, and by which rule. The command
// creates no request.
func TestExplainCall(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	said := h.typed("sam", `explain issue_refund {"order_id":"ORD-1","amount":20}`, "It would wait for people", "1 person · Team Lead: <@U0002>", "issue_refund: high risk", "You could not allow it yourself")
	if strings.Contains(said.Text, "ORD-1") {
		t.Errorf("the arguments are repeated: %s", said.Text)
	}
	h.typed("sam", `explain issue_refund {“order_id”:“ORD-2”,“amount”:99999}`, "It would wait for people", "With these arguments, the tool would refuse the call before that", "amount")
	h.typed("sam", "explain search_orders", "It would run without asking anybody")
	h.typed("sam", "explain\ncancel_account {\"user_id\":\"U1\"}", "cancel_account: critical risk")
	h.typed("sam", "explain update_shipping_address\n{\"order_id\":\"ORD-3\"}", "update_shipping_address: medium risk")
	h.typed("sam", "explain no_such_tool", "No tool is called “no_such_tool”", "issue_refund")
	h.typed("sam", "explain issue_refund amount=20", "These are not arguments", "Write them as JSON")
	h.typed("sam", "explain", "Say what:")
	h.typed("sam", "explian", "I don't know “explian”", "explain")
	h.commands("gus", "#support", "explain search_orders")
	h.answered("gus", "#support", "full members of this workspace only")
	if waiting, err := h.workflow.Views.Waiting(context.Background()); err != nil || waiting {
		t.Error("a request was created", err)
	}
}

// For a request, the commands explain and history say who decides it, why, and what has happened. The commands answer
// only people whom the request concerns. The command history also lists a person's own requests and decisions.
func TestExplainAndHistory(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.typed("sam", "history", "You have asked for nothing")
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := h.asked("C0002", card)
	link := fmt.Sprintf("<%s/archives/C0002/p%s>", h.url, strings.ReplaceAll(card.TS, ".", ""))
	h.typed("teo", "explain "+link, "Why people are asked: issue_refund is high risk", "it waits here", "What has happened so far:", "The agent asked for it.", "Shown to those who decide.")
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "you are not a member of that role")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	h.quiet()
	h.typed("sam", "explain "+r.ID, "Approved by <@U0002>", "<@U0001> tried to approve it, but may not.", "<@U0002> approved it as Team Lead.", "It was started.", "It ran: succeeded.")
	h.typed("sam", "history", "What you asked for or had a say in", "Refund for order ORD-123", "Approved by <@U0002>", r.ID)
	h.typed("teo", "history "+r.ID, "Refund for order ORD-123, asked for by <@U0100>", "The agent was told.")
	h.typed("priya", "history", "You have asked for nothing")
	h.typed("priya", "history "+r.ID, "between those who asked for it and those who may decide it")
	h.typed("priya", "explain "+r.ID, "between those who asked for it and those who may decide it")
	h.typed("sam", "history req_none", "I don't know that request")
}

// A long history has pages.
func TestHistoryPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 12 {
		h.says("sam", "#support", fmt.Sprintf(`@bot call update_shipping_address {"order_id":"ORD-%d"}`, i))
	}
	h.until("all wait", func() bool {
		n := 0
		for _, p := range h.sees("ada", "#support-approvals", "") {
			if strings.Contains(p.Text, "Waits for Support Agent") {
				n++
			}
		}
		return n == 12
	})
	h.typed("sam", "history", "There is more: /countersign history 2")
	h.typed("sam", "history 99", "There is no page 99: the last one is page 2.")
	last := h.typed("sam", "history 2", "What you asked for or had a say in, page 2", "Update shipping address")
	if n := strings.Count(last.Text, "✋"); n != 2 {
		t.Errorf("%d on the second page: %s", n, last.Text)
	}
}

// The shortcut explains a card in a form. On a message without a request, the shortcut says that there is nothing to
// explain.
func TestExplainShortcut(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	chat := h.says("ada", "#support-approvals", "good morning")
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	step := h.finds("sam", "#support", root, "Waits for", "Team Lead")
	h.quiet() // after this, the bot has recorded the messages that it posted
	explained := func(user, channel, ts string, words ...string) {
		t.Helper()
		if out := h.call("POST", "/people/"+user+"/shortcuts", map[string]any{"callback_id": control.ExplainShortcut, "channel": channel, "ts": ts}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
		h.until(fmt.Sprintf("%s reads %q", user, words), func() bool {
			views, _ := json.Marshal(h.call("GET", "/people/"+user+"/views", nil)["views"])
			for _, word := range words {
				if !strings.Contains(string(views), word) {
					return false
				}
			}
			return true
		})
		views, _ := h.call("GET", "/people/"+user+"/views", nil)["views"].([]any)
		h.call("POST", fmt.Sprintf("/people/%s/views/%s/close", user, views[0].(map[string]any)["id"]), map[string]any{"all": true})
	}
	explained("ada", "#support-approvals", card.TS, "Explain this approval", "Refund for order ORD-123", "Why people are asked", "it waits here", "The agent asked for it.")
	explained("sam", "#support", step.TS, "Refund for order ORD-123", "it waits here")
	explained("ada", "#support-approvals", chat, "there is nothing to explain")
	explained("gus", "#support", step.TS, "full members of this workspace only")
	h.quiet()
	if faults := h.log.String(); strings.Contains(faults, "could not be") {
		t.Error(faults)
	}
}
