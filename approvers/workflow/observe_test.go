package workflow_test

import (
	"encoding/json"
	"testing"

	"countersign/approvers"
)

func observing(p *approvers.Policy) { p.Mode = approvers.Observe }

// TestObserve checks that no call with effects runs in observe mode, and that nobody is asked for approval. The model
// and the audit get the outcome that the call would have had without observe mode.
func TestObserve(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", observing))
	turn := h.say(alice, "do it all").Turn
	cs := h.propose(turn, `issue_refund {"amount":600}`, `update_address {"n":1}`, `search_orders {}`)
	for i, want := range []string{"it would have waited for Team Lead, then 2 × Finance Director", "it would have run without asking anybody"} {
		c := h.call(cs[i].ID)
		var res approvers.Result
		if err := json.Unmarshal([]byte(c.Result), &res); err != nil {
			t.Fatalf("call %d: %v in %q", i, err, c.Result)
		}
		if c.Outcome != approvers.OutcomeObserved || res.Reason != want || c.Request != "" {
			t.Errorf("call %d: %s, %q, request %q; want observed, %q", i, c.Outcome, res.Reason, c.Request, want)
		}
		h.notRun(c.Execution)
		h.wantKinds(c.Execution, "proposed returned")
	}
	h.run(cs[2].Execution, "found") // reading has no effects
	h.answer(turn)
}

// TestObserveBegins checks that a new policy with observe mode also applies to waiting requests and to calls that are
// due to run.
func TestObserveBegins(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "change it, and a refund").Turn
	cs := h.propose(turn, `update_address {"n":1}`, `issue_refund {"amount":10}`, `issue_refund {"amount":20}`)
	h.approve(lead, cs[2].Request)
	h.policy.Store(policy("policy-2", observing))
	h.notRun(cs[0].Execution)
	if c := h.call(cs[0].ID); c.Outcome != approvers.OutcomeObserved {
		t.Errorf("the automatic call: %s", c.Outcome)
	}
	h.notRun(cs[2].Execution)
	h.ok(h.Requests.Reevaluate(h.ctx()))
	for _, c := range cs[1:] {
		if r := h.request(c.Request); r.State != approvers.Voided || !contains(r.Reason, "only observes") {
			t.Errorf("a request is %s: %s", r.State, r.Reason)
		}
	}
}
