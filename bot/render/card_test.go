package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/store"
)

func drawn(t *testing.T, s view.Model) block.Rendered {
	t.Helper()
	d, body, err := Draw(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL, Tool: wording.ToolDescription{Text: "Pays money back to a customer."}})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) == 0 {
		t.Fatal("the body is empty")
	}
	for _, m := range d.Messages {
		withinLimits(t, m)
	}
	inflated(t, s)
	return d
}

func TestCards(t *testing.T) {
	refund := bottest.Request(bottest.RefundArgs)
	staged := bottest.Request(`{"user_id":"C-77","confirm":true}`)
	staged.Tool, staged.Preview, staged.Plan.Risk, staged.Plan.Routed = "cancel_account", "Cancel account: C-77, confirm", approvers.Critical, false
	staged.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	staged.Plan.Why = []string{"cancel_account is critical risk", "the policy names the stages: Team Lead, then 2 × Finance Director"}
	staged = bottest.ApprovedBy(bottest.ApprovedBy(staged, "U0002", "Teo", "team-lead", 0), "U0003", "Ingrid", "finance-director", 1)
	staged.Stage, staged.EscalateAt = 1, time.Time{}

	edited := bottest.Request(bottest.RefundArgs)
	edited.Args = json.RawMessage(`{ "order_id": "ORD-123", "amount": 39.99, "currency": "USD", "reason": "arrived broken", "note": "goodwill" }`)
	edited.Edits = []approvers.Edit{{By: approvers.Who("T0001", "U0002"), Name: "Teo", Role: "team-lead", At: bottest.Noon.Add(time.Minute), Before: json.RawMessage(bottest.RefundArgs), After: edited.Args, Reason: "shipping is not refunded"}}
	edited = bottest.ApprovedBy(edited, "U0001", "Ada", "support-agent", 0)
	edited.Decisions[0].Fallen, edited.Decisions[0].Digest = true, "of the call before the edit"

	escalated := bottest.Request(bottest.RefundArgs)
	escalated.Joined = []string{"finance-director"}
	lead := bottest.ViewModel(escalated)
	lead.Message.Kind, lead.Message.To, lead.Message.Role = store.OutboxEscalation, "user:U0003", "finance-director"

	var called [3]view.Model // cards that explain why nobody else can decide
	for i, call := range []approvers.LeadCall{{}, {Deactivated: make([]approvers.Deactivated, 1)}, {Deactivated: make([]approvers.Deactivated, 2), Others: true}} {
		r := escalated
		call.Lead = "finance-director"
		for j := range call.Deactivated {
			call.Deactivated[j] = approvers.Deactivated{Who: approvers.Who("T0001", fmt.Sprintf("U000%d", j+1)), Name: "Bob"}
		}
		r.Calls = []approvers.LeadCall{call}
		called[i] = bottest.ViewModel(r)
		called[i].Message = lead.Message
	}

	rewritten := bottest.Request(bottest.RefundArgs)
	rewritten.Facts.MessageEdit = &approvers.MessageEdit{At: bottest.Noon.Add(5 * time.Minute), Edit: "1772453100.000100", Text: "<!channel> *approved* by <@U0003>: refund ORD-124 \u202e"}
	removed := bottest.Request(bottest.RefundArgs)
	removed.Facts.MessageEdit = &approvers.MessageEdit{At: bottest.Noon.Add(5 * time.Minute), Deleted: true}

	hostile := bottest.Request(`{"to":"ann@p` + "а" + `ypal.example","note":"ok\u202egpj.exe\u200b","body":"Dear Ann,\nthanks\n\"amount\": 1` + strings.Repeat(" ", 60) + `x","<!channel>":"*bold* <@U0003> ` + "`tick`" + `"}`)
	hostile.Preview = "Pay <!channel> *now* \u202eevil"
	hostile.Facts.Quote = "<!here> approve this :tada: `now` \u2066hidden\u2069"
	hostile.PreviewFault = "amount is <missing>"
	hostile.Plan.Known = false

	long := bottest.Request(`{"order_id":"ORD-123","body":"` + strings.Repeat("日本語のとても長い文章。", 400) + `"}`)

	ran := bottest.ApprovedBy(bottest.Closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	done := bottest.ViewModel(ran)
	done.Execution.State, done.Execution.FinishedAt, done.Execution.Result = approvers.ExecutionSucceeded, bottest.Noon.Add(5*time.Minute), `{"refund_id":"RF-9","amount":49.99}`
	failed := bottest.ViewModel(ran)
	failed.Execution.State, failed.Execution.FinishedAt, failed.Execution.Result = approvers.ExecutionFailed, bottest.Noon.Add(5*time.Minute), "the payment provider said no"
	unrun := bottest.ViewModel(ran)
	unrun.Execution.State, unrun.Execution.Unrun, unrun.Execution.FinishedAt = approvers.ExecutionFailed, true, bottest.Noon.Add(5*time.Minute)
	unrun.Execution.Result = "it was not run: its definition on the server differs from the pinned one; an operator must review it (countersign tools); nothing was done"
	lost := bottest.ViewModel(ran)
	lost.Execution.State, lost.Execution.StartedAt = approvers.ExecutionUnknown, bottest.Noon.Add(5*time.Minute)

	byCaller := bottest.Request(bottest.RefundArgs)
	byCaller.Facts = approvers.AskFacts{
		Asker: "caller:ci", AskerName: "CI bot", Quote: "All tests passed. <!here> *approve*", Conversation: approvers.ConversationFacts{ID: "caller:ci"},
		Caller: &approvers.Caller{Name: "ci", Title: "CI bot", Owner: approvers.Who("T0001", "U0100"), For: approvers.Who("T0001", "U0200"), Mode: approvers.DecideMode},
	}
	byCaller.Facts.Requesters = byCaller.Facts.Caller.Requesters()
	served := byCaller
	served.Facts.Quote = ""
	served.Facts.Caller = &approvers.Caller{Name: "ci", Title: "CI bot", Owner: approvers.Who("T0001", "U0100"), Mode: approvers.ExecuteMode, Edits: true}
	claimable := bottest.ViewModel(bottest.ApprovedBy(bottest.Closed(byCaller, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0))
	claimable.Request.RunBy = bottest.Noon.Add(20 * time.Minute)
	claimed := bottest.ViewModel(bottest.ApprovedBy(bottest.Closed(byCaller, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0))
	claimed.Execution.State, claimed.Execution.Caller = approvers.ExecutionExecuting, "ci"
	reported := claimed
	reported.Execution = &approvers.Execution{}
	*reported.Execution = *claimed.Execution
	reported.Execution.State, reported.Execution.Result, reported.Execution.FinishedAt = approvers.ExecutionSucceeded, "shop 1.4.2 is live", bottest.Noon.Add(5*time.Minute)
	lostReported := bottest.ViewModel(bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Voided, "", "", approvers.LostTrack(bottest.Noon)))
	lostReported.Request.Lost = true
	lostReported.Execution.State, lostReported.Execution.Loss = approvers.ExecutionSucceeded, approvers.LossRestored
	lostReported.Execution.ReportedBy, lostReported.Execution.FinishedAt = claimed.Request.Facts.Caller.Identity().ID, bottest.Noon.Add(5*time.Minute)
	unreported := claimed
	unreported.Execution = &approvers.Execution{}
	*unreported.Execution = *claimed.Execution
	unreported.Execution.State, unreported.Execution.Loss, unreported.Execution.StartedAt = approvers.ExecutionUnknown, approvers.LossUnreported, bottest.Noon.Add(5*time.Minute)

	for name, s := range map[string]view.Model{
		"card_file_edit":       bottest.ViewModel(fileEdit("claude-code.Edit", oneEdit)),
		"card_file_edits":      bottest.ViewModel(fileEdit("claude-code.MultiEdit", manyEdits(2))),
		"card_file_edits_long": bottest.ViewModel(fileEdit("claude-code.MultiEdit", manyEdits(40))),
		"card_file_replace":    bottest.ViewModel(fileEdit("copilot.edit", strings.NewReplacer("_string", "_str", "file_path", "path").Replace(oneEdit))),
		"card_file_patch":      bottest.ViewModel(fileEdit("codex.apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.go\n@@ func f()\n-x := 1\n+x := 2\n*** Delete File: b.go\n*** End Patch\n","working_folder":"/w"}`)),
		"card_file_write":      bottest.ViewModel(fileEdit("gemini.write_file", `{"file_path":"/w/a.go","content":"package a\n\nvar x = 1\n","working_folder":"/w"}`)),

		"card_caller":            bottest.ViewModel(byCaller),
		"card_caller_execute":    bottest.ViewModel(served),
		"card_caller_approved":   claimable,
		"card_caller_running":    claimed,
		"card_caller_reported":   reported,
		"card_caller_unreported": unreported,
		"card_lost_reported":     lostReported,

		"card_pending":    bottest.ViewModel(refund),
		"card_stages":     bottest.ViewModel(staged),
		"card_edited":     bottest.ViewModel(edited),
		"card_reworded":   bottest.ViewModel(rewritten),
		"card_deleted":    bottest.ViewModel(removed),
		"card_escalation": lead, "card_escalation_nobody": called[0], "card_escalation_deactivated": called[1], "card_escalation_unreachable": called[2],
		"card_hostile":   bottest.ViewModel(hostile),
		"card_long":      bottest.ViewModel(long),
		"card_approved":  bottest.ViewModel(bottest.ApprovedBy(bottest.Closed(refund, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)),
		"card_done":      done,
		"card_failed":    failed,
		"card_unrun":     unrun,
		"card_unknown":   lost,
		"card_rejected":  bottest.ViewModel(bottest.Closed(refund, approvers.Rejected, "U0002", "team-lead", "the customer was refunded already")),
		"card_expired":   bottest.ViewModel(bottest.Closed(refund, approvers.Expired, "", "", "nobody decided in time")),
		"card_withdrawn": bottest.ViewModel(bottest.Closed(refund, approvers.Withdrawn, "U0100", "", "")),
		"card_voided":    bottest.ViewModel(bottest.Closed(refund, approvers.Voided, "", "", "the definition of the tool changed")),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			bottest.Golden(t, name, d.Messages[0])
			if want := !strings.HasSuffix(name, "_long"); d.Shows[0].Whole != want {
				t.Errorf("whole is %v, want %v", d.Shows[0].Whole, want)
			}
			if d.Shows[0].Digest != s.Request.Digest {
				t.Errorf("the card's digest is %q, not the request's", d.Shows[0].Digest)
			}
			live := false
			for _, a := range actionsOf(d) {
				live = live || a != control.ActArguments
			}
			if live != s.Request.State.Open() {
				t.Errorf("buttons that act: %v, but the request is %s", live, s.Request.State)
			}
		})
	}
}

// oneEdit has the arguments of one edit of a file.
const oneEdit = `{"file_path":"/w/a.go","old_string":"func f() {\n\tx := 1\n\treturn\n}","new_string":"func f() {\n\tx := 2\n\tlog(x)\n\treturn\n}","working_folder":"/w"}`

// manyEdits returns the arguments of a call with several edits of a file.
func manyEdits(n int) string {
	var edits []string
	for i := range n {
		edits = append(edits, fmt.Sprintf(`{"old_string":"x%d := 1\nreturn","new_string":"x%[1]d := 2\nreturn"}`, i+1))
	}
	return `{"file_path":"/w/a.go","edits":[` + strings.Join(edits, ",") + `],"working_folder":"/w"}`
}

// fileEdit returns a request of a coding agent that edits a file. The agent's policy is not known here, so the request
// has no sentence about the call.
func fileEdit(tool, args string) approvers.Request {
	r := bottest.Request(args)
	r.Tool, r.Preview = tool, ""
	r.Plan.Why = []string{tool + " is high risk"}
	return r
}

// Only a person who has read all edits of a file can approve them. If the edits do not fit on the card, the card has no
// button Approve, and in Details…, the button is on the last page with arguments.
func TestEveryEditIsRead(t *testing.T) {
	r := fileEdit("issue_refund", manyEdits(200)) // a tool that the Team Lead may approve
	for _, a := range actionsOf(drawn(t, bottest.ViewModel(r))) {
		if a == control.ActApprove {
			t.Error("the card with a part of the edits has the button Approve")
		}
	}
	read, pages := "", 0
	for token := testToken(r); ; token.Page++ {
		m := detailsOn(bottest.ViewModel(r), token, "U0002")
		read += textOf(m.Blocks.BlockSet)
		if m.Submit != nil {
			break
		}
		if pages++; pages > 20 {
			t.Fatalf("after %d pages, the button Approve is missing", pages)
		}
	}
	for i := range 200 {
		for _, line := range []string{"│ - x%d := 1\n", "│ + x%d := 2\n"} {
			if line = fmt.Sprintf(line, i+1); !strings.Contains(read, line) {
				t.Errorf("the pages up to the button Approve lack %q", line)
			}
		}
	}
	if pages == 0 {
		t.Error("the edits fit on one page, so the test shows nothing")
	}
}

// If the policy does not know a tool, the card shows the tool's exact name in addition to the headline.
func TestUnknownToolIsNamed(t *testing.T) {
	for name, want := range map[string][]string{
		"delete-account":     {"Delete account", "does not know this tool: delete-account."},
		"de\u200bploy\u202e": {"De ploy", "does not know this tool: de⟨U+200B⟩ploy⟨U+202E⟩.", "2 characters that can't be seen are shown as ⟨…⟩."},
		"d\u0435ploy":        {"does not know this tool: d\u0435ploy.", "Letters that can look like others: “d\u0435ploy”."},
		"deploy\nApproved":   {"does not know this tool: deploy ⏎ Approved."},
		"<!here> *x*":        {"does not know this tool: &lt;!here&gt; *x*."},
	} {
		r := bottest.Request(`{"a":1}`)
		r.Tool, r.Preview, r.Plan.Known = name, "", false
		text := drawn(t, bottest.ViewModel(r)).Messages[0].Text
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("the card of %q lacks %q: %s", name, part, text)
			}
		}
	}
}

// On a decided card, the sentence with the reason ends with exactly one full stop, even if the reason itself ends with
// one.
func TestReasonsEndOnce(t *testing.T) {
	for reason, want := range map[string]string{
		"it can't be undone":   ": it can't be undone. It was not run.",
		"it can't be undone.":  ": it can't be undone. It was not run.",
		"it can't be undone. ": ": it can't be undone. It was not run.",
		"why so much?":         ": why so much? It was not run.",
		"no!":                  ": no! It was not run.",
		"well…":                ": well… It was not run.",
		".":                    "12:04 UTC>. It was not run.",
		"":                     "12:04 UTC>. It was not run.",
	} {
		r := bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Rejected, "U0002", "team-lead", reason)
		if text := drawn(t, bottest.ViewModel(r)).Messages[0].Text; !strings.Contains(text, want+"\nButtons") {
			t.Errorf("the reason %q reads %q, want %q", reason, text, want)
		}
	}
}

// actionsOf returns the actions of the buttons in drawn messages, in order.
func actionsOf(d block.Rendered) (actions []string) {
	for _, m := range d.Messages {
		for _, block := range m.Blocks {
			if row, ok := block.(*slack.ActionBlock); ok {
				for _, e := range row.Elements.ElementSet {
					actions = append(actions, e.(*slack.ButtonBlockElement).ActionID)
				}
			}
		}
	}
	return actions
}

func encode(t *testing.T, d block.Rendered) []byte {
	t.Helper()
	raw, err := json.Marshal(d.Messages)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A card whose arguments do not fit has no Approve button, because the approver must first see all arguments.
func TestLongCardCannotBeApprovedDirectly(t *testing.T) {
	long := bottest.Request(`{"body":"` + strings.Repeat("x", argument.MaxCardArgs) + `"}`)
	raw := string(encode(t, drawn(t, bottest.ViewModel(long))))
	if strings.Contains(raw, `"action_id":"approve"`) || !strings.Contains(raw, `"action_id":"arguments"`) {
		t.Error("a card that cuts the arguments must offer to open them, and no Approve")
	}
}

// A button's value depends on the content of its version.
func TestTokensDifferWithContent(t *testing.T) {
	a, b := bottest.ViewModel(bottest.Request(bottest.RefundArgs)), bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	b.Request.Facts.Quote = "something else"
	if renderedToken(t, a) == renderedToken(t, b) {
		t.Error("two versions under one post number can't be told apart")
	}
	if renderedToken(t, a) != renderedToken(t, a) {
		t.Error("the same state must be drawn the same")
	}
}

func renderedToken(t *testing.T, s view.Model) string {
	t.Helper()
	for _, block := range drawn(t, s).Messages[0].Blocks {
		if row, ok := block.(*slack.ActionBlock); ok {
			value := row.Elements.ElementSet[0].(*slack.ButtonBlockElement).Value
			m, err := control.ParseButtonToken(value)
			if err != nil || m.Ref != "req_1" || m.Message != "s_1" || m.Post != 3 {
				t.Fatalf("the value %q reads as %+v (%v)", value, m, err)
			}
			return value
		}
	}
	t.Fatal("no buttons")
	return ""
}

// A tool's own claims are shown on a card.
func TestClaimsOnACard(t *testing.T) {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	d, _, err := Draw(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL, Tool: wording.ToolDescription{Text: "Sends a letter.", Claims: bottest.EveryClaim().Words()}})
	if err != nil {
		t.Fatal(err)
	}
	withinLimits(t, d.Messages[0])
	bottest.Golden(t, "card_claims", d.Messages[0])
}

// The copy for a person who has approved says which approvals are missing, and has no Approve button.
func TestHaveAgreed(t *testing.T) {
	quorum := func(n int, by ...string) approvers.Request {
		r := bottest.Request(bottest.RefundArgs)
		r.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: n}}
		for _, user := range by {
			r = bottest.ApprovedBy(r, user, "Teo", "team-lead", 0)
		}
		return r
	}
	next := quorum(1, "U0002")
	next.Plan.Stages = append(next.Plan.Stages, approvers.Stage{Approver: "finance-director", Quorum: 1})
	next.Stage = 1
	two := next
	two.Plan.Stages = []approvers.Stage{next.Plan.Stages[0], {Approver: "finance-director", Quorum: 2}}
	for want, r := range map[string]approvers.Request{
		"Still needed: Finance Director.":             next,
		"Still needed: 2 people of Finance Director.": two,
		"Still needed: one more of Team Lead.":        quorum(2, "U0002"),
		"Still needed: 2 people of Team Lead.":        quorum(3, "U0002"),
	} {
		s := bottest.ViewModel(r)
		s.Message.To = "user:U0002"
		d := drawn(t, s)
		if text := d.Messages[0].Text; !strings.Contains(text, "☑️ You have agreed. "+want) {
			t.Errorf("%q is missing in %q", want, text)
		}
		if got := actionsOf(d); !slices.Equal(got, []string{control.ActTakeBack, control.ActArguments}) {
			t.Errorf("the buttons are %q", got)
		}
	}
}
