package bot

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
)

func TestAskAndAnswer(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actAsk)
	form := w.opened("teo", actAsk)
	if out := w.submits("teo", form, map[string]any{fieldReason: "   "}); out["ok"] == true {
		t.Error("a question without words was taken")
	}
	w.submits("teo", form, map[string]any{fieldReason: "why <!channel> so much?"})
	question := w.finds("sam", "#support", root, "asks about", "why &lt;!channel&gt; so much?", "<@U0100>: your answer")
	w.finds("ada", "#support-approvals", "", "asked: why &lt;!channel&gt; so much?", "Not answered yet")

	w.clicks("priya", "#support", question, actAnswer)
	w.until("priya is told why there is no form", func() bool {
		return strings.Contains(fmt.Sprint(w.opened("priya", "")), "only somebody who asked for this can do that")
	})

	w.clicks("sam", "#support", question, actAnswer)
	w.submits("sam", w.opened("sam", actAnswer), map[string]any{fieldReason: "it is for two"})
	w.finds("ada", "#support-approvals", "", "asked: why", "💬 <@U0100>: it is for two")
	answered := w.finds("sam", "#support", root, "asks about", "answered", "it is for two")
	if answered.has(actAnswer) {
		t.Error("an answered question still has its button")
	}
	w.finds("teo", "countersign", "", "answered your question", "“it is for two”", "|See the card>")
}

func TestHandOnThroughSlack(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actHandOn)
	form := w.opened("teo", actHandOn)
	for who, why := range map[string]string{"U0001": "may not decide this in place of Team Lead", "U0100": "may not decide", "U0900": "may not decide"} {
		if out := fmt.Sprint(w.submits("teo", form, map[string]any{fieldColleague: who})["errors"]); !strings.Contains(out, why) {
			t.Errorf("%s: beside the field it says %q", who, out)
		}
	}
	if out := w.submits("teo", form, map[string]any{fieldColleague: "U0003"}); out["ok"] != true {
		t.Fatalf("a colleague who may was refused: %v", out)
	}
	handed := w.finds("ingrid", "countersign", "", "<@U0002> handed this on to you", "as Finance Director")
	w.finds("ada", "#support-approvals", "", "Team Lead or <@U0003>")
	w.clicks("ingrid", "countersign", handed, actApprove)
	w.finds("ada", "#support-approvals", "", "Approved by <@U0003> (Finance Director)")
}

func TestTakeBackAndComment(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Tools[toolIndex(w.policy, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	})
	root := w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actApprove)
	mine := w.finds("ingrid", "countersign", "", "Waits for Finance Director")
	w.clicks("ingrid", "countersign", mine, actComment)
	w.submits("ingrid", w.opened("ingrid", actComment), map[string]any{fieldReason: "fine with me"})
	w.finds("kenji", "countersign", "", "🗨️ <@U0003> (Finance Director): fine with me")
	mine = w.finds("ingrid", "countersign", "", "fine with me")
	w.clicks("ingrid", "countersign", mine, actApprove)
	agreed := w.finds("ingrid", "countersign", "", "You have agreed")
	if agreed.has(actApprove) || !agreed.has(actTakeBack) || !agreed.has(actComment) {
		t.Error("the copy of somebody who has agreed offers something else than to comment and to take it back")
	}
	w.clicks("ingrid", "countersign", agreed, actTakeBack)
	w.submits("ingrid", w.opened("ingrid", actTakeBack), map[string]any{fieldReason: "the wrong order"})
	w.finds("sam", "#support", root, "Approval taken back by <@U0003> (Finance Director)", "the wrong order")
	if over := w.finds("teo", "#support-approvals", "", "Approval taken back"); strings.Contains(over.raw, `"type":"button"`) {
		t.Error("a button is left on what was taken back")
	}
	if runs := w.runs(); len(runs) != 0 {
		t.Errorf("it ran: %v", runs)
	}
}

func toolIndex(p *approvers.Policy, name string) int {
	for i, t := range p.Tools {
		if t.Name == name {
			return i
		}
	}
	panic(name)
}

// A stage for a user group is asked of the group's members who hold one of its roles, by direct message; the group is looked at again at the click.
func TestGroupStageThroughSlack(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Tools[toolIndex(w.policy, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Group: "support", Quorum: 1}}
	})
	if err := w.slack.SetGroupUsers("S0001", []string{"U0001", "U0003", "U0004"}); err != nil { // Ada holds no role that may
		t.Fatal(err)
	}
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := w.finds("ingrid", "countersign", "", "Waits for @support (Team Lead or Finance Director)")
	w.finds("kenji", "countersign", "", "Waits for @support")
	for _, user := range []string{"ada", "teo"} {
		if seen := w.sees(user, "countersign", ""); len(seen) != 0 {
			t.Errorf("%s, who can't decide it, was asked: %s", user, seen[0].Text)
		}
	}
	if err := w.slack.SetGroupUsers("S0001", []string{"U0004"}); err != nil {
		t.Fatal(err)
	}
	w.clicks("ingrid", "countersign", card, actApprove)
	w.finds("ingrid", "countersign", "", "you are not in that user group")
	w.clicks("kenji", "countersign", w.finds("kenji", "countersign", "", "Waits for @support"), actApprove)
	w.finds("kenji", "countersign", "", "Approved by <@U0004> (Finance Director)")
}

// A card in a channel mentions the members of those of the stage's roles that read their cards there.
func TestCallsOfSeveralRoles(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Tools[toolIndex(w.policy, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}}
	})
	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	if card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead or Finance Director: <@U0002>."); strings.Contains(card.Text, "<@U0003>") {
		t.Errorf("the channel's card calls those who have it by direct message:\n%s", card.Text)
	}
	w.finds("ingrid", "countersign", "", "Waits for Team Lead or Finance Director.")
}
