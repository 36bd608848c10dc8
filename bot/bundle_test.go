package bot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/workspace"
)

const threeCalls = `@bot call issue_refund {"order_id":"ORD-1","amount":11}
call issue_refund {"order_id":"ORD-2","amount":22}
call update_shipping_address {"order_id":"ORD-3"}
call issue_refund {"order_id":"ORD-4","amount":44}`

// clicksOn presses a button of one call of a bundle: the one whose block is the request's.
func (w *workbench) clicksOn(user, channel string, p posted, action string, i int) {
	w.t.Helper()
	out := w.call("POST", "/people/"+user+"/actions", map[string]any{"channel": channel, "ts": p.TS, "action_id": action, "block_id": p.row(w.t, action, i)})
	if out["ok"] != true {
		w.t.Fatalf("%s could not click %s: %v", user, action, out)
	}
}

// row is the block of the i-th row of buttons that has an action.
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

// Calls of one step for the same person come in one card, and each is decided for itself.
func TestBundleOneByOne(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", threeCalls)
	card := w.finds("teo", "#support-approvals", "", "3 calls wait for Team Lead", "<@U0002>", "ORD-1", "ORD-2", "ORD-4")
	w.finds("ada", "#support-approvals", "", "Waits for Support Agent", "ORD-3")
	if n := strings.Count(card.raw, `"action_id":"approve"`); n != 3 {
		t.Fatalf("%d calls can be approved", n)
	}
	w.clicksOn("teo", "#support-approvals", card, actApprove, 1)
	card = w.finds("teo", "#support-approvals", "", "2 of 3 calls wait", "Approved by <@U0002> (Team Lead)", "Done.")
	w.clicksOn("teo", "#support-approvals", card, actReject, 0)
	form := w.opened("teo", actReject)
	if !strings.Contains(fmt.Sprint(form["blocks"]), "ORD-1") {
		t.Error("the form is about another call")
	}
	if out := w.submits("teo", form, map[string]any{fieldReason: "refunded already"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	card = w.finds("teo", "#support-approvals", "", "1 of 3 calls waits", "refunded already")
	w.finds("sam", "#support", root, "refunded already", "Waits for Support Agent")
	w.clicksOn("teo", "#support-approvals", card, actModify, 0)
	form = w.opened("teo", actModify)
	if out := w.submits("teo", form, map[string]any{"arg.amount": "40"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.until("a bundle that is settled has no buttons", func() bool { // but until the last has run, its approval can be taken back
		card = w.finds("teo", "#support-approvals", "", "3 calls: none waits here any more")
		return !strings.Contains(card.raw, `"button"`)
	})
	ada := w.finds("ada", "#support-approvals", "", "Waits for Support Agent", "ORD-3")
	w.clicks("ada", "#support-approvals", ada, actApprove)
	w.finds("sam", "#support", root, "results: rejected", "executed")
	want := []string{`issue_refund {"order_id":"ORD-2","amount":22}`, `issue_refund {"order_id":"ORD-4","amount":40}`, `update_shipping_address {"order_id":"ORD-3"}`}
	if got := w.runs(); !slices.Equal(got, want) {
		t.Errorf("ran %q", got)
	}
}

// All together, with one click that is asked for once more.
func TestBundleAll(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", strings.ReplaceAll(threeCalls, "update_shipping_address", "search_orders"))
	card := w.finds("teo", "#support-approvals", "", "3 calls wait for Team Lead")
	w.clicks("ada", "#support-approvals", card, actApproveAll)
	w.finds("ada", "#support-approvals", "", "None of them was decided", "you are not a member of that role")
	w.clicks("teo", "#support-approvals", card, actApproveAll)
	w.finds("teo", "#support-approvals", "", "3 calls: none waits here any more")
	w.finds("sam", "#support", root, "results: executed")
	if got := w.runs(); len(got) != 4 {
		t.Errorf("ran %q", got)
	}
}

func TestBundleRejectAll(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	root := w.says("sam", "#support", strings.ReplaceAll(threeCalls, "update_shipping_address", "search_orders"))
	card := w.finds("teo", "#support-approvals", "", "3 calls wait for Team Lead")
	w.clicks("teo", "#support-approvals", card, actRejectAll)
	form := w.opened("teo", actRejectAll)
	if out := w.submits("teo", form, map[string]any{fieldReason: " "}); out["error"] != "view_errors" {
		t.Errorf("rejected without a reason: %v", out)
	}
	w.clicksOn("ada", "#support-approvals", card, actApprove, 0)
	w.finds("teo", "#support-approvals", "", "2 of 3 calls wait")
	if out := w.submits("teo", form, map[string]any{fieldReason: "too much"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "None of them was decided, because of", "ORD-1", "Too late: <@U0001>")
	card = w.finds("teo", "#support-approvals", "", "2 of 3 calls wait")
	w.clicks("teo", "#support-approvals", card, actRejectAll)
	form = w.opened("teo", actRejectAll)
	w.until("the form is about two calls", func() bool {
		form = w.opened("teo", actRejectAll)
		return !strings.Contains(fmt.Sprint(form["blocks"]), "ORD-1")
	})
	if out := w.submits("teo", form, map[string]any{fieldReason: "too much"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("sam", "#support", root, "results: executed", "rejected", "too much")
}

// A call gets a card of its own where there is more to say about it. In direct messages each person has their own copy of the bundle.
func TestBundleApart(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers[1].Cards = "dm"
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
		w.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	})
	w.says("sam", "#support", strings.ReplaceAll(threeCalls, "update_shipping_address", "search_orders"))
	teo := w.finds("teo", "U0BOT", "", "3 calls wait for Team Lead")
	w.finds("ada", "U0BOT", "", "3 calls wait for Team Lead")
	w.clicksOn("teo", "U0BOT", teo, actApart, 2)
	own := w.finds("teo", "U0BOT", "", "Refund for order ORD-4", "Tool: issue_refund")
	w.finds("ada", "U0BOT", "", "2 of 3 calls wait", "It has a card of its own now")
	if !own.has(actAsk) || !own.has(actHandOn) {
		t.Error("its own card lacks what there is beside deciding")
	}
	teo = w.finds("teo", "U0BOT", "", "2 of 3 calls wait")
	w.clicksOn("teo", "U0BOT", teo, actApprove, 0)
	teo = w.finds("teo", "U0BOT", "", "2 of 3 calls wait", "You have agreed")
	if n := strings.Count(teo.raw, `"action_id":"approve"`); n != 1 {
		t.Errorf("%d calls can be approved by who has agreed to one of two", n)
	}
	ada := w.finds("ada", "U0BOT", "", "2 of 3 calls wait", "1 of 2 agreed")
	w.clicks("ada", "U0BOT", ada, actApproveAll)
	w.finds("ada", "U0BOT", "", "1 of 3 calls waits", "Done.", "You have agreed")
	if got := w.runs(); len(got) != 2 { // with the search, that nobody is asked about
		t.Errorf("ran %q", got)
	}
}

// What the policy lets nobody be flooded with: two open cards; the rest waits in line, is counted in one message, and comes in its turn with
// a value to type. When nobody waits any more the message is gone.
func TestLineInSlack(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.Caps.Approver = 2 })
	var roots []string
	for i := range 5 {
		roots = append(roots, w.says("sam", "#support", fmt.Sprintf(`@bot call issue_refund {"order_id":"ORD-%d","amount":1%d}`, i, i)))
		if i < 2 {
			w.finds("teo", "#support-approvals", "", "Waits for Team Lead", fmt.Sprint("ORD-", i))
			continue
		}
		w.finds("sam", "#support", roots[i], "It waits in line there")
	}
	line := w.finds("teo", "#support-approvals", "", "3 more requests wait behind these", "ORD-2", "ORD-3", "ORD-4")
	w.clicks("teo", "#support-approvals", w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-0"), actApprove)
	next := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-2", "asks you to type the value of amount", "had to wait in line")
	if again := w.finds("teo", "#support-approvals", "", "2 more requests wait behind these"); again.TS != line.TS {
		t.Error("the line has another message now")
	}
	w.until("sam is not told any more that it waits in line", func() bool {
		return !strings.Contains(fmt.Sprint(w.sees("sam", "#support", roots[2])), "waits in line")
	})
	w.clicks("teo", "#support-approvals", next, actTyped)
	form := w.opened("teo", actTyped)
	if out := w.submits("teo", form, map[string]any{fieldTyped: "13"}); out["error"] != "view_errors" {
		t.Fatalf("another value was taken: %v", out)
	}
	if out := w.submits("teo", form, map[string]any{fieldTyped: "12.0"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("sam", "#support", roots[2], "results: executed")
	for _, order := range []string{"ORD-1", "ORD-3"} {
		card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", order)
		w.clicks("teo", "#support-approvals", card, actReject)
		form := w.opened("teo", actReject)
		if out := w.submits("teo", form, map[string]any{fieldReason: "no"}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
	}
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-4")
	w.until("the line's message is gone", func() bool {
		return !slices.ContainsFunc(w.sees("teo", "#support-approvals", ""), func(p posted) bool { return p.TS == line.TS })
	})
}

// Where Slack does not let the line's message be deleted, it says that nobody waits.
func TestLineThatStays(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.Caps.Approver, w.policy.Defaults.ExpiresAfter = 1, 400*time.Millisecond })
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Error: "cant_delete_message", Method: "chat.delete", Times: 1}); err != nil {
		t.Fatal(err)
	}
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":1}`)
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-2","amount":1}`)
	w.finds("teo", "#support-approvals", "", "Nobody waits in line here any more")
}

// A request that asks for a typed value asks for it wherever it is approved: on the card, after its long arguments were read, and with an edit.
func TestStepUpEverywhere(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.Caps.Requester = approvers.Limit{Count: 1, Per: time.Hour} })
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":1}`)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-1")
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-2","amount":2}`)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-2", "has caused 2 requests within an hour; the policy's cap is 1")
	if card.has(actApprove) {
		t.Error("it can be approved without typing")
	}
	w.clicks("teo", "#support-approvals", card, actModify)
	form := w.opened("teo", actModify)
	if out := w.submits("teo", form, map[string]any{"arg.amount": "3"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	card = w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-2", "+ amount: 3")
	w.clicks("teo", "#support-approvals", card, actModify)
	form = w.opened("teo", actModify)
	if out := w.submits("teo", form, map[string]any{"arg.amount": "4", fieldTyped: "issue_refund"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "ORD-2", "+ amount: 4", "It ran")

	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-3","amount":33,"reason":"`+strings.Repeat("x", maxCardArgs)+`"}`)
	card = w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "ORD-3", "Cut here")
	w.clicks("teo", "#support-approvals", card, actArguments)
	form = w.opened("teo", actArguments)
	w.until("the arguments are shown", func() bool {
		form = w.opened("teo", actArguments)
		return form["submit"] != nil
	})
	if out := w.submits("teo", form, map[string]any{fieldTyped: "34"}); out["error"] != "view_errors" {
		t.Fatalf("another value was taken: %v", out)
	}
	if out := w.submits("teo", form, map[string]any{fieldTyped: "33"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "ORD-3", "It ran")
	if got := w.runs(); len(got) != 2 {
		t.Errorf("ran %q", got)
	}
}
