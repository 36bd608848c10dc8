package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

var anna = approvers.Operates(approvers.Operator("anna"))

// h.order returns a click of the operator at the command line on the current state of a request.
func (h *harness) order(kind approvers.DecisionKind, request string) workflow.Click {
	h.t.Helper()
	return workflow.Click{Who: anna, Request: request, Kind: kind, Reason: "Slack is down", Digest: h.request(request).Digest}
}

// allowBreakGlass sets a policy in which break_glass lets the operator approve refunds.
func (h *harness) allowBreakGlass() {
	h.policy.Store(policy("policy-glass", func(p *approvers.Policy) { p.Tools[3].BreakGlass = true }))
}

// h.told lists the addresses to which a notice about a request goes.
func (h *harness) told(request string, note store.Note) (to []string) {
	for _, s := range h.messagesOf(request) {
		if s.Note == note {
			to = append(to, s.To)
		}
	}
	return to
}

// The operator's approval of a call replaces all remaining stages. The call runs, and all people concerned are told,
// including people who are away.
func TestBreakGlass(t *testing.T) {
	h := newHarness(t)
	h.allowBreakGlass()
	r := h.ask(`issue_refund {"amount":900}`)
	h.approve(lead, r.ID)
	after, err := h.Requests.BreakGlass(h.ctx(), h.order(approvers.Approve, r.ID))
	h.ok(err)
	if after.State != approvers.Approved || after.ClosedBy != anna.ID {
		t.Fatalf("%s by %s", after.State, after.ClosedBy)
	}
	if got := fmt.Sprint(h.told(r.ID, store.NoteBreakGlass)); got != "[role:team-lead role:finance-director]" {
		t.Errorf("told: %s", got)
	}
	records := readStore(h, func(s store.Reader) ([]approvers.AuditRecord, error) { return s.Audit(r.ID) })
	i := slices.IndexFunc(records, func(a approvers.AuditRecord) bool { return a.Actor == anna.ID })
	if i < 0 || records[i].Kind != approvers.AuditDecided || records[i].Facts["break_glass"] != "true" || records[i].Facts["kind"] != "approve" ||
		records[i].Facts["digest"] != r.Digest || records[i].Facts["stages"] != "2 x finance-director" {
		t.Errorf("recorded as %+v", records)
	}
	body := readStore(h, func(s store.Reader) (approvers.AuditPayload, error) { return s.AuditPayload(r.ID, records[i].Seq) })
	if !strings.Contains(string(body.Body), "Slack is down") {
		t.Errorf("the reason is not recorded: %s", body.Body)
	}
	_, err = h.Requests.Decide(h.ctx(), h.clickOn(fin1, approvers.Approve, r.ID))
	if d := wantDenied(t, err, approvers.DeniedResolved); d.By != anna.ID {
		t.Errorf("the others are told that it was %s", d.By)
	}
	h.run(r.Execution, "refunded")
	h.wantOutcome(r.Call, approvers.OutcomeExecuted)
	h.wantKinds(r.ID, "proposed decided advanced decided approved denied executing executed returned")

	_, err = h.People.SetAway(h.ctx(), workflow.Departure{Who: fin2, Until: h.clock.Now().Add(time.Hour)})
	h.ok(err)
	for _, s := range h.messagesOf(r.ID) {
		if s.Note == store.NoteBreakGlass && s.To == "role:finance-director" {
			h.ok(h.Outbox.Expand(h.ctx(), s.ID, persons("U0003", "U0004")))
		}
	}
	if got := h.told(r.ID, store.NoteBreakGlass); !slices.Contains(got, "user:U0004") || !slices.Contains(got, "user:U0003") {
		t.Errorf("told: %v", got)
	}
}

// The operator can approve a call only if the policy and the tool allow approvals by the operator. A denied attempt is
// recorded, and changes nothing else.
func TestBreakGlassObeys(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*harness, *workflow.Click)
		code  approvers.Code
		state approvers.State
	}{
		"the policy in force does not allow break glass": {func(h *harness, _ *workflow.Click) { h.policy.Store(policy("policy-2")) }, approvers.DeniedBreakGlass, approvers.Pending},
		"changed since it was shown": {func(h *harness, c *workflow.Click) {
			h.approve(lead, c.Request)
			_, err := h.Requests.Decide(h.ctx(), h.edit(fin1, c.Request, `{"amount":800}`))
			h.ok(err)
		}, approvers.DeniedStale, approvers.Pending},
		"too late": {func(h *harness, _ *workflow.Click) { h.clock.pass(expiresAfter + time.Second) }, approvers.DeniedLate, approvers.Pending},
		"another tool by now": {func(h *harness, _ *workflow.Click) {
			h.tools.change("issue_refund", func(t *workflow.Tool) { t.Hash = "another" })
		}, approvers.DeniedResolved, approvers.Voided},
		"nobody could allow it any more": {func(h *harness, _ *workflow.Click) {
			h.policy.Store(policy("policy-3", func(p *approvers.Policy) {
				p.Tools[3].BreakGlass = true
				p.Approvers = p.Approvers[:1]
			}))
		}, approvers.DeniedResolved, approvers.Voided},
		"no reason":         {func(_ *harness, c *workflow.Click) { c.Reason = "" }, approvers.DeniedNoReason, approvers.Pending},
		"somebody of Slack": {func(_ *harness, c *workflow.Click) { c.Who = fin1 }, approvers.DeniedUnidentified, approvers.Pending},
		"decided before":    {func(h *harness, c *workflow.Click) { h.reject(lead, c.Request) }, approvers.DeniedResolved, approvers.Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.allowBreakGlass()
			r := h.ask(`issue_refund {"amount":900}`)
			click := h.order(approvers.Approve, r.ID)
			c.do(h, &click)
			_, err := h.Requests.BreakGlass(h.ctx(), click)
			wantDenied(t, err, c.code)
			after := h.wantState(r.ID, c.state)
			if _, broken := after.BrokenBy(); broken || len(h.told(r.ID, store.NoteBreakGlass)) > 0 {
				t.Error("the denied approval counts, or people were told of it")
			}
			if !strings.Contains(h.kinds(r.ID), "denied") && c.state != approvers.Rejected {
				t.Errorf("the attempt is not recorded: %s", h.kinds(r.ID))
			}
			h.notRun(after.Execution)
		})
	}
	h := newHarness(t)
	_, err := h.Requests.BreakGlass(h.ctx(), workflow.Click{Who: anna, Request: "req_none", Kind: approvers.Approve})
	wantDenied(t, err, approvers.DeniedNotFound)
}

// If the policy removes break_glass before the run of a call that the operator approved, the call waits for approval
// again.
func TestBrokenGlassIsHeldAgainstThePolicyBeforeTheRun(t *testing.T) {
	h := newHarness(t)
	h.allowBreakGlass()
	r := h.ask(`issue_refund {"amount":1}`)
	_, err := h.Requests.BreakGlass(h.ctx(), h.order(approvers.Approve, r.ID))
	h.ok(err)
	h.policy.Store(policy("policy-2"))
	h.notRun(r.Execution)
	h.wantState(r.ID, approvers.Pending)
	h.approve(lead, r.ID)
	h.run(r.Execution, "refunded")
}

func TestOverrule(t *testing.T) {
	h := newHarness(t)
	waits := h.ask(`issue_refund {"amount":1}`)
	after, err := h.Requests.Overrule(h.ctx(), h.order(approvers.Reject, waits.ID))
	h.ok(err)
	if after.State != approvers.Rejected || after.Reason != "Slack is down" {
		t.Errorf("%s: %s", after.State, after.Reason)
	}
	if c := h.wantOutcome(waits.Call, approvers.OutcomeRejected); !contains(c.Result, "the operator") || contains(c.Result, "anna") {
		t.Errorf("the agent is told %s", c.Result)
	}
	h.wantKinds(waits.ID, "proposed decided closed returned")

	h.answer(after.Turn)
	approved := h.ask(`issue_refund {"amount":2}`)
	h.approve(lead, approved.ID)
	after, err = h.Requests.Overrule(h.ctx(), h.order(approvers.Reject, approved.ID))
	h.ok(err)
	if after.State != approvers.Revoked {
		t.Errorf("the approved request is %s", after.State)
	}
	h.notRun(approved.Execution)

	h.answer(after.Turn)
	began := h.ask(`issue_refund {"amount":3}`)
	h.approve(lead, began.ID)
	_, _, err = h.Runs.Claim(h.ctx(), began.Execution)
	h.ok(err)
	_, err = h.Requests.Overrule(h.ctx(), h.order(approvers.Reject, began.ID))
	wantDenied(t, err, approvers.DeniedStarted)
	h.ok(h.Runs.Finish(h.ctx(), began.Execution, true, "refunded"))
}

// The operator can report the outcome of an interrupted run.
func TestOperatorReports(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.approve(lead, r.ID)
	_, _, err := h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	h.clock.pass(time.Hour)
	h.reopen()
	h.notRun(r.Execution)
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Who: anna, Execution: r.Execution, Reason: "the bank shows it"}, workflow.Happened))
	if e := h.execution(r.Execution); e.State != approvers.ExecutionSucceeded || e.ReportedBy != anna.ID {
		t.Errorf("%s, by %s", e.State, e.ReportedBy)
	}
}

// If the outcome of a call that the operator approved is unknown, people are asked for the outcome. The question goes
// to the conversation, and to the addresses where the approvers read their cards.
func TestBreakGlassUnknown(t *testing.T) {
	h := newHarness(t)
	h.allowBreakGlass()
	r := h.ask(`issue_refund {"amount":1}`)
	_, err := h.Requests.BreakGlass(h.ctx(), h.order(approvers.Approve, r.ID))
	h.ok(err)
	_, _, err = h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	var to []string
	for _, s := range h.messagesOf(r.Execution) {
		to = append(to, s.To)
	}
	if want := []string{"conversation:" + r.Conversation, "role:team-lead"}; !slices.Equal(to, want) {
		t.Errorf("asked at %q; want %q", to, want)
	}
}
