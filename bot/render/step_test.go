package render

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/store"
)

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
	notRun := approvers.NewResult(approvers.OutcomeError, "issue_refund", "it was not run: its definition on the server differs from the pinned one", "").Text()
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

func TestWithdrawForm(t *testing.T) {
	var rs []approvers.Request
	for i := range 128 {
		r := refundOf(fmt.Sprint("ORD-", i), "1")
		r.Preview = strings.Repeat("𝕏", 500)
		rs = append(rs, r)
	}
	s := form.ClickTarget{Token: control.ButtonToken{Ref: "turn_1", Message: "s_1", Post: 3, Print: "0123456789abcdef"}, Model: bundleOf(rs...)}
	viewWithin(t, form.Withdraw(s))
	s.Calls = []view.Call{{Call: store.Call{Tool: "search_orders", Outcome: approvers.OutcomeExecuted}}}
	viewWithin(t, form.Withdraw(s))
	s.Model = bundleOf(refundOf("ORD-1", "1"), bottest.Closed(refundOf("ORD-2", "2"), approvers.Expired, "", "", "nobody decided in time"), refundOf("ORD-3", "3"))
	bottest.Golden(t, "modal_withdraw_some", form.Withdraw(s))
}
