package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/workspace"
)

// Modify… has a field for each argument; what wasn't touched keeps its bytes, and the card shows what changed.
func TestModify(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", `@bot call issue_refund { "order_id" : "ORD-123", "amount":49.990, "currency":"USD", "lines":[{"sku": "A"}] }`)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actModify)
	form := w.opened("teo", actModify)
	out := w.submits("teo", form, map[string]any{})
	if out["error"] != "view_errors" || !strings.Contains(fmt.Sprint(out["errors"]), "Nothing was changed") {
		t.Fatalf("a form without a change was taken: %v", out)
	}
	out = w.submits("teo", form, map[string]any{"arg.lines": "[{]"})
	if errs := fmt.Sprint(out["errors"]); !strings.Contains(errs, "arg.lines") || !strings.Contains(errs, "not valid JSON") {
		t.Fatalf("broken JSON was taken: %v", out)
	}
	if out := w.submits("teo", form, map[string]any{"arg.amount": "39.99", "arg.currency": "1", "arg.lines": `[{"sku": "A"}]`, fieldReason: "without shipping"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	done := w.finds("teo", "#support-approvals", "", "Approved by", "Changed by", "without shipping", "- amount: 49.990", "+ amount: 39.99", "It ran")
	if done.TS != card.TS {
		t.Error("the card is another message")
	}
	w.finds("sam", "#support", root, "results: executed", "changed the arguments before approving")
	want := `issue_refund { "order_id" : "ORD-123", "amount":39.99, "currency":"EUR", "lines":[{"sku": "A"}] }`
	if got := w.runs(); len(got) != 1 || got[0] != want {
		t.Errorf("ran %q, want %q", got, want)
	}
}

// The tool's schema has the last word, beside the field that it names.
func TestModifySchemaFault(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		tool := w.tools["issue_refund"]
		tool.Schema = json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"number"}}}`) // without the limits that Slack would enforce
		w.tools["issue_refund"] = tool
	})
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actModify)
	form := w.opened("teo", actModify)
	out := w.submits("teo", form, map[string]any{"arg.amount": "9999"})
	errs, _ := out["errors"].(map[string]any)
	if errs["arg.amount"] != "must be between 0.01 and 5000" || errs["arg.order_id"] != "is odd" {
		t.Errorf("%v", out)
	}
	out = w.submits("teo", form, map[string]any{"arg.amount": "12.5"})
	if out["ok"] != true {
		t.Errorf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "It ran")
}

// Everybody who may not decide is told why, and nothing runs.
func TestDeniedClicks(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	for user, words := range map[string]string{
		"ada":    "you are not a member of that role",
		"ingrid": "you are not a member of that role",
	} {
		w.clicks(user, "#support-approvals", card, actApprove)
		w.finds(user, "#support-approvals", "", words)
	}
	if err := w.slack.ChangeUser("U0002", workspace.UserChange{Guest: new(true)}); err != nil {
		t.Fatal(err)
	}
	w.clicks("teo", "#support-approvals", card, actApprove) // he was a full member a moment ago
	w.finds("teo", "#support-approvals", "", "Guests can't decide")
	w.clicks("teo", "#support-approvals", card, actReject)
	w.until("the form says so too", func() bool {
		return strings.Contains(fmt.Sprint(w.call("GET", "/people/teo/views", nil)), "Guests can't decide")
	})
	if got := w.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// A requester who is an approver is told that somebody else has to decide.
func TestNoSelfApproval(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	w.says("teo", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "you asked for this")
	w.clicks("ada", "#support-approvals", card, actApprove)
	w.finds("ada", "#support-approvals", "", "It ran")
}

// A user group gives authority as it is at the click: whoever left it a moment ago is refused.
func TestGroupAtTheClick(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", `@bot call update_shipping_address {"order_id":"ORD-1"}`)
	card := w.finds("ada", "#support-approvals", "", "Waits for Support Agent")
	if err := w.slack.SetGroupUsers("S0001", []string{"U0001"}); err != nil {
		t.Fatal(err)
	}
	// On call by e-mail address, though not in the group any more. What was known of the group is forgotten when Slack tells of the change.
	w.until("Priya is out of the group", func() bool {
		who, err := w.bot.clicker(context.Background(), "U0101", w.policy, "update_shipping_address", approvers.Medium, nil)
		return err == nil && len(who.Groups) == 0 && who.Email == "support-oncall@example.com"
	})
	who, err := w.bot.clicker(context.Background(), "U0001", w.policy, "update_shipping_address", approvers.Medium, nil)
	if err != nil || len(who.Groups) != 1 {
		t.Errorf("%+v, %v", who, err)
	}
	w.clicks("ada", "#support-approvals", card, actApprove)
	w.finds("ada", "#support-approvals", "", "It ran")
}

// Where Slack can't say who clicked, the click is refused, and its sender is told so.
func TestFailsClosedWithoutIdentity(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultServerError, Method: "users.info", Times: clickTries + 1}); err != nil {
		t.Fatal(err)
	}
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "Slack could not tell who clicked")
	if got := w.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "It ran")
}

// Two people click at once: one wins, the other is told who it was.
func TestTwoClickers(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	var both sync.WaitGroup
	for _, user := range []string{"teo", "ada"} {
		both.Go(func() { w.clicks(user, "#support-approvals", card, actApprove) })
	}
	both.Wait()
	w.finds("teo", "#support-approvals", "", "It ran")
	w.until("the other is told", func() bool {
		told := 0
		for _, user := range []string{"teo", "ada"} {
			for _, p := range w.sees(user, "#support-approvals", "") {
				if p.Ephemeral && strings.Contains(p.Text, "Too late: <@U") && strings.Contains(p.Text, "approved this") {
					told++
				}
			}
		}
		return told == 1
	})
	if got := w.runs(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
}

// A form that was opened before somebody else decided changes nothing.
func TestFormLosesTheRace(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
	})
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("ada", "#support-approvals", card, actReject)
	form := w.opened("ada", actReject)
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "It ran")
	if out := w.submits("ada", form, map[string]any{fieldReason: "no"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("ada", "#support-approvals", "", "Too late: <@U0002>", "approved this")
}

// What is critical asks for a typed value, goes through its stages, and each person counts once.
func TestCriticalStages(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", `@bot call cancel_account {"user_id":"C-77"}`)
	card := w.finds("teo", "#support-approvals", "", "Stage 1 of 2", "Team Lead")
	approve := func(user, channel string, p posted) {
		w.clicks(user, channel, p, actTyped)
		form := w.opened(user, actTyped)
		if out := w.submits(user, form, map[string]any{fieldTyped: "C-78"}); out["error"] != "view_errors" {
			t.Fatalf("another value was taken: %v", out)
		}
		if out := w.submits(user, form, map[string]any{fieldTyped: " C-77 "}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
	}
	if card.has(actApprove) {
		t.Error("a critical card has a plain Approve")
	}
	approve("teo", "#support-approvals", card)
	ingrid := w.finds("ingrid", "U0BOT", "", "Stage 2 of 2", "0 of 2 agreed")
	approve("ingrid", "U0BOT", ingrid)
	if ingrid = w.finds("ingrid", "U0BOT", "", "1 of 2 agreed", "You have agreed"); ingrid.has(actTyped) {
		t.Error("who has agreed can agree again")
	}
	kenji := w.finds("kenji", "U0BOT", "", "1 of 2 agreed")
	approve("kenji", "U0BOT", kenji)
	for _, at := range [][2]string{{"teo", "#support-approvals"}, {"ingrid", "U0BOT"}, {"kenji", "U0BOT"}} {
		if p := w.finds(at[0], at[1], "", "Approved by", "It ran"); strings.Contains(p.raw, `"button"`) {
			t.Errorf("%s still sees a live button", at[0])
		}
	}
	w.finds("sam", "#support", root, "results: executed")
}

// Arguments that don't fit on a card are opened whole, page by page, and approved from the last page.
func TestLongArguments(t *testing.T) {
	w := newWorkbench(t)
	body := strings.Repeat("A long line of an e-mail that nobody reads. ", 700)
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-123","amount":1,"reason":"`+body+`"}`)
	card := w.finds("teo", "#support-approvals", "", "Cut here")
	if card.has(actApprove) || !card.has(actArguments) {
		t.Fatal("the card can be approved without having been read")
	}
	w.clicks("teo", "#support-approvals", card, actArguments)
	form := w.opened("teo", actArguments)
	for page := 1; form["submit"] == nil; page++ {
		if page > 6 {
			t.Fatal("there is no last page")
		}
		out := w.call("POST", "/people/teo/actions", map[string]any{"view_id": form["id"], "action_id": actPage + "_next"})
		if out["ok"] != true {
			t.Fatalf("page %d can't be turned: %v", page, out)
		}
		next := fmt.Sprintf("Page %d of", page+1)
		w.until(next, func() bool {
			form = w.opened("teo", actArguments)
			return strings.Contains(fmt.Sprint(form["blocks"]), next)
		})
	}
	if out := w.submits("teo", form, nil); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "It ran")
}

// Nobody acts: the lead gets the whole card, and may decide.
func TestEscalation(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.Defaults.EscalateAfter = 30 * time.Millisecond })
	w.says("sam", "#support", refundCall)
	card := w.finds("kenji", "U0BOT", "", "Nobody has decided yet", "Finance Director", "ORD-123")
	w.clicks("kenji", "U0BOT", card, actApprove)
	w.finds("kenji", "U0BOT", "", "Approved by <@U0004> (Finance Director)", "It ran")
	w.finds("ingrid", "U0BOT", "", "Approved by <@U0004> (Finance Director)")
	w.finds("teo", "#support-approvals", "", "Approved by <@U0004> (Finance Director)")
}

// Silence rejects.
func TestExpiry(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.Defaults.ExpiresAfter = 150 * time.Millisecond })
	root := w.says("sam", "#support", refundCall)
	p := w.finds("teo", "#support-approvals", "", "Expired")
	if strings.Contains(p.raw, `"button"`) {
		t.Error("an expired card has buttons")
	}
	w.finds("sam", "#support", root, "Expired")
	w.finds("sam", "#support", root, "results: expired")
}

// A person's click counts for the version that was clicked: after an edit it does not.
func TestStaleCard(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
		w.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	})
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Stage 1 of 2")
	w.quiet()
	was := w.buttonOn("C0002", card, actApprove)
	w.clicks("teo", "#support-approvals", card, actReject)
	old := w.opened("teo", actReject)
	w.clicks("ada", "#support-approvals", card, actModify)
	edit := w.opened("ada", actModify)
	if out := w.submits("ada", edit, map[string]any{"arg.amount": "10"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "Stage 2 of 2", "+ amount: 10")
	if out := w.submits("teo", old, map[string]any{fieldReason: "late"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "the arguments were changed after the card that you clicked was drawn")
	w.delivers("from the version before", click{"U0002", "T0001", "C0002", card.TS, actApprove, was.String()})
	w.until("both are recorded", func() bool { return strings.Count(strings.Join(w.denials(was.Ref), "\n"), "stale ") == 2 })
}
