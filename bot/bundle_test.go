package bot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
)

const threeCalls = `@bot call issue_refund {"order_id":"ORD-1","amount":11}
call issue_refund {"order_id":"ORD-2","amount":22}
call update_shipping_address {"order_id":"ORD-3"}
call issue_refund {"order_id":"ORD-4","amount":44}`

// clicksOn presses a button of one call of a bundle. clicksOn chooses the i-th row of buttons that has the action.
func (h *harness) clicksOn(user, channel string, p posted, action string, i int) {
	h.t.Helper()
	out := h.call("POST", "/people/"+user+"/actions", map[string]any{"channel": channel, "ts": p.TS, "action_id": action, "block_id": p.row(h.t, action, i)})
	if out["ok"] != true {
		h.t.Fatalf("%s could not click %s: %v", user, action, out)
	}
}

// row returns the block id of the i-th row of buttons that contains the action.
func (p posted) row(t testing.TB, action string, i int) string {
	t.Helper()
	var m struct {
		Blocks []struct {
			ID       string `json:"block_id"`
			Elements []struct {
				Action string `json:"action_id"`
			} `json:"elements"`
		} `json:"blocks"`
	}
	if err := json.Unmarshal([]byte(p.raw), &m); err != nil {
		t.Fatal(err)
	}
	for _, b := range m.Blocks {
		for _, e := range b.Elements {
			if e.Action != action {
				continue
			}
			if i--; i < 0 {
				return b.ID
			}
		}
	}
	t.Fatalf("no further row with %s", action)
	return ""
}

// Calls of one step for the same approvers share one card, and each call is decided separately.
func TestBundleOneByOne(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", threeCalls)
	card := h.finds("teo", "#support-approvals", "", "3 requests wait for Team Lead", "<@U0002>", "ORD-1", "ORD-2", "ORD-4")
	h.finds("ada", "#support-approvals", "", "Waits for Support Agent", "ORD-3")
	if n := strings.Count(card.raw, `"action_id":"approve"`); n != 3 {
		t.Fatalf("%d calls can be approved", n)
	}
	h.clicksOn("teo", "#support-approvals", card, control.ActApprove, 1)
	card = h.finds("teo", "#support-approvals", "", "2 of 3 wait", "Approved by <@U0002> (Team Lead)", "Done.")
	h.clicksOn("teo", "#support-approvals", card, control.ActReject, 0)
	form := h.opened("teo", control.ActReject)
	if !strings.Contains(fmt.Sprint(form["blocks"]), "ORD-1") {
		t.Error("the form is about another call")
	}
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "refunded already"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	card = h.finds("teo", "#support-approvals", "", "1 of 3 waits", "refunded already")
	h.finds("sam", "#support", root, "refunded already", "Waits for Support Agent")
	h.clicksOn("teo", "#support-approvals", card, control.ActArguments, 0)
	h.clicksInDetails("teo", control.ActModify)
	form = h.opened("teo", control.ActModify)
	if out := h.submits("teo", form, map[string]any{"arg.amount": "40"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.until("a bundle that is settled has no buttons", func() bool { // an approval can be taken back until the last call has run
		card = h.finds("teo", "#support-approvals", "", "3 requests: none waits here any more")
		return !strings.Contains(card.raw, `"button"`)
	})
	ada := h.finds("ada", "#support-approvals", "", "Waits for Support Agent", "ORD-3")
	h.clicks("ada", "#support-approvals", ada, control.ActApprove)
	h.finds("sam", "#support", root, "results: rejected", "executed")
	want := []string{`issue_refund {"order_id":"ORD-2","amount":22}`, `issue_refund {"order_id":"ORD-4","amount":40}`, `update_shipping_address {"order_id":"ORD-3"}`}
	if got := h.runs(); !slices.Equal(got, want) {
		t.Errorf("ran %q", got)
	}
}

// In a long bundle, a person opens each call separately, and decides the call in its Details….
func TestBundleList(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	four := "@bot "
	for i := 1; i <= 4; i++ {
		four += fmt.Sprintf("call issue_refund {\"order_id\":\"ORD-%d\",\"amount\":%d1,\"reason\":\"it arrived broken, and they asked twice already\"}\n", i, i)
	}
	root := h.says("sam", "#support", strings.TrimSpace(four))
	card := h.finds("teo", "#support-approvals", "", "4 requests wait for Team Lead", "Open 4…")
	if card.has(control.ActApprove) || !card.has(control.ActApproveAll) {
		t.Fatalf("its calls have buttons of their own, or can't be approved together: %s", card.raw)
	}
	h.clicks("ada", "#support-approvals", card, control.ActDetailsOf+"2")
	if form := h.opened("ada", control.ActArguments); form["submit"] != nil {
		t.Error("it can be approved by somebody without the role")
	}
	h.clicks("teo", "#support-approvals", card, control.ActDetailsOf+"2")
	form := h.opened("teo", control.ActArguments)
	if !strings.Contains(fmt.Sprint(form["blocks"]), "ORD-2") || form["submit"] == nil {
		t.Fatalf("the form is about another call, or does not approve it: %v", form)
	}
	if out := h.submits("teo", form, nil); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	card = h.finds("teo", "#support-approvals", "", "3 of 4 wait")
	if card.has(control.ActDetailsOf + "4") {
		h.clicks("teo", "#support-approvals", card, control.ActDetailsOf+"4")
	} else {
		h.clicksOn("teo", "#support-approvals", card, control.ActArguments, 2)
	}
	h.clicksInDetails("teo", control.ActReject)
	form = h.opened("teo", control.ActReject)
	if !strings.Contains(fmt.Sprint(form["blocks"]), "ORD-4") {
		t.Error("the form is about another call")
	}
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "refunded already"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	card = h.finds("teo", "#support-approvals", "", "2 of 4 wait")
	h.clicks("teo", "#support-approvals", card, control.ActApproveAll)
	h.finds("sam", "#support", root, "results: executed", "rejected", "refunded already")
	if got := h.runs(); len(got) != 3 {
		t.Errorf("ran %q", got)
	}
}

// All calls are approved together, with one confirmed click.
func TestBundleAll(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", strings.ReplaceAll(threeCalls, "update_shipping_address", "search_orders"))
	card := h.finds("teo", "#support-approvals", "", "3 requests wait for Team Lead")
	h.clicks("ada", "#support-approvals", card, control.ActApproveAll)
	h.finds("ada", "#support-approvals", "", "None of them was decided", "you are not a member of that role")
	h.clicks("teo", "#support-approvals", card, control.ActApproveAll)
	h.finds("teo", "#support-approvals", "", "3 requests: none waits here any more")
	h.finds("sam", "#support", root, "results: executed")
	if got := h.runs(); len(got) != 4 {
		t.Errorf("ran %q", got)
	}
}

func TestBundleRejectAll(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	root := h.says("sam", "#support", strings.ReplaceAll(threeCalls, "update_shipping_address", "search_orders"))
	card := h.finds("teo", "#support-approvals", "", "3 requests wait for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActRejectAll)
	form := h.opened("teo", control.ActRejectAll)
	if out := h.submits("teo", form, map[string]any{control.FieldReason: " "}); out["error"] != "view_errors" {
		t.Errorf("rejected without a reason: %v", out)
	}
	h.clicksOn("ada", "#support-approvals", card, control.ActApprove, 0)
	h.finds("teo", "#support-approvals", "", "2 of 3 wait")
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "too much"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "None of them was decided, because of", "ORD-1", "Too late: <@U0001>")
	card = h.finds("teo", "#support-approvals", "", "2 of 3 wait")
	h.clicks("teo", "#support-approvals", card, control.ActRejectAll)
	form = h.opened("teo", control.ActRejectAll)
	h.until("the form is about two calls", func() bool {
		form = h.opened("teo", control.ActRejectAll)
		return !strings.Contains(fmt.Sprint(form["blocks"]), "ORD-1")
	})
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "too much"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("sam", "#support", root, "results: executed", "rejected", "too much")
}

// A button in the Details… of a bundled call moves the call to its own card. In direct messages each person has a copy
// of the bundle.
func TestBundleApart(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers[1].Cards = "dm"
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
		h.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	})
	h.says("sam", "#support", strings.ReplaceAll(threeCalls, "update_shipping_address", "search_orders"))
	teo := h.finds("teo", "U0BOT", "", "3 requests wait for Team Lead")
	ada := h.finds("ada", "U0BOT", "", "3 requests wait for Team Lead")
	h.clicksOn("ada", "U0BOT", ada, control.ActArguments, 2)
	h.clicksOn("teo", "U0BOT", teo, control.ActArguments, 2)
	h.opened("ada", control.ActArguments)
	for _, c := range []struct{ user, says string }{{"teo", "It has a card of its own now"}, {"ada", "There is nothing left to do here"}} {
		h.clicksInDetails(c.user, control.ActApart)
		h.until("the form of "+c.user+" shows the outcome", func() bool {
			return strings.Contains(fmt.Sprint(h.call("GET", "/people/"+c.user+"/views", nil)), c.says)
		})
	}
	own := h.finds("teo", "U0BOT", "", "Refund for order ORD-4", "Waits for Team Lead (2 people)")
	h.finds("ada", "U0BOT", "", "2 of 3 wait", "It has a card of its own now")
	if !own.has(control.ActArguments) {
		t.Error("its own card has no details")
	}
	teo = h.finds("teo", "U0BOT", "", "2 of 3 wait")
	h.clicksOn("teo", "U0BOT", teo, control.ActApprove, 0)
	teo = h.finds("teo", "U0BOT", "", "2 of 3 wait", "You have agreed")
	if n := strings.Count(teo.raw, `"action_id":"approve"`); n != 1 {
		t.Errorf("%d calls can be approved by a person who has agreed to one of two", n)
	}
	ada = h.finds("ada", "U0BOT", "", "2 of 3 wait", "1 of 2 agreed")
	h.clicks("ada", "U0BOT", ada, control.ActApproveAll)
	h.finds("ada", "U0BOT", "", "1 of 3 waits", "Done.", "You have agreed")
	if got := h.runs(); len(got) != 2 { // the approved call, and the search, which needs no approval
		t.Errorf("ran %q", got)
	}
}

// The policy's caps limit the number of open cards. Two cards are open, and the other requests wait in the queue. One
// message says how many requests wait. When a waiting request gets its card, the approval of the request requires a
// typed value. The message is removed when the queue is empty.
func TestCardQueueInSlack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Caps.Approver = 2 })
	var roots []string
	for i := range 5 {
		roots = append(roots, h.says("sam", "#support", fmt.Sprintf(`@bot call issue_refund {"order_id":"ORD-%d","amount":1%d}`, i, i)))
		if i < 2 {
			h.finds("teo", "#support-approvals", "", "Waits for Team Lead", fmt.Sprint("ORD-", i))
			continue
		}
		h.finds("sam", "#support", roots[i], "It is queued there")
	}
	line := h.finds("teo", "#support-approvals", "", "3 more requests wait behind these", "ORD-2", "ORD-3", "ORD-4")
	h.clicks("teo", "#support-approvals", h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-0"), control.ActApprove)
	next := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-2", "asks you to type the value of amount", "was queued")
	if again := h.finds("teo", "#support-approvals", "", "2 more requests wait behind these"); again.TS != line.TS {
		t.Error("the card queue's message was replaced")
	}
	h.until("sam is not told any more that it is queued", func() bool {
		return !strings.Contains(fmt.Sprint(h.sees("sam", "#support", roots[2])), "is queued there")
	})
	h.clicks("teo", "#support-approvals", next, control.ActTyped)
	form := h.opened("teo", control.ActTyped)
	if out := h.submits("teo", form, map[string]any{control.FieldTyped: "13"}); out["error"] != "view_errors" {
		t.Fatalf("another value was accepted: %v", out)
	}
	if out := h.submits("teo", form, map[string]any{control.FieldTyped: "12.0"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("sam", "#support", roots[2], "results: executed")
	for _, order := range []string{"ORD-1", "ORD-3"} {
		card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", order)
		h.clicks("teo", "#support-approvals", card, control.ActReject)
		form := h.opened("teo", control.ActReject)
		if out := h.submits("teo", form, map[string]any{control.FieldReason: "no"}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
	}
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-4")
	h.until("the queue's message is gone", func() bool {
		return !slices.ContainsFunc(h.sees("teo", "#support-approvals", ""), func(p posted) bool { return p.TS == line.TS })
	})
}

// If Slack refuses to delete the queue's message, the message says that the queue is empty.
func TestCardQueueMessageStays(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Caps.Approver = 1 })
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Error: "cant_delete_message", Method: "chat.delete", Times: 1}); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":1}`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-1")
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-2","amount":1}`)
	h.finds("teo", "#support-approvals", "", "1 more request waits behind")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "No requests are queued here any more")
}

// A request that requires a typed value requires this value everywhere: on the card, after long arguments, and with an
// edit.
func TestStepUpEverywhere(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Caps.Requester = approvers.Limit{Count: 1, Per: time.Hour} })
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":1}`)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-1")
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-2","amount":2}`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-2", "has caused 2 requests within an hour; the policy's cap is 1")
	if card.has(control.ActApprove) {
		t.Error("it can be approved without typing")
	}
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	form := h.opened("teo", control.ActModify)
	if out := h.submits("teo", form, map[string]any{"arg.amount": "3"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	card = h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-2", " → 3\n")
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	form = h.opened("teo", control.ActModify)
	if out := h.submits("teo", form, map[string]any{"arg.amount": "4", control.FieldTyped: "issue_refund"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "ORD-2", "It ran")

	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-3","amount":33,"reason":"`+strings.Repeat("x", argument.MaxCardArgs)+`"}`)
	card = h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-3", "Cut here")
	h.clicks("teo", "#support-approvals", card, control.ActArguments)
	form = h.opened("teo", control.ActArguments)
	h.until("the arguments are shown", func() bool {
		form = h.opened("teo", control.ActArguments)
		return form["submit"] != nil
	})
	if out := h.submits("teo", form, map[string]any{control.FieldTyped: "34"}); out["error"] != "view_errors" {
		t.Fatalf("another value was accepted: %v", out)
	}
	if out := h.submits("teo", form, map[string]any{control.FieldTyped: "33"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "ORD-3", "It ran")
	if got := h.runs(); len(got) != 2 {
		t.Errorf("ran %q", got)
	}
}
