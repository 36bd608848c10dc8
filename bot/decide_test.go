package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
)

// Modify… has a field for each argument. Unchanged arguments keep their bytes, and the card shows the changes.
func TestModify(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", `@bot call issue_refund { "order_id" : "ORD-123", "amount":49.990, "currency":"USD", "lines":[{"sku": "A"}] }`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	form := h.opened("teo", control.ActModify)
	out := h.submits("teo", form, map[string]any{})
	if out["error"] != "view_errors" || !strings.Contains(fmt.Sprint(out["errors"]), "Nothing was changed") {
		t.Fatalf("a form without a change was accepted: %v", out)
	}
	out = h.submits("teo", form, map[string]any{"arg.lines": "[{]"})
	if errs := fmt.Sprint(out["errors"]); !strings.Contains(errs, "arg.lines") || !strings.Contains(errs, "not valid JSON") {
		t.Fatalf("broken JSON was accepted: %v", out)
	}
	if out := h.submits("teo", form, map[string]any{"arg.amount": "39.99", "arg.currency": "1", "arg.lines": `[{"sku": "A"}]`, control.FieldReason: "without shipping"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	done := h.finds("teo", "#support-approvals", "", "Approved by <@U0002> (Team Lead) with changes", "It ran")
	if done.TS != card.TS {
		t.Error("the card is another message")
	}
	h.finds("sam", "#support", root, "results: executed", "changed the arguments before approving")
	want := `issue_refund { "order_id" : "ORD-123", "amount":39.99, "currency":"EUR", "lines":[{"sku": "A"}] }`
	if got := h.runs(); len(got) != 1 || got[0] != want {
		t.Errorf("ran %q, want %q", got, want)
	}
}

// The button of the form Modify… does exactly what its label says. If the entered values lead to another action, the
// form stays open with another button, and gives the reason. Nothing is decided until the new button is pressed.
func TestModifyButtonSaysWhatItDoes(t *testing.T) {
	h := newHarness(t, func(h *harness) {
		h.policy.Tools[2].Rules = []approvers.Rule{{Risk: approvers.Critical, When: approvers.Condition{Text: "args.amount > 500", Eval: func(f approvers.Facts) (bool, error) {
			return fmt.Sprint(f.Args["amount"]) == "700", nil
		}}}}
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	form := h.opened("teo", control.ActModify)
	submit := func(amount, button string) {
		t.Helper()
		form = h.opened("teo", control.ActModify)
		if got := form["submit"].(map[string]any)["text"]; got != button {
			t.Fatalf("the button says %v, want %s", got, button)
		}
		if out := h.submits("teo", form, map[string]any{"arg.amount": amount}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
	}
	submit("700", "Change and approve")
	if form = h.opened("teo", control.ActModify); !strings.Contains(fmt.Sprint(form["blocks"]), "it is critical risk, above what Team Lead may approve.") {
		t.Errorf("the form does not say why it is not an approval: %v", form["blocks"])
	}
	submit("600", "Send to Finance Director") // 600 could be approved, so the button changes
	h.quiet()
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "49.99")
	submit("700", "Change and approve")
	submit("700", "Send to Finance Director")
	h.finds("ingrid", "U0BOT", "", "Waits for Finance Director", "49.990 → 700")
	h.quiet()
	if got := h.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// A changed value has invisible characters, which the form can't show. The form warns of them, and accepts the value when
// it is sent again. If the value is changed again, the form warns again. A reason of invisible characters is no reason.
func TestModifyWithInvisibleCharacters(t *testing.T) {
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	if out := h.submits("teo", h.opened("teo", control.ActReject), map[string]any{control.FieldReason: "\u3164"}); out["ok"] == true {
		t.Errorf("a reason that nobody can read was accepted: %v", out)
	}
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	for order, want := range map[string]string{"ORD-\u202e321": "can't be seen: ⟨U+202E⟩.", "ORD-\u200b321\u3164": "can't be seen: ⟨U+200B⟩ ⟨U+3164⟩."} {
		if out := h.submits("teo", h.opened("teo", control.ActModify), map[string]any{"arg.order_id": order}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
		h.quiet()
		if shown := fmt.Sprint(h.opened("teo", control.ActModify)["blocks"]); len(h.runs()) > 0 || !strings.Contains(shown, want) {
			t.Fatalf("ran %q; the form says %s; want %s", h.runs(), shown, want)
		}
	}
	if out := h.submits("teo", h.opened("teo", control.ActModify), map[string]any{"arg.order_id": "ORD-\u200b321"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.quiet()
	if got := h.runs(); len(got) > 0 {
		t.Fatalf("ran %q without a warning of these arguments", got)
	}
	if out := h.submits("teo", h.opened("teo", control.ActModify), map[string]any{"arg.order_id": "ORD-\u200b321"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.until("the call runs with the confirmed value", func() bool { return len(h.runs()) == 1 })
}

// The form warns of invisible characters even if Slack does not identify the person in time.
func TestModifyWarnsBeforeIdentified(t *testing.T) {
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	opened := h.opened("teo", control.ActModify)
	h.quiet()
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Title: new("Boss")}); err != nil { // the bot forgets who Teo is
		t.Fatal(err)
	}
	h.quiet()
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Error: "missing_scope", Method: "users.info", Times: 1}); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"arg.order_id": "ORD-\u200b321"}
	if out := h.submits("teo", opened, values); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	warned := h.opened("teo", control.ActModify)
	if shown := fmt.Sprint(warned["blocks"]); !strings.Contains(shown, "can't be seen: ⟨U+200B⟩.") || fmt.Sprint(warned["submit"]) != fmt.Sprint(opened["submit"]) || warned["private_metadata"] != opened["private_metadata"] {
		t.Fatalf("the form %v says %s", warned, shown)
	}
	if out := h.submits("teo", warned, values); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.until("the call runs with the confirmed value", func() bool { return len(h.runs()) == 1 })
}

// If the form is too long to be shown again, it can't warn of invisible characters. The change is then not an approval,
// and the editor is told so.
func TestModifyTooLongToWarn(t *testing.T) {
	h := newHarness(t, func(h *harness) {
		h.tools["issue_refund"] = bottest.Tool("issue_refund", `{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"number"},"reason":{"type":"string"},"note":{"type":"string"}}}`, approvers.Unprotected)
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	opened := h.opened("teo", control.ActModify)
	long := strings.Repeat("語", 2900)
	if out := h.submits("teo", opened, map[string]any{"arg.reason": long + "\u200b", "arg.note": long}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	told := h.finds("teo", "#support-approvals", "", "Your change is not an approval: it has characters that can't be seen, and the form did not warn you of them. After you submit it, decide on the new card.")
	if !told.Ephemeral {
		t.Errorf("everybody is told: %s", told.Text)
	}
	h.quiet()
	if got := h.runs(); len(got) > 0 {
		t.Errorf("ran %q", got)
	}
}

// The tool's schema is checked last. An error of the schema appears beside the field that the error names.
func TestModifySchemaFault(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		tool := h.tools["issue_refund"]
		tool.Schema = json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"number"}}}`) // without the limits that Slack would enforce
		h.tools["issue_refund"] = tool
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActModify)
	form := h.opened("teo", control.ActModify)
	out := h.submits("teo", form, map[string]any{"arg.amount": "9999"})
	errs, _ := out["errors"].(map[string]any)
	if errs["arg.amount"] != "must be between 0.01 and 5000" || errs["arg.order_id"] != "is odd" {
		t.Errorf("%v", out)
	}
	out = h.submits("teo", form, map[string]any{"arg.amount": "12.5"})
	if out["ok"] != true {
		t.Errorf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "It ran")
}

// A person who may not decide is told the reason, and no call runs.
func TestDeniedClicks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	for user, words := range map[string]string{
		"ada":    "you are not a member of that role",
		"ingrid": "you are not a member of that role",
	} {
		h.clicks(user, "#support-approvals", card, control.ActApprove)
		h.finds(user, "#support-approvals", "", words)
	}
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Guest: new(true)}); err != nil {
		t.Fatal(err)
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove) // before the change above, Teo was a full member
	h.finds("teo", "#support-approvals", "", "Guests can't decide")
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	h.until("the form says so too", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/teo/views", nil)), "Guests can't decide")
	})
	if got := h.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// A requester who is also an approver is told that another person has to decide.
func TestNoSelfApproval(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	h.says("teo", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "you asked for this")
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "It ran")
}

// A user group gives authority to its members at the time of the click. A person who has just left the group is
// refused.
func TestGroupAtTheClick(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", `@bot call update_shipping_address {"order_id":"ORD-1"}`)
	card := h.finds("ada", "#support-approvals", "", "Waits for Support Agent")
	if err := h.slack.SetGroupUsers("S0001", []string{"U0001"}); err != nil {
		t.Fatal(err)
	}
	// Priya has the e-mail address of the people on call, but is not in the group. Slack's event invalidates the cached
	// list of the group's members.
	h.until("Priya is out of the group", func() bool {
		who, err := h.bot.users.Clicker(context.Background(), "U0101", h.policy, "update_shipping_address", approvers.Medium, nil)
		return err == nil && len(who.Groups) == 0 && who.Email == "support-oncall@example.com"
	})
	who, err := h.bot.users.Clicker(context.Background(), "U0001", h.policy, "update_shipping_address", approvers.Medium, nil)
	if err != nil || len(who.Groups) != 1 {
		t.Errorf("%+v, %v", who, err)
	}
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "It ran")
}

// If Slack can't identify the person who clicked, the click is refused, and the person is told.
func TestFailsClosedWithoutIdentity(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet() // after this, the bot has looked up who can be reached
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultServerError, Method: "users.info", Times: clickTries + 1}); err != nil {
		t.Fatal(err)
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "Slack could not tell who clicked")
	if got := h.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "It ran")
}

// If two people click at the same time, only one click takes effect. The other person is told who decided.
func TestTwoClickers(t *testing.T) {
	t.Parallel()
	clicked := make(chan struct{})
	slack := &refuser{answer: func(method, _ string) string {
		if method == "chat.update" { // the card has its buttons until both have clicked
			<-clicked
		}
		return ""
	}}
	h := newHarness(t, func(h *harness) {
		h.http = &http.Client{Transport: slack}
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	var both sync.WaitGroup
	for _, user := range []string{"teo", "ada"} {
		both.Go(func() { h.clicks(user, "#support-approvals", card, control.ActApprove) })
	}
	both.Wait()
	close(clicked)
	h.finds("teo", "#support-approvals", "", "It ran")
	h.until("the other is told", func() bool {
		told := 0
		for _, user := range []string{"teo", "ada"} {
			for _, p := range h.sees(user, "#support-approvals", "") {
				if p.Ephemeral && strings.Contains(p.Text, "Too late: <@U") && strings.Contains(p.Text, "approved this") {
					told++
				}
			}
		}
		return told == 1
	})
	if got := h.runs(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
}

// A form that was opened before another person decided changes nothing when it is submitted.
func TestFormLosesTheRace(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("ada", "#support-approvals", card, control.ActReject)
	form := h.opened("ada", control.ActReject)
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "It ran")
	if out := h.submits("ada", form, map[string]any{control.FieldReason: "no"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("ada", "#support-approvals", "", "Too late: <@U0002>", "approved this")
}

// A critical call requires a typed value and passes through its stages. Each person's approval counts only once.
func TestCriticalStages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", `@bot call cancel_account {"user_id":"C-77"}`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Then Finance Director (2 people).")
	approve := func(user, channel string, p posted) {
		h.clicks(user, channel, p, control.ActTyped)
		form := h.opened(user, control.ActTyped)
		if out := h.submits(user, form, map[string]any{control.FieldTyped: "C-78"}); out["error"] != "view_errors" {
			t.Fatalf("another value was accepted: %v", out)
		}
		if out := h.submits(user, form, map[string]any{control.FieldTyped: " C-77 "}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
	}
	if card.has(control.ActApprove) {
		t.Error("a critical card has a plain Approve")
	}
	approve("teo", "#support-approvals", card)
	ingrid := h.finds("ingrid", "U0BOT", "", "Team Lead agreed: <@U0002> ", "Waits for Finance Director (2 people).")
	approve("ingrid", "U0BOT", ingrid)
	if ingrid = h.finds("ingrid", "U0BOT", "", "1 of 2 agreed", "You have agreed"); ingrid.has(control.ActTyped) {
		t.Error("a person who has agreed can agree again")
	}
	kenji := h.finds("kenji", "U0BOT", "", "1 of 2 agreed")
	approve("kenji", "U0BOT", kenji)
	for _, at := range [][2]string{{"teo", "#support-approvals"}, {"ingrid", "U0BOT"}, {"kenji", "U0BOT"}} {
		if p := h.finds(at[0], at[1], "", "Approved by", "It ran"); p.live() {
			t.Errorf("%s still sees a live button", at[0])
		}
	}
	h.finds("sam", "#support", root, "results: executed")
}

// Arguments that do not fit on a card open page by page, and are approved on the last page.
func TestLongArguments(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	body := strings.Repeat("A long line of an e-mail that nobody reads. ", 700)
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-123","amount":1,"reason":"`+body+`"}`)
	card := h.finds("teo", "#support-approvals", "", "Cut here")
	if card.has(control.ActApprove) || !card.has(control.ActArguments) {
		t.Fatal("the card can be approved without reading the arguments")
	}
	h.clicks("teo", "#support-approvals", card, control.ActArguments)
	form := h.opened("teo", control.ActArguments)
	for page := 1; form["submit"] == nil; page++ {
		if page > 6 {
			t.Fatal("there is no last page")
		}
		out := h.call("POST", "/people/teo/actions", map[string]any{"view_id": form["id"], "action_id": control.ActPage + "_next"})
		if out["ok"] != true {
			t.Fatalf("page %d can't be turned: %v", page, out)
		}
		next := fmt.Sprintf("page %d of", page+1)
		h.until(next, func() bool {
			form = h.opened("teo", control.ActArguments)
			return strings.Contains(fmt.Sprint(form["blocks"]), next)
		})
	}
	if out := h.submits("teo", form, nil); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "It ran")
}

// If nobody decides, the lead gets a complete card and may decide.
func TestEscalation(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Defaults.EscalateAfter = 30 * time.Millisecond })
	h.says("sam", "#support", refundCall)
	card := h.finds("kenji", "U0BOT", "", "Not decided yet, so Finance Director is asked as well", "ORD-123")
	h.clicks("kenji", "U0BOT", card, control.ActApprove)
	h.finds("kenji", "U0BOT", "", "Approved by <@U0004> (Finance Director)", "It ran")
	h.finds("ingrid", "U0BOT", "", "Approved by <@U0004> (Finance Director)")
	h.finds("teo", "#support-approvals", "", "Approved by <@U0004> (Finance Director)")
}

// A request that nobody decides expires.
func TestExpiry(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Defaults.ExpiresAfter = 150 * time.Millisecond })
	root := h.says("sam", "#support", refundCall)
	p := h.finds("teo", "#support-approvals", "", "Expired")
	if p.live() {
		t.Error("the card of an expired request has buttons")
	}
	h.finds("sam", "#support", root, "Expired")
	h.finds("sam", "#support", root, "results: expired")
}

// A click counts only for the version of the card that was clicked. After an edit, a click on the old version does not
// count.
func TestStaleCard(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
		h.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Then Finance Director.")
	h.quiet()
	was := h.buttonOn("C0002", card, control.ActApprove)
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	old := h.opened("teo", control.ActReject)
	h.clicks("ada", "#support-approvals", card, control.ActModify)
	edit := h.opened("ada", control.ActModify)
	if out := h.submits("ada", edit, map[string]any{"arg.amount": "10"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "Team Lead agreed: <@U0001>", "Waits for Finance Director.", " → 10\n")
	if out := h.submits("teo", old, map[string]any{control.FieldReason: "late"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "the arguments were changed after you opened this")
	h.delivers("from the version before", click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, was.String()})
	h.until("both are recorded", func() bool { return strings.Count(strings.Join(h.denials(was.Ref), "\n"), "stale ") == 2 })
}
