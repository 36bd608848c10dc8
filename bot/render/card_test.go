package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/store"
)

func drawn(t *testing.T, s view.Model) Rendered {
	t.Helper()
	d, body, err := Draw(View{Model: s, WorkspaceURL: bottest.WorkspaceURL, Tool: ToolDescription{description: "Pays money back to a customer."}})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) == 0 {
		t.Fatal("nothing to keep")
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
	staged.Tool, staged.Preview, staged.Plan.Risk, staged.Plan.Routed = "cancel_account", "", approvers.Critical, false
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
	unrun.Execution.Result = "it was not run: its definition on the server is not the one that was pinned; an operator has to look at it (countersign tools); nothing was done"
	lost := bottest.ViewModel(ran)
	lost.Execution.State, lost.Execution.StartedAt = approvers.ExecutionUnknown, bottest.Noon.Add(5*time.Minute)

	for name, s := range map[string]view.Model{
		"card_pending":    bottest.ViewModel(refund),
		"card_stages":     bottest.ViewModel(staged),
		"card_edited":     bottest.ViewModel(edited),
		"card_reworded":   bottest.ViewModel(rewritten),
		"card_deleted":    bottest.ViewModel(removed),
		"card_escalation": lead,
		"card_hostile":    bottest.ViewModel(hostile),
		"card_long":       bottest.ViewModel(long),
		"card_approved":   bottest.ViewModel(bottest.ApprovedBy(bottest.Closed(refund, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)),
		"card_done":       done,
		"card_failed":     failed,
		"card_unrun":      unrun,
		"card_unknown":    lost,
		"card_rejected":   bottest.ViewModel(bottest.Closed(refund, approvers.Rejected, "U0002", "team-lead", "the customer was refunded already")),
		"card_expired":    bottest.ViewModel(bottest.Closed(refund, approvers.Expired, "", "", "nobody decided in time")),
		"card_withdrawn":  bottest.ViewModel(bottest.Closed(refund, approvers.Withdrawn, "U0100", "", "")),
		"card_voided":     bottest.ViewModel(bottest.Closed(refund, approvers.Voided, "", "", "the definition of the tool changed")),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			bottest.Golden(t, name, d.Messages[0])
			if want := name != "card_long"; d.Shows[0].Whole != want {
				t.Errorf("whole is %v, want %v", d.Shows[0].Whole, want)
			}
			if d.Shows[0].Digest != s.Request.Digest {
				t.Errorf("the card's digest is %q, not the request's", d.Shows[0].Digest)
			}
			live := bytes.Contains(encode(t, d), []byte(`"type":"button"`))
			if live != s.Request.State.Open() {
				t.Errorf("buttons: %v, but the request is %s", live, s.Request.State)
			}
		})
	}
}

func encode(t *testing.T, d Rendered) []byte {
	t.Helper()
	raw, err := json.Marshal(d.Messages)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A card whose arguments do not fit has no Approve button: the full view comes first.
func TestLongCardCannotBeApprovedDirectly(t *testing.T) {
	long := bottest.Request(`{"body":"` + strings.Repeat("x", MaxCardArgs) + `"}`)
	raw := string(encode(t, drawn(t, bottest.ViewModel(long))))
	if strings.Contains(raw, `"action_id":"approve"`) || !strings.Contains(raw, `"action_id":"arguments"`) {
		t.Error("a card that does not show the arguments whole must offer to open them, and nothing to approve them")
	}
}

// A button's value depends on the content of its version.
func TestMarksDifferWithContent(t *testing.T) {
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
			m, err := ParseButtonToken(value)
			if err != nil || m.Ref != "req_1" || m.Message != "s_1" || m.Post != 3 {
				t.Fatalf("the value %q reads as %+v (%v)", value, m, err)
			}
			return value
		}
	}
	t.Fatal("no buttons")
	return ""
}

func TestSteps(t *testing.T) {
	pending := bottest.Request(bottest.RefundArgs)
	two := bottest.Request(bottest.RefundArgs)
	two.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}, {Approver: "finance-director", Quorum: 1}}
	two = bottest.ApprovedBy(two, "U0002", "Teo", "team-lead", 0)
	two.ID, two.Joined = "req_2", []string{"finance-director"}
	call := func(id string, outcome approvers.Outcome, result string) store.Call {
		return store.Call{ID: id, Tool: "issue_refund", Args: bottest.RefundArgs, Preview: "Refund of $49.99 for order ORD-123", Outcome: outcome, Result: result, Step: 1}
	}
	over := func(r approvers.Request) *approvers.Request { return &r }
	rejected := bottest.Closed(pending, approvers.Rejected, "U0002", "team-lead", "refunded already")
	approved := bottest.Closed(pending, approvers.Consumed, "U0002", "team-lead", "")
	changed := approved
	changed.Edits = []approvers.Edit{{By: approvers.Who("T0001", "U0002"), Name: "Teo", Role: "team-lead"}}
	state := func(s approvers.ExecutionState) *approvers.Execution { return &approvers.Execution{State: s} }
	cards := []store.OutboxMessage{{Kind: store.OutboxCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452801.000200"}}
	notRun := approvers.NewResult(approvers.OutcomeError, "issue_refund", "it was not run: its definition on the server is not the one that was pinned", "").Text()
	refused := approvers.NewResult(approvers.OutcomeError, "issue_refund", "amount: must be above 0", "").Text()

	report := func(s approvers.ExecutionState) *approvers.Execution {
		return &approvers.Execution{State: s, ReportedBy: approvers.Who("T0001", "U0005"), FinishedAt: bottest.Noon}
	}
	staged := bottest.Closed(bottest.ApprovedBy(bottest.ApprovedBy(two, "U0003", "Ingrid", "finance-director", 1), "U0004", "Kenji", "finance-director", 1), approvers.Consumed, "U0004", "finance-director", "")

	many := make([]view.Call, 40)
	for i := range many {
		many[i] = view.Call{Call: store.Call{ID: fmt.Sprint("call_", i), Tool: "search_orders", Args: `{"query":"x"}`, Outcome: approvers.OutcomeExecuted}}
	}
	many[39] = view.Call{Call: call("call_w", "", ""), Request: &pending}

	for name, s := range map[string]struct {
		text  string
		calls []view.Call
	}{
		"step_waiting": {"I'll ask for the **refund** now.", []view.Call{
			{Call: store.Call{ID: "c1", Tool: "search_orders", Args: `{"query":"ORD-123"}`, Outcome: approvers.OutcomeExecuted}, Execution: state(approvers.ExecutionSucceeded)},
			{Call: call("c2", "", ""), Request: &pending, Cards: cards},
			{Call: call("c3", "", ""), Request: &two},
			{Call: store.Call{ID: "c4", Tool: "lookup", Args: `{}`}, Execution: state(approvers.ExecutionExecuting)},
			{Call: store.Call{ID: "c5", Tool: "lookup", Args: `{}`}, Execution: state(approvers.ExecutionNone)},
		}},
		"step_over": {"", []view.Call{
			{Call: call("c1", approvers.OutcomeExecuted, "{}"), Request: over(approved), Execution: state(approvers.ExecutionSucceeded)},
			{Call: call("c2", approvers.OutcomeExecuted, "{}"), Request: over(changed), Execution: state(approvers.ExecutionSucceeded)},
			{Call: call("c3", approvers.OutcomeRejected, "{}"), Request: over(rejected)},
			{Call: call("c4", approvers.OutcomeExpired, "{}"), Request: over(bottest.Closed(pending, approvers.Expired, "", "", "nobody decided in time"))},
			{Call: call("c5", approvers.OutcomeWithdrawn, "{}"), Request: over(bottest.Closed(pending, approvers.Withdrawn, "U0100", "", ""))},
			{Call: call("c6", approvers.OutcomeError, refused)},
			{Call: call("c7", approvers.OutcomeUnknown, "{}"), Request: over(approved), Execution: state(approvers.ExecutionUnknown)},
			{Call: call("c8", "", ""), Request: over(approved), Execution: state(approvers.ExecutionUnknown)},
			{Call: call("c9", approvers.OutcomeRefused, "{}"), Request: over(bottest.Closed(pending, approvers.Refused, "", "", "no approver may"))},
			{Call: call("c10", "", ""), Request: over(bottest.Closed(pending, approvers.Approved, "U0002", "team-lead", ""))},
		}},
		"step_reported": {"", []view.Call{
			{Call: call("c1", approvers.OutcomeExecuted, "{}"), Request: over(staged), Execution: report(approvers.ExecutionSucceeded)},
			{Call: call("c2", approvers.OutcomeError, "{}"), Execution: report(approvers.ExecutionFailed)},
			{Call: call("c3", approvers.OutcomeUnknown, "{}"), Request: over(approved), Execution: report(approvers.ExecutionSucceeded)},
		}},
		"step_unrun": {"", []view.Call{{Call: call("c1", approvers.OutcomeError, notRun), Request: over(approved), Execution: &approvers.Execution{State: approvers.ExecutionFailed, Unrun: true}}}},
		"step_many":  {"", many},
	} {
		t.Run(name, func(t *testing.T) {
			vm := bottest.ViewModel(pending)
			vm.Message.Kind, vm.Message.Ref, vm.Message.Step = store.OutboxStep, "turn_1", 1
			vm.Request, vm.Execution, vm.Call = nil, nil, nil
			for i := range s.calls {
				s.calls[i].Call.Index = i
			}
			vm.Text, vm.Calls = s.text, s.calls
			bottest.Golden(t, name, drawn(t, vm).Messages[0])
		})
	}
}

func TestTurnSurfaces(t *testing.T) {
	pending := bottest.Request(bottest.RefundArgs)
	base := bottest.ViewModel(pending)
	base.Message.Ref = "turn_1"
	problem, queued, unknown, reported := base, base, base, base

	problem.Message.Kind = store.OutboxProblem
	problem.Turn = approvers.Turn{ID: "turn_1", State: approvers.TurnStopped, Problem: "The model could not be reached for five minutes.", CanRetry: true}
	again := problem
	again.Turn.State = approvers.TurnThinking

	queued.Message.Kind = store.OutboxQueued
	queued.Queued = []store.Message{{Text: "never mind"}}
	queued.Calls = []view.Call{{Call: store.Call{Tool: "issue_refund", Preview: pending.Preview}, Request: &pending}}
	taken := queued
	taken.Queued, taken.Turn.State = nil, approvers.TurnThinking

	reworded := queued
	reworded.Message.Kind = store.OutboxMessageEdit
	reworded.MessageEdit = &store.Message{Author: pending.Facts.Asker, AuthorName: "Sam", MessageEdit: &approvers.MessageEdit{At: bottest.Noon, Edit: "1772452900.000100", Text: "refund ORD-124"}}
	deleted := reworded
	deleted.MessageEdit = &store.Message{Author: pending.Facts.Asker, AuthorName: "Sam", MessageEdit: &approvers.MessageEdit{At: bottest.Noon, Deleted: true}}

	e := *base.Execution
	e.State, e.StartedAt = approvers.ExecutionUnknown, bottest.Noon
	unknown.Message.Kind, unknown.Message.Ref, unknown.Execution = store.OutboxUnknown, e.ID, &e
	settled := e
	settled.State, settled.ReportedBy, settled.FinishedAt, settled.Result = approvers.ExecutionSucceeded, approvers.Who("T0001", "U0002"), bottest.Noon.Add(time.Hour), "RF-9"
	reported.Message.Kind, reported.Execution = store.OutboxUnknown, &settled

	for name, s := range map[string]view.Model{
		"problem": problem, "problem_again": again, "queued": queued, "queued_taken": taken, "unknown": unknown, "unknown_reported": reported,
		"reworded": reworded, "reworded_deleted": deleted,
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
}

func TestAnswers(t *testing.T) {
	base := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	base.Message.Kind, base.Message.Ref = store.OutboxAnswer, "turn_1"
	for name, text := range map[string]string{
		"answer_markdown": "# Refunds\nThe refund of **$49.99** for `ORD-123` was *rejected* by Team Lead.\n\n" +
			"1. Ask again\n2. Offer a ~~voucher~~ replacement\n   - red\n   - blue\n3. Wait\n\n> quoted\n> words\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSee [the policy](https://example.com/p) or https://example.com/q.\n---\nBye",
		"answer_hostile": "<!channel> <@U0003> [click](javascript:alert(1)) [bank](https://evil.example/) @here \u202etxt.exe &lt;!here&gt; ![x](https://evil.example/pixel.png)",
		"answer_empty":   "  \n",
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			s.Text = text
			bottest.Golden(t, name, drawn(t, s).Messages[0])
		})
	}
}

// An answer begins with the steps that had no message of their own: the calls, who allowed them, and their outcomes.
func TestAnswerWithSteps(t *testing.T) {
	approved := bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0)
	approved.State, approved.ClosedBy, approved.ClosedName, approved.ClosedRole, approved.ClosedAt = approvers.Consumed, approvers.Who("T0001", "U0002"), "Teo", "team-lead", bottest.Noon
	s := bottest.ViewModel(approved)
	s.Message.Kind, s.Message.Ref, s.Message.Step, s.Message.Steps = store.OutboxAnswer, "turn_1", 3, []int{1, 2}
	call := func(id string, outcome approvers.Outcome, result string) store.Call {
		return store.Call{ID: id, Tool: "issue_refund", Preview: approved.Preview, Args: bottest.RefundArgs, Outcome: outcome, Result: result}
	}
	s.Text = "I have *refunded* it."
	s.Steps = []view.Step{
		{Step: 1, Calls: []view.Call{{Call: call("c1", approvers.OutcomeError, `{"status":"error","reason":"no such order"}`), Execution: &approvers.Execution{State: approvers.ExecutionFailed}}}},
		{Step: 2, Text: "Let me try it once more.", Calls: []view.Call{{Call: call("c2", approvers.OutcomeExecuted, "{}"), Request: &approved, Execution: &approvers.Execution{State: approvers.ExecutionSucceeded}}}},
	}
	bottest.Golden(t, "answer_steps", drawn(t, s).Messages[0])
}
