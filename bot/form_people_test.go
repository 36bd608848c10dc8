package bot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/store"
)

func TestAskAndAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActAsk)
	form := h.opened("teo", control.ActAsk)
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "   "}); out["ok"] == true {
		t.Error("a question without words was accepted")
	}
	h.submits("teo", form, map[string]any{control.FieldReason: "why <!channel> so much?"})
	question := h.finds("sam", "#support", root, "asks about", "why &lt;!channel&gt; so much?", "<@U0100>: write your answer here, or press Answer…; it appears on the card.")
	h.finds("ada", "#support-approvals", "", "asked: why &lt;!channel&gt; so much?", "Not answered yet")

	h.clicks("priya", "#support", question, control.ActAnswer)
	h.until("priya is told why there is no form", func() bool {
		return strings.Contains(fmt.Sprint(h.opened("priya", "")), "only somebody who asked for this can do that")
	})

	h.clicks("sam", "#support", question, control.ActAnswer)
	h.submits("sam", h.opened("sam", control.ActAnswer), map[string]any{control.FieldReason: "it is for two"})
	h.finds("ada", "#support-approvals", "", "asked: why", "💬 <@U0100>: it is for two")
	answered := h.finds("sam", "#support", root, "asks about", "answered", "it is for two")
	if answered.has(control.ActAnswer) {
		t.Error("an answered question still has its button")
	}
	h.finds("teo", "countersign", "", "answered your question", "“it is for two”", "|See the card>")
}

// A person was asked a question. The person's first message in the thread becomes the answer, and the bot confirms this
// to the person. Other people's messages and later messages wait for the agent as usual.
func TestAnswerByWriting(t *testing.T) { inBothWays(t, testAnswerByWriting) }

func testAnswerByWriting(t *testing.T, h *harness) {
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActAsk)
	h.submits("teo", h.opened("teo", control.ActAsk), map[string]any{control.FieldReason: "is there a photo?"})
	h.finds("sam", "#support", root, "asks about", "is there a photo?")
	h.quiet()
	h.saysIn("priya", "#support", "I saw one", root)
	h.quiet()
	h.finds("ada", "#support-approvals", "", "asked: is there a photo?", "Not answered yet")
	answer := h.saysIn("sam", "#support", "yes, <@U0101> has it", root)
	said := h.finds("sam", "#support", root, "Passed on to <@U0002> as your answer.")
	if !said.Ephemeral {
		t.Errorf("everybody is told: %s", said.Text)
	}
	h.finds("ada", "#support-approvals", "", "asked: is there a photo?", "💬 <@U0100>: yes, @Priya has it")
	if answered := h.finds("sam", "#support", root, "asks about", "answered", "yes, @Priya has it"); answered.has(control.ActAnswer) {
		t.Error("an answered question still has its button")
	}
	h.finds("teo", "countersign", "", "answered your question", "yes, @Priya has it")
	h.saysIn("sam", "#support", "thank you", root)
	h.quiet()
	r := h.asked("C0002", h.finds("teo", "#support-approvals", "", "Waits for Team Lead"))
	if len(r.Remarks) != 2 {
		t.Errorf("remarks: %+v", r.Remarks)
	}
	h.edits("sam", "#support", answer, "no, there is none")
	h.finds("ada", "#support-approvals", "", "💬 <@U0100> (edited later): yes, @Priya has it")
	h.finds("teo", "countersign", "", "<@U0100> edited the answer to your question", "no, there is none")
	h.deletes("sam", "#support", answer)
	h.finds("ada", "#support-approvals", "", "💬 <@U0100> (deleted later): yes, @Priya has it")
	h.finds("teo", "countersign", "", "<@U0100> deleted the answer to your question")
}

func TestHandOnThroughSlack(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActHandOn)
	form := h.opened("teo", control.ActHandOn)
	for who, why := range map[string]string{"U0001": "may not decide this for Team Lead", "U0100": "may not decide", "U0900": "may not decide"} {
		if out := fmt.Sprint(h.submits("teo", form, map[string]any{control.FieldColleague: who})["errors"]); !strings.Contains(out, why) {
			t.Errorf("%s: the error beside the field is %q", who, out)
		}
	}
	if out := h.submits("teo", form, map[string]any{control.FieldColleague: "U0003"}); out["ok"] != true {
		t.Fatalf("an eligible colleague was refused: %v", out)
	}
	handed := h.finds("ingrid", "countersign", "", "<@U0002> handed this on to you", "as Finance Director")
	h.finds("ada", "#support-approvals", "", "Team Lead or <@U0003>")
	h.clicks("ingrid", "countersign", handed, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "Approved by <@U0003> (Finance Director)")
}

// If the choice of a colleague is refused, the error beside the field names the roles that may decide, as a refusal
// after the submission does. These roles include the lead who was added by escalation.
func TestHandOnNamesLead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Defaults.EscalateAfter = 30 * time.Millisecond })
	h.says("sam", "#support", refundCall)
	h.finds("kenji", "U0BOT", "", "Not decided yet, so Finance Director is asked as well")
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActHandOn)
	form := h.opened("teo", control.ActHandOn)
	for who, why := range map[string]string{"U0001": "may not decide this for Team Lead or Finance Director", "U0002": "was asked already"} {
		if out := fmt.Sprint(h.submits("teo", form, map[string]any{control.FieldColleague: who})["errors"]); !strings.Contains(out, why) {
			t.Errorf("%s: the error beside the field is %q", who, out)
		}
	}
}

func TestTakeBackAndComment(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Tools[toolIndex(h.policy, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	})
	root := h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	mine := h.finds("ingrid", "countersign", "", "Waits for Finance Director")
	h.clicks("ingrid", "countersign", mine, control.ActComment)
	h.submits("ingrid", h.opened("ingrid", control.ActComment), map[string]any{control.FieldReason: "fine with me"})
	h.finds("kenji", "countersign", "", "🗨️ <@U0003> (Finance Director): fine with me")
	mine = h.finds("ingrid", "countersign", "", "fine with me")
	h.clicks("ingrid", "countersign", mine, control.ActApprove)
	agreed := h.finds("ingrid", "countersign", "", "You have agreed")
	if agreed.has(control.ActApprove) || !agreed.has(control.ActTakeBack) {
		t.Error("the copy of a person who has agreed offers more than Take back")
	}
	h.clicks("ingrid", "countersign", agreed, control.ActTakeBack)
	h.submits("ingrid", h.opened("ingrid", control.ActTakeBack), map[string]any{control.FieldReason: "the wrong order"})
	h.finds("sam", "#support", root, "Approval taken back by <@U0003> (Finance Director)", "the wrong order")
	if over := h.finds("teo", "#support-approvals", "", "Approval taken back"); over.live() {
		t.Error("a request whose approval was taken back still has a button")
	}
	if runs := h.runs(); len(runs) != 0 {
		t.Errorf("it ran: %v", runs)
	}
}

// A click in the details grants nothing. A person without permission for the button's action gets a notice. A click in
// another modal, or with metadata that the bot never made, is refused.
func TestDetailsGrantNothing(t *testing.T) {
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := h.asked("C0002", card)
	h.clicks("ada", "#support-approvals", card, control.ActArguments)
	details := h.opened("ada", control.ActArguments)
	metadata, _ := details["private_metadata"].(string)
	pressed := 0
	press := func(callback, metadata, action string) {
		t.Helper()
		pressed++
		raw, err := json.Marshal(map[string]any{
			"type": "block_actions", "trigger_id": fmt.Sprint(pressed, ".forged"), "user": map[string]string{"id": "U0001"}, "team": map[string]string{"id": "T0001"},
			"view":    map[string]any{"id": details["id"], "hash": details["hash"], "type": "modal", "callback_id": callback, "private_metadata": metadata, "state": map[string]any{"values": map[string]any{}}},
			"actions": []any{map[string]string{"action_id": action, "block_id": "moves", "type": "button", "value": r.ID}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.receive(store.InboxInteraction, raw); err != nil {
			t.Fatal(err)
		}
	}
	press(control.ActArguments, metadata, control.ActTakeBack)
	h.until("Ada is told that she can't", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/ada/views", nil)), "whose approval counts")
	})
	press(control.ActReveal, metadata, control.ActReject)
	h.until("a click in another modal is refused", func() bool { return len(h.denials(r.ID)) == 1 })
	press(control.ActArguments, strings.Replace(metadata, r.Execution, "exec_other", 1), control.ActReject)
	h.until("what she may not do is refused", func() bool { return len(h.denials(r.ID)) == 2 })
	if runs := h.runs(); len(runs) != 0 {
		t.Errorf("it ran: %v", runs)
	}
}

// After a click on Details… of a version of a card that shows an earlier plan, the bot sends the card again. The click
// is not recorded as a refused attempt.
func TestDetailsOfAnotherStage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r, old := h.asked("C0002", card), h.buttonOn("C0002", card, control.ActArguments)
	h.isShownAgain(store.OutboxCard, r.ID, func() { h.escalatesAfter(time.Hour) })
	h.quiet()
	h.isShownAgain(store.OutboxCard, r.ID, func() {
		h.delivers("old", click{"U0002", "T0001", "C0002", card.TS, control.ActArguments, old.String()})
	})
	if denied := h.denials(r.ID); len(denied) != 0 {
		t.Errorf("a click is recorded as refused: %v", denied)
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

// If a stage has a user group, the bot sends a direct message to each member of the group with one of the stage's
// roles. The bot also checks the membership at the click.
func TestGroupStageThroughSlack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Tools[toolIndex(h.policy, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Group: "support", Quorum: 1}}
	})
	if err := h.slack.SetGroupUsers("S0001", []string{"U0001", "U0003", "U0004"}); err != nil { // Ada holds no role that may decide
		t.Fatal(err)
	}
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	card := h.finds("ingrid", "countersign", "", "Waits for @support (Team Lead or Finance Director)")
	h.finds("kenji", "countersign", "", "Waits for @support")
	for _, user := range []string{"ada", "teo"} {
		if seen := h.sees(user, "countersign", ""); len(seen) != 0 {
			t.Errorf("%s, who can't decide it, was asked: %s", user, seen[0].Text)
		}
	}
	if err := h.slack.SetGroupUsers("S0001", []string{"U0004"}); err != nil {
		t.Fatal(err)
	}
	h.clicks("ingrid", "countersign", card, control.ActApprove)
	h.finds("ingrid", "countersign", "", "you are not in that user group")
	h.clicks("kenji", "countersign", h.finds("kenji", "countersign", "", "Waits for @support"), control.ActApprove)
	h.finds("kenji", "countersign", "", "Approved by <@U0004> (Finance Director)")
}

// If a stage has several roles, a card in a channel mentions only the members of the roles that get their cards in this
// channel.
func TestCallsOfSeveralRoles(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Tools[toolIndex(h.policy, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}}
	})
	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-1","amount":5}`)
	if card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead or Finance Director: <@U0002>"); strings.Contains(card.Text, "<@U0003>") {
		t.Errorf("the channel's card mentions people who have it by direct message:\n%s", card.Text)
	}
	h.finds("ingrid", "countersign", "", "Waits for Team Lead or Finance Director.")
}
