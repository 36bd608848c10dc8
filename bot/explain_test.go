package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// typed types a command, and waits for the answer.
func (w *workbench) typed(user, text string, words ...string) posted {
	w.t.Helper()
	w.commands(user, "#support", text)
	return w.answered(user, "#support", words...)
}

// Whoever types explain is told who would have to allow a call, by which rule, as if they asked for it there; nothing is asked for by that.
func TestExplainCall(t *testing.T) {
	w := newWorkbench(t)
	said := w.typed("sam", `explain issue_refund {"order_id":"ORD-1","amount":20}`, "It would wait for people", "Stage 1 of 1", "Team Lead: <@U0002>", "issue_refund: high risk", "You could not allow it yourself")
	if strings.Contains(said.Text, "ORD-1") {
		t.Errorf("the arguments are repeated: %s", said.Text)
	}
	w.typed("sam", `explain issue_refund {“order_id”:“ORD-2”,“amount”:99999}`, "It would wait for people", "With these arguments it would not get that far", "amount")
	w.typed("sam", "explain search_orders", "It would run without asking anybody")
	w.typed("sam", "explain no_such_tool", "No tool is called “no_such_tool”", "issue_refund")
	w.typed("sam", "explain issue_refund amount=20", "These are no arguments", "Write them as JSON")
	w.typed("sam", "explain", "Say what:")
	w.typed("sam", "explian", "I don't know “explian”", "explain")
	w.commands("gus", "#support", "explain search_orders")
	w.answered("gus", "#support", "full members of this workspace only")
	if waiting, err := w.desk.Waiting(context.Background()); err != nil || waiting {
		t.Error("something was asked for", err)
	}
}

// explain and history of a request say who, why and what has happened, to those whom it concerns; history lists what somebody had to do with.
func TestExplainAndHistory(t *testing.T) {
	w := newWorkbench(t)
	w.typed("sam", "history", "You have asked for nothing")
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := w.asked("C0002", card)
	link := fmt.Sprintf("<%s/archives/C0002/p%s>", w.url, strings.ReplaceAll(card.TS, ".", ""))
	w.typed("teo", "explain "+link, "Why people are asked: issue_refund is high risk", "here it waits", "What has happened so far:", "The agent asked for it.", "Put before those who decide.")
	w.clicks("ada", "#support-approvals", card, actApprove)
	w.finds("ada", "#support-approvals", "", "you are not a member of that role")
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	w.quiet()
	w.typed("sam", "explain "+r.ID, "Approved by <@U0002>", "<@U0001> tried to approve it and may not.", "<@U0002> approved it as Team Lead.", "It was started.", "It ran: succeeded.")
	w.typed("sam", "history", "What you asked for or had a say in", "Refund for order ORD-123", "Approved by <@U0002>", r.ID)
	w.typed("teo", "history "+r.ID, "Refund for order ORD-123, asked for by <@U0100>", "The agent was told.")
	w.typed("priya", "history", "You have asked for nothing")
	w.typed("priya", "history "+r.ID, "between those who asked for it and those who may decide it")
	w.typed("priya", "explain "+r.ID, "between those who asked for it and those who may decide it")
	w.typed("sam", "history req_none", "I don't know that request")
}

// A long history has pages.
func TestHistoryPages(t *testing.T) {
	w := newWorkbench(t)
	for i := range 12 {
		w.says("sam", "#support", fmt.Sprintf(`@bot call update_shipping_address {"order_id":"ORD-%d"}`, i))
	}
	w.until("all wait", func() bool {
		n := 0
		for _, p := range w.sees("ada", "#support-approvals", "") {
			if strings.Contains(p.Text, "Waits for Support Agent") {
				n++
			}
		}
		return n == 12
	})
	w.typed("sam", "history", "There is more: /countersign history 2")
	w.typed("sam", "history 99", "There is no page 99: the last one is page 2.")
	last := w.typed("sam", "history 2", "What you asked for or had a say in, page 2", "update_shipping_address")
	if n := strings.Count(last.Text, "✋"); n != 2 {
		t.Errorf("%d on the second page: %s", n, last.Text)
	}
}

// The shortcut explains a card in a form, and says kindly so where a message asks for nothing.
func TestExplainShortcut(t *testing.T) {
	w := newWorkbench(t)
	chat := w.says("ada", "#support-approvals", "good morning")
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	step := w.finds("sam", "#support", root, "Waits for", "Team Lead")
	explained := func(user, channel, ts string, words ...string) {
		t.Helper()
		if out := w.call("POST", "/people/"+user+"/shortcuts", map[string]any{"callback_id": explainShortcut, "channel": channel, "ts": ts}); out["ok"] != true {
			t.Fatalf("%v", out)
		}
		w.until(fmt.Sprintf("%s reads %q", user, words), func() bool {
			views, _ := json.Marshal(w.call("GET", "/people/"+user+"/views", nil)["views"])
			for _, word := range words {
				if !strings.Contains(string(views), word) {
					return false
				}
			}
			return true
		})
		views, _ := w.call("GET", "/people/"+user+"/views", nil)["views"].([]any)
		w.call("POST", fmt.Sprintf("/people/%s/views/%s/close", user, views[0].(map[string]any)["id"]), map[string]any{"all": true})
	}
	explained("ada", "#support-approvals", card.TS, "Explain this approval", "Refund for order ORD-123", "Why people are asked", "here it waits", "The agent asked for it.")
	explained("sam", "#support", step.TS, "Refund for order ORD-123", "here it waits")
	explained("ada", "#support-approvals", chat, "there is nothing to explain")
	explained("gus", "#support", step.TS, "full members of this workspace only")
	w.quiet()
	if faults := w.log.String(); strings.Contains(faults, "could not be") {
		t.Error(faults)
	}
}

func TestExplanation(t *testing.T) {
	r := approvedBy(testRequest(refundArgs), "U0002", "Teo", "team-lead", 0)
	r.Plan.Stages = append(r.Plan.Stages, approvers.Stage{Approver: "support-agent", Or: []string{"finance-director"}, Group: "audit", Quorum: 2})
	r.Stage, r.Joined = 1, []string{"finance-director"}
	at := func(i int, kind approvers.AuditKind, who approvers.PersonID, facts map[string]string) approvers.AuditRecord {
		return approvers.AuditRecord{Seq: uint64(i), At: noon.Add(time.Duration(i) * time.Minute), Kind: kind, Actor: who, Facts: facts}
	}
	teo := approvers.Who("T0001", "U0002")
	records := []approvers.AuditRecord{
		at(1, approvers.AuditProposed, "", nil), at(2, approvers.AuditShown, "", map[string]string{"to": "role:team-lead"}), at(3, approvers.AuditShown, "", map[string]string{"to": "user:U0002"}),
		at(4, approvers.AuditShown, teo, map[string]string{"surface": "view", "to": "user:U0002"}), at(5, approvers.AuditShown, teo, map[string]string{"surface": actReveal, "to": "user:U0002"}),
		at(6, approvers.AuditDenied, teo, map[string]string{"kind": "approve"}), at(7, approvers.AuditDecided, teo, map[string]string{"kind": "approve", "role": "team-lead"}),
		at(8, approvers.AuditAdvanced, "", map[string]string{"stage": "2", "risk": "high"}), at(9, approvers.AuditEscalated, "", map[string]string{"role": "finance-director"}),
		at(10, approvers.AuditEscalated, "", map[string]string{"again": "1"}), at(11, approvers.AuditReminded, "", map[string]string{"people": "2"}),
		at(12, approvers.AuditInvited, teo, map[string]string{"person": "T0001/U0003", "role": "finance-director"}), at(13, approvers.AuditRemarked, teo, map[string]string{"kind": "question"}),
		at(14, approvers.AuditReworded, "", nil), at(15, approvers.AuditReplanned, "", nil), at(16, approvers.AuditReopened, "", nil), at(17, approvers.AuditClosed, teo, map[string]string{"state": "rejected"}),
		at(18, approvers.AuditExecuting, "", nil), at(19, approvers.AuditExecuted, "", map[string]string{"state": "succeeded"}), at(20, approvers.AuditReturned, "", nil),
	}
	s := sightOf(r)
	view := scene{Sight: s, url: home}
	p := new(page)
	view.explanation(p, r, records)
	v := modal(formTitles[explainShortcut], p)
	viewWithin(t, v)
	golden(t, "modal_explain", v)
	golden(t, "history_request", paragraph(view.happened(records)...).message())
	withinLimits(t, paragraph(view.happened(records)...).message())
}
