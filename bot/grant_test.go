package bot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func granting(w *workbench) { w.policy = grantingPolicy() }

const smallRefund = `call issue_refund {"order_id":"ORD-1","amount":20,"currency":"USD"}`

// allowsMore has Teo approve Sam's refund and allow more like it, and returns the thread.
func (w *workbench) allowsMore(values map[string]any) (root string) {
	w.t.Helper()
	root = w.says("sam", "#support", "@bot "+smallRefund)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actAllow)
	form := w.opened("teo", actAllow)
	if out := w.submits("teo", form, values); out["ok"] != true {
		w.t.Fatalf("%v", out)
	}
	w.finds("sam", "#support", root, "results: executed")
	return root
}

// Allow more… approves the call and lets more like it run; everybody sees by whose permission, and what is left.
func TestAllowMore(t *testing.T) {
	w := newWorkbench(t, granting)
	root := w.allowsMore(map[string]any{fieldUses: "2", fieldWithin: "1h0m0s", "arg.amount": "25.5"})
	w.finds("teo", "#support-approvals", "", "Approved by <@U0002> (Team Lead)", "It ran")
	w.finds("sam", "#support", root, "<@U0002> (Team Lead) allowed 2 more calls of issue_refund", "amount from 0 to 25.5", `currency "USD"`, "order_id may be anything.", "2 of 2 left")
	own := w.finds("teo", "U0BOT", "", "allowed 2 more calls", "in #support", "2 of 2 left")
	if !own.has(actRevoke) {
		t.Error("there is no Revoke button")
	}
	w.saysIn("sam", "#support", `@bot call issue_refund {"order_id":"ORD-2","amount":25.5,"currency":"USD"}`, root)
	w.finds("sam", "#support", root, "Under the permission of <@U0002> (Team Lead), 1 of 2 left. Done.")
	w.finds("teo", "U0BOT", "", "1 of 2 left")
	w.saysIn("sam", "#support", `@bot call issue_refund {"order_id":"ORD-3","amount":25.51,"currency":"USD"}`, root)
	w.finds("teo", "#support-approvals", "", "25.51", "Waits for Team Lead")

	w.clicks("ada", "#support", w.finds("ada", "#support", root, "1 of 2 left", "allowed 2 more"), actRevoke)
	w.finds("ada", "#support", root, "only <@U0002> and people of Team Lead can take this back")
	w.clicks("teo", "U0BOT", own, actRevoke)
	over := w.finds("sam", "#support", root, "Taken back by <@U0002>", "1 call ran under it")
	if over.has(actRevoke) {
		t.Error("what is over has a button")
	}
	if got := w.runs(); len(got) != 2 {
		t.Errorf("ran %q", got)
	}
}

// What is filled in wrongly is said beside the field, and nothing is decided.
func TestAllowMoreFaults(t *testing.T) {
	w := newWorkbench(t, granting)
	w.says("sam", "#support", "@bot "+smallRefund)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("ada", "#support-approvals", card, actAllow)
	w.until("Ada is told why not", func() bool {
		return strings.Contains(fmt.Sprint(w.call("GET", "/people/ada/views", nil)), "you are not a member of that role")
	})
	w.clicks("teo", "#support-approvals", card, actAllow)
	form := w.opened("teo", actAllow)
	for field, values := range map[string]map[string]any{
		fieldUses:    {fieldUses: "6"},
		"arg.amount": {"arg.amount": "19.99"},
	} {
		if out := w.submits("teo", form, values); out["ok"] == true {
			t.Errorf("%s %v was taken: %v", field, values, out)
		}
	}
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
}

// What was filled in is read strictly, against the policy as it is when the form comes.
func TestAllowanceIn(t *testing.T) {
	r := testRequest(refundArgs)
	filled := func(uses, within, amount string) interaction {
		var i interaction
		raw := fmt.Sprintf(`{"view":{"state":{"values":{"uses":{"value":{"value":%q}},"within":{"value":{"selected_option":{"value":%q}}},"arg.amount":{"value":{"value":%q}}}}}}`, uses, within, amount)
		if err := json.Unmarshal([]byte(raw), &i); err != nil {
			t.Fatal(err)
		}
		return i
	}
	for name, c := range map[string]struct {
		i     interaction
		fault string
	}{
		"as it should be":  {filled("5", "2h0m0s", "50"), ""},
		"with spaces":      {filled(" 5 ", "1h0m0s", " 49.99 "), ""},
		"too many":         {filled("6", "1h0m0s", "50"), fieldUses},
		"none":             {filled("0", "1h0m0s", "50"), fieldUses},
		"half":             {filled("1.5", "1h0m0s", "50"), fieldUses},
		"too long":         {filled("5", "2h0m1s", "50"), fieldWithin},
		"no time":          {filled("5", "", "50"), fieldWithin},
		"backwards":        {filled("5", "-1h", "50"), fieldWithin},
		"less":             {filled("5", "1h0m0s", "49.98"), "arg.amount"},
		"nothing":          {filled("5", "1h0m0s", ""), "arg.amount"},
		"a fraction":       {filled("5", "1h0m0s", "100/1"), "arg.amount"},
		"with an exponent": {filled("5", "1h0m0s", "1e6"), "arg.amount"},
		"in hexadecimal":   {filled("5", "1h0m0s", "0xFF"), "arg.amount"},
		"without bounds":   {filled("5", "1h0m0s", strings.Repeat("9", 41)), "arg.amount"},
	} {
		t.Run(name, func(t *testing.T) {
			a, faults := allowanceIn(r, grantingPolicy(), c.i)
			if c.fault == "" && (len(faults) > 0 || a.Uses != 5 || a.Within == 0 || len(a.AtMost) != 1) || c.fault != "" && (len(faults) != 1 || faults[c.fault] == "") {
				t.Errorf("%+v, %v", a, faults)
			}
		})
	}
}

// Who is asked for the list sees what concerns them, and gets what they may take back with a button.
func TestGrantsCommand(t *testing.T) {
	w := newWorkbench(t, granting, func(w *workbench) {
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, w.policy.Approvers[2].Members[1])
	})
	w.commands("teo", "#general", "grants")
	w.answered("teo", "#general", "Nothing may run without asking")
	w.allowsMore(map[string]any{fieldUses: "2"})
	w.commands("sam", "#general", "grants")
	w.answered("sam", "#general", "Nothing may run without asking")
	w.commands("sam", "#support", "grants")
	w.answered("sam", "#support", "issue_refund in #support: allowed by <@U0002> (Team Lead), 2 of 2 left.")
	w.commands("teo", "#general", "grants")
	w.answered("teo", "#general", "issue_refund in #support", "Take it back here")
	w.commands("kenji", "#general", "grants")
	w.answered("kenji", "#general", "issue_refund in #support", "in your direct messages with me")
	w.clicks("kenji", "U0BOT", w.finds("kenji", "U0BOT", "", "allowed 2 more calls"), actRevoke)
	w.finds("teo", "U0BOT", "", "Taken back by <@U0004>")
	w.commands("teo", "#general", "help")
	w.answered("teo", "#general", "/countersign grants lists what may run without asking")
}

// Trust is offered to the lead of the role, and counts for nothing until somebody accepts.
func TestOffer(t *testing.T) {
	w := newWorkbench(t, granting, func(w *workbench) { w.policy.Tools[2].TrustAfter = 2 })
	for range 2 {
		root := w.says("sam", "#support", "@bot "+smallRefund)
		var card posted
		w.until("a card waits", func() bool {
			for _, p := range w.sees("teo", "#support-approvals", "") {
				if card = p; strings.Contains(p.Text, "Waits for Team Lead") {
					return true
				}
			}
			return false
		})
		w.clicks("teo", "#support-approvals", card, actApprove)
		w.finds("sam", "#support", root, "results: executed")
	}
	offer := w.finds("ingrid", "U0BOT", "", "issue_refund was approved twice in a row", "Approved by <@U0002>", "Allow up to 5 such calls of it to run without asking, for 2 hours?", "amount from 0 to 20")
	w.finds("kenji", "U0BOT", "", "issue_refund was approved twice in a row")
	w.clicks("ingrid", "U0BOT", offer, actAccept)
	w.finds("ingrid", "U0BOT", "", "<@U0003> (Finance Director) allowed 5 more calls", "for everybody who asks the agent support", "5 of 5 left")
	root := w.says("ada", "#support", "@bot "+smallRefund)
	w.finds("ada", "#support", root, "Under the permission of <@U0003> (Finance Director), 4 of 5 left. Done.")
	for _, p := range w.sees("kenji", "U0BOT", "") {
		if p.has(actAccept) {
			t.Errorf("it can still be accepted: %s", p.Text)
		}
	}
}
