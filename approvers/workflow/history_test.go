package workflow_test

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow/retention"
	"countersign/store"
)

// directors makes the refund wait for two directors, or two rejections.
func directors(risk approvers.Risk) func(*approvers.Policy) {
	return func(p *approvers.Policy) {
		p.Tools[3].Rules, p.Tools[3].Risk = nil, risk
		p.Tools[3].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2, Rejects: 2}}
		p.Approvers[2].Members = users("U0003", "U0004", "U0005")
	}
}

// The list names the people whose approvals count, also while the request waits. It does not name a person who changed
// to a rejection, or whose approval ended because the policy became stricter.
func TestListNamesApprovalsThatCount(t *testing.T) {
	who := func(h *harness, request, want string) {
		h.t.Helper()
		var out strings.Builder
		h.ok(audit.List(h.ctx(), &out, h.store, audit.ListOptions{Filter: audit.Filter{Chain: request}}))
		for _, id := range []string{"U0003", "U0004", "U0005"} {
			if strings.Contains(out.String(), id) != strings.Contains(want, id) {
				h.t.Errorf("the list should name %q:\n%s", want, out.String())
			}
		}
	}
	h := newHarness(t)
	h.policy.Store(policy("policy-1", directors(approvers.High)))
	r := h.ask(`issue_refund {"amount":5}`)
	h.approve(fin1, r.ID)
	h.reject(fin1, r.ID)
	h.approve(fin2, r.ID)
	who(h, r.ID, "U0004")
	h.approve(person("U0005"), r.ID)
	who(h, r.ID, "U0004 U0005")
	h.run(r.Execution, "done")
	h.answer(r.Turn)

	r = h.ask(`issue_refund {"amount":5}`)
	h.approve(fin1, r.ID)
	h.policy.Store(policy("policy-2", directors(approvers.Critical)))
	h.clock.pass(time.Second)
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(fin2, approvers.Approve, r.ID)) // this click's transaction applies the stricter policy
	wantDenied(t, err, approvers.DeniedStage)
	h.approve(fin2, r.ID)
	who(h, r.ID, "U0004")
	h.approve(person("U0005"), r.ID)
	who(h, r.ID, "U0004 U0005")
	h.run(r.Execution, "done")
	h.answer(r.Turn)
}

// Verification compares the arguments and the result of an ended call with the history. If the texts were erased, it
// accepts only the values that the erasure stores.
func TestVerifyFindsChangesOfEndedCalls(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":5}`)
	h.approve(lead, r.ID)
	h.run(r.Execution, "refunded 5\xff")
	h.answer(r.Turn)
	find := func(want string) {
		h.t.Helper()
		report, err := audit.Verify(h.ctx(), h.store, audit.VerifyOptions{})
		h.ok(err)
		var out strings.Builder
		if report.Write(&out); report.Faults() > 1 || !strings.Contains(out.String(), want) || (report.Faults() == 0) != (want == "") {
			h.t.Errorf("it should report %q:\n%s", want, out.String())
		}
	}
	changed := func(change func(*approvers.Request, *approvers.Execution), want string) {
		h.t.Helper()
		q, e := h.request(r.ID), h.execution(r.Execution)
		change(&q, &e)
		put := func(q approvers.Request, e approvers.Execution) {
			h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
				was, err := tx.Request(q.ID)
				if err != nil {
					return err
				}
				ran, err := tx.Execution(e.ID)
				if err != nil {
					return err
				}
				q.Version, e.Version = was.Version, ran.Version
				if err := tx.PutRequest(q); err != nil {
					return err
				}
				return tx.PutExecution(e)
			}))
		}
		before, ran := h.request(r.ID), h.execution(r.Execution)
		put(q, e)
		find(want)
		put(before, ran)
		find("")
	}
	args := func(json string) func(*approvers.Request, *approvers.Execution) {
		return func(q *approvers.Request, _ *approvers.Execution) { q.Args = []byte(json) }
	}
	find("")
	changed(args(`{"amount":99}`), "request "+r.ID+": its arguments don't match its digest")
	changed(args(`{}`), "request "+r.ID+": its arguments don't match its digest")
	changed(func(_ *approvers.Request, e *approvers.Execution) { e.Args = []byte(`{"amount":99}`) }, "execution "+r.Execution+": its arguments don't match its digest")
	changed(func(_ *approvers.Request, e *approvers.Execution) { e.Result = "refunded 99" }, "execution "+r.Execution+": its result is not the one that was recorded")

	_, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("ann"), "asked for")
	h.ok(err)
	find("")
	changed(args(`{"amount":99}`), "request "+r.ID+": its arguments don't match its digest")
	changed(func(_ *approvers.Request, e *approvers.Execution) { e.Args = []byte(`{"amount":99}`) }, "execution "+r.Execution+": its arguments don't match its digest")
}
