package desk_test

import (
	"encoding/json"
	"testing"

	"countersign/approvers"
)

func observing(p *approvers.Policy) { p.Mode = approvers.Observe }

// TestObserve: in observe mode nothing with effects runs and nobody is asked; the model and the audit know what would have been.
func TestObserve(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", observing))
	turn := o.say(alice, "do it all").Turn
	cs := o.propose(turn, `issue_refund {"amount":600}`, `update_address {"n":1}`, `search_orders {}`)
	for i, want := range []string{"it would have waited for Team Lead, then 2 × Finance Director", "it would have run without asking anybody"} {
		c := o.call(cs[i].ID)
		var res approvers.Result
		if err := json.Unmarshal([]byte(c.Result), &res); err != nil {
			t.Fatalf("call %d: %v in %q", i, err, c.Result)
		}
		if c.Outcome != approvers.OutcomeObserved || res.Reason != want || c.Request != "" {
			t.Errorf("call %d: %s, %q, request %q; want observed, %q", i, c.Outcome, res.Reason, c.Request, want)
		}
		o.notRun(c.Execution)
		o.wantKinds(c.Execution, "proposed returned")
	}
	o.run(cs[2].Execution, "found") // reading has no effects
	o.answer(turn)
}

// TestObserveBegins: a policy that begins to observe holds for what was to run, and for what waits.
func TestObserveBegins(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "change it, and a refund").Turn
	cs := o.propose(turn, `update_address {"n":1}`, `issue_refund {"amount":10}`, `issue_refund {"amount":20}`)
	o.approve(lead, cs[2].Request)
	o.policy.Store(policy("policy-2", observing))
	o.notRun(cs[0].Execution)
	if c := o.call(cs[0].ID); c.Outcome != approvers.OutcomeObserved {
		t.Errorf("the automatic call: %s", c.Outcome)
	}
	o.notRun(cs[2].Execution)
	o.ok(o.Reconsider(o.ctx()))
	for _, c := range cs[1:] {
		if r := o.request(c.Request); r.State != approvers.Voided || !contains(r.Reason, "only observes") {
			t.Errorf("a request is %s: %s", r.State, r.Reason)
		}
	}
}
