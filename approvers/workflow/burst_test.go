package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// A prompt injection makes the agent open a hundred requests in one burst. While the requests wait, the policy becomes
// stricter. The number of open cards never exceeds the cap, and every request above the cap needs a typed value. No
// call runs under the old policy: no waiting call, no approved call that has not started, and no call that the old
// policy allowed without approval. COUNTERSIGN_BURST sets another number of requests.
func TestBurstWhileThePolicyTightens(t *testing.T) {
	h := newHarness(t)
	const most = 10
	caps := func(p *approvers.Policy) {
		p.Caps = approvers.Caps{Approver: most, Requester: approvers.Limit{Count: 20, Per: time.Hour}}
	}
	h.policy.Store(policy("policy-1", caps))
	n := max(100, testkit.Size(t, "COUNTERSIGN_BURST", 100))
	var rs []approvers.Request
	var alone []store.Call // calls that run without approval
	for len(rs) < n {
		var specs []string
		for range 50 {
			specs = append(specs, fmt.Sprintf(`issue_refund {"amount":%d,"note":%q}`, (len(rs)+len(specs))%400+1, strings.Repeat("x", 600))) // each with a card of its own
		}
		for _, c := range h.propose(h.sayIn(h.id("thread"), alice, "refund them all").Turn, append(specs, `update_address {"order":"ORD-1"}`)...) {
			if c.Request != "" && c.Tool == "issue_refund" {
				rs = append(rs, h.request(c.Request))
			} else if c.Request == "" {
				alone = append(alone, c)
			}
		}
	}
	open := func() int { return len(h.lineAt("role:team-lead").Open) }
	highest := open()
	var approved []approvers.Request
	for _, r := range rs[:5] { // approved before the policy becomes stricter, and not started yet
		approved = append(approved, h.approve(lead, r.ID))
		highest = max(highest, open())
	}
	h.policy.Store(policy("policy-2", caps, func(p *approvers.Policy) {
		for i := range p.Tools {
			p.Tools[i].Risk, p.Tools[i].Confirm = approvers.Critical, true
			p.Tools[i].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
		}
	}))
	runs := 0
	claim := func(execution string) {
		t.Helper()
		_, run, err := h.Runs.Claim(h.ctx(), execution)
		if err != nil && !errors.Is(err, workflow.ErrNotDue) {
			t.Fatal(err)
		}
		if run {
			runs++
		}
	}
	for _, r := range approved {
		claim(r.Execution)
		if now := h.request(r.ID); now.State != approvers.Pending || len(now.ValidApprovals()) > 1 {
			t.Errorf("a request that was approved under the old policy is %s, with %d approvals", now.State, len(now.ValidApprovals()))
		}
	}
	for _, c := range alone {
		claim(c.Execution)
	}
	untyped, typed := 0, 0
	for _, r := range rs[5:] {
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID)) // on a card with the old plan
		wantDenied(t, err, approvers.DeniedStage)
		c := h.clickOn(lead, approvers.Approve, r.ID)
		c.Typed = false
		_, err = h.Requests.Decide(h.ctx(), c)
		wantDenied(t, err, approvers.DeniedTyped)
		untyped++
		c = h.clickOn(lead, approvers.Approve, r.ID)
		after, err := h.Requests.Decide(h.ctx(), c)
		if err != nil || after.State != approvers.Pending || after.Stage != 1 {
			t.Fatalf("after the first of two stages the request is %s at stage %d, %v", after.State, after.Stage, err)
		}
		typed++
		claim(after.Execution)
		highest = max(highest, open())
	}
	if highest > most || runs > 0 {
		t.Errorf("%d cards were open simultaneously, and %d calls ran", highest, runs)
	}
	t.Logf("burst=%d cap=%d open_at_once=%d refused_untyped=%d waiting_for_the_next_stage=%d by_themselves=%d runs_under_the_looser_policy=%d", len(rs), most, highest, untyped, typed, len(alone), runs)
}
