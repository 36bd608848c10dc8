package bot

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
)

func granting(h *harness) { h.policy = bottest.GrantingPolicy() }

const smallRefund = `call issue_refund {"order_id":"ORD-1","amount":20,"currency":"USD"}`

// allowsMore approves Sam's refund as Teo, with a grant for more refunds, and returns the thread.
func (h *harness) allowsMore(values map[string]any) (root string) {
	h.t.Helper()
	root = h.says("sam", "#support", "@bot "+smallRefund)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActAllow)
	form := h.opened("teo", control.ActAllow)
	if out := h.submits("teo", form, values); out["ok"] != true {
		h.t.Fatalf("%v", out)
	}
	h.finds("sam", "#support", root, "results: executed")
	return root
}

// Allow more… approves the call, and lets more calls run without approval. Everybody sees who gave the grant, and how
// many calls are left.
func TestAllowMore(t *testing.T) {
	t.Parallel()
	h := newHarness(t, granting)
	root := h.allowsMore(map[string]any{control.FieldUses: "2", control.FieldWithin: "1h0m0s", "arg.amount": "25.5"})
	h.finds("teo", "#support-approvals", "", "Approved by <@U0002> (Team Lead)", "It ran")
	h.finds("sam", "#support", root, "<@U0002> (Team Lead) allowed 2 more calls of issue_refund", "amount from 0 to 25.5", `currency "USD"`, "order_id may have any value.", "2 of 2 left")
	own := h.finds("teo", "U0BOT", "", "allowed 2 more calls", "in #support", "2 of 2 left")
	if !own.has(control.ActRevoke) {
		t.Error("there is no Revoke button")
	}
	h.saysIn("sam", "#support", `@bot call issue_refund {"order_id":"ORD-2","amount":25.5,"currency":"USD"}`, root)
	h.finds("sam", "#support", root, "Under the grant of <@U0002> (Team Lead), 1 of 2 left. Done.")
	h.finds("teo", "U0BOT", "", "1 of 2 left")
	h.saysIn("sam", "#support", `@bot call issue_refund {"order_id":"ORD-3","amount":25.51,"currency":"USD"}`, root)
	h.finds("teo", "#support-approvals", "", "25.51", "Waits for Team Lead")

	h.clicks("ada", "#support", h.finds("ada", "#support", root, "1 of 2 left", "allowed 2 more"), control.ActRevoke)
	h.finds("ada", "#support", root, "only <@U0002> and people of Team Lead can revoke this grant")
	h.clicks("teo", "U0BOT", own, control.ActRevoke)
	over := h.finds("sam", "#support", root, "Revoked by <@U0002>", "1 call ran under it")
	if over.has(control.ActRevoke) {
		t.Error("an ended grant has a button")
	}
	if got := h.runs(); len(got) != 2 {
		t.Errorf("ran %q", got)
	}
}

// The form reports invalid input beside the field, and nothing is decided.
func TestAllowMoreFaults(t *testing.T) {
	t.Parallel()
	h := newHarness(t, granting)
	h.says("sam", "#support", "@bot "+smallRefund)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("ada", "#support-approvals", card, control.ActArguments)
	if details := fmt.Sprint(h.opened("ada", control.ActArguments)); strings.Contains(details, control.ActAllow) || !strings.Contains(details, "Why people are asked") {
		t.Errorf("Ada, who may not decide, is shown %s", details)
	}
	h.clicks("teo", "#support-approvals", card, control.ActAllow)
	form := h.opened("teo", control.ActAllow)
	for field, values := range map[string]map[string]any{
		control.FieldUses: {control.FieldUses: "6"},
		"arg.amount":      {"arg.amount": "19.99"},
	} {
		if out := h.submits("teo", form, values); out["ok"] == true {
			t.Errorf("%s %v was accepted: %v", field, values, out)
		}
	}
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
}

// If the person may not approve a call with the largest number, the form says so beside the number.
func TestAllowMoreAboveCeiling(t *testing.T) {
	t.Parallel()
	h := newHarness(t, granting, func(h *harness) {
		h.policy.Tools[2].Rules = []approvers.Rule{{Risk: approvers.Critical, When: approvers.Condition{Text: "args.amount > 40", Eval: func(f approvers.Facts) (bool, error) {
			amount, err := strconv.ParseFloat(fmt.Sprint(f.Args["amount"]), 64)
			return amount > 40, err
		}}}}
	})
	root := h.says("sam", "#support", "@bot "+smallRefund)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActAllow)
	form := h.opened("teo", control.ActAllow)
	out := h.submits("teo", form, map[string]any{"arg.amount": "41"})
	if why := fmt.Sprint(out["errors"]); out["ok"] == true || !strings.Contains(why, "arg.amount") || !strings.Contains(why, "a call with the largest value is critical risk, above what Team Lead may approve.") {
		t.Errorf("%v", out)
	}
	if out := h.submits("teo", form, map[string]any{"arg.amount": "40"}); out["ok"] != true {
		t.Errorf("%v", out)
	}
	h.finds("sam", "#support", root, "<@U0002> (Team Lead) allowed")
}

// The input is parsed strictly. The input is checked against the policy at the time of submission.
func TestAllowanceIn(t *testing.T) {
	t.Parallel()
	r := bottest.Request(bottest.RefundArgs)
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
		"too many":         {filled("6", "1h0m0s", "50"), control.FieldUses},
		"none":             {filled("0", "1h0m0s", "50"), control.FieldUses},
		"half":             {filled("1.5", "1h0m0s", "50"), control.FieldUses},
		"too long":         {filled("5", "2h0m1s", "50"), control.FieldWithin},
		"no time":          {filled("5", "", "50"), control.FieldWithin},
		"backwards":        {filled("5", "-1h", "50"), control.FieldWithin},
		"less":             {filled("5", "1h0m0s", "49.98"), "arg.amount"},
		"nothing":          {filled("5", "1h0m0s", ""), "arg.amount"},
		"a fraction":       {filled("5", "1h0m0s", "100/1"), "arg.amount"},
		"with an exponent": {filled("5", "1h0m0s", "1e6"), "arg.amount"},
		"in hexadecimal":   {filled("5", "1h0m0s", "0xFF"), "arg.amount"},
		"without bounds":   {filled("5", "1h0m0s", strings.Repeat("9", 41)), "arg.amount"},
	} {
		t.Run(name, func(t *testing.T) {
			a, faults := form.ParseAllowance(r, bottest.GrantingPolicy(), c.i.View.answers)
			if c.fault == "" && (len(faults) > 0 || a.Uses != 5 || a.Within == 0 || len(a.AtMost) != 1) || c.fault != "" && (len(faults) != 1 || faults[c.fault] == "") {
				t.Errorf("%+v, %v", a, faults)
			}
		})
	}
}

// If the policy reads a call's numbers, a number with too many digits is refused, because no call can have it.
func TestAllowanceUpToANumberOfNoCall(t *testing.T) {
	t.Parallel()
	r, p := bottest.Request(bottest.RefundArgs), bottest.GrantingPolicy()
	for _, reads := range []bool{false, true} {
		if reads {
			p.Tools[2].Rules = []approvers.Rule{{}}
		} else {
			p.Tools[2].Rules, p.Tools[2].Preview = nil, approvers.Preview{}
		}
		filled := map[string]string{control.FieldUses: "5", control.FieldWithin: "1h0m0s", "arg.amount": "300.000000000000000001"}
		_, faults := form.ParseAllowance(r, p, func(block string) (string, bool) { return filled[block], true })
		if refused := faults["arg.amount"] != ""; refused != reads || len(faults) > 1 {
			t.Errorf("the policy reads numbers: %t; %v", reads, faults)
		}
	}
}

// The command grants lists the grants that concern the person who typed the command. Each grant that the person may
// revoke has a button Revoke.
func TestGrantsCommand(t *testing.T) {
	t.Parallel()
	h := newHarness(t, granting, func(h *harness) {
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, h.policy.Approvers[2].Members[1])
	})
	h.commands("teo", "#general", "grants")
	h.answered("teo", "#general", "No calls may run without asking")
	h.allowsMore(map[string]any{control.FieldUses: "2"})
	h.commands("sam", "#general", "grants")
	h.answered("sam", "#general", "No calls may run without asking")
	h.commands("sam", "#support", "grants")
	h.answered("sam", "#support", "issue_refund in #support: allowed by <@U0002> (Team Lead), 2 of 2 left.")
	h.quiet() // Teo's own message about the grant is recorded, so the answer can link to it
	h.commands("teo", "#general", "grants")
	h.answered("teo", "#general", "issue_refund in #support", "Revoke it here")
	h.commands("kenji", "#general", "grants")
	h.answered("kenji", "#general", "issue_refund in #support", "direct messages about the grants")
	h.clicks("kenji", "U0BOT", h.finds("kenji", "U0BOT", "", "allowed 2 more calls"), control.ActRevoke)
	h.finds("teo", "U0BOT", "", "Revoked by <@U0004>")
	h.commands("teo", "#general", "help")
	h.answered("teo", "#general", "/countersign grants lists the calls that may run without asking")
}

// The offer of a grant goes to the lead of the role. The offer has no effect until it is accepted.
func TestOffer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, granting, func(h *harness) { h.policy.Tools[2].TrustAfter = 2 })
	for range 2 {
		root := h.says("sam", "#support", "@bot "+smallRefund)
		card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
		h.clicks("teo", "#support-approvals", card, control.ActApprove)
		h.finds("sam", "#support", root, "results: executed")
		h.unseen("teo", "#support-approvals", "", "Waits for Team Lead")
	}
	offer := h.finds("ingrid", "U0BOT", "", "issue_refund was approved twice in a row", "Approved by <@U0002>", "Allow up to 5 such calls to run without asking, for 2 hours?", "amount from 0 to 20")
	h.finds("kenji", "U0BOT", "", "issue_refund was approved twice in a row")
	h.clicks("ingrid", "U0BOT", offer, control.ActAccept)
	h.finds("ingrid", "U0BOT", "", "<@U0003> (Finance Director) allowed 5 more calls", "for everybody who asks the agent support", "5 of 5 left")
	root := h.says("ada", "#support", "@bot "+smallRefund)
	h.finds("ada", "#support", root, "Under the grant of <@U0003> (Finance Director), 4 of 5 left. Done.")
	h.finds("kenji", "U0BOT", "", "allowed 5 more calls")
	for _, p := range h.sees("kenji", "U0BOT", "") {
		if p.has(control.ActAccept) {
			t.Errorf("it can still be accepted: %s", p.Text)
		}
	}
}
