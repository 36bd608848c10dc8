package workflow_test

import (
	"strings"
	"testing"

	"countersign/approvers"
)

// When a call gets a plan, an audit record names the rules that matched. The record of a stage that begins without a
// new plan names no rules.
func TestMatchedRulesAreRecorded(t *testing.T) {
	h := newHarness(t)
	large := h.policy.Load().Tools[3].Rules[0].ID()
	rules := func(chain string, kind approvers.AuditKind) string {
		facts, _ := h.lastFacts(chain, kind)
		ids, recorded := facts[approvers.FactRules]
		if !recorded {
			return "none recorded"
		}
		return strings.ReplaceAll(ids, large, "large")
	}
	r := h.ask(`issue_refund {"amount":1}`)
	if got := rules(r.ID, approvers.AuditProposed); got != "" {
		t.Errorf("a small refund: %s", got)
	}
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, r.ID, `{"amount":900}`))
	h.ok(err)
	if got := rules(r.ID, approvers.AuditAdvanced); got != "large" {
		t.Errorf("a refund that was made large: %s", got)
	}
	h = newHarness(t)
	r = h.ask(`issue_refund {"amount":600}`)
	if got := rules(r.ID, approvers.AuditProposed); got != "large" {
		t.Errorf("a large refund: %s", got)
	}
	h.approve(lead, r.ID)
	if got := rules(r.ID, approvers.AuditAdvanced); got != "none recorded" {
		t.Errorf("the second stage: %s", got)
	}
	h = newHarness(t)
	r = h.ask(`issue_refund {"amount":1}`)
	always := approvers.Rule{
		When:   approvers.Condition{Text: "true", Eval: func(approvers.Facts) (bool, error) { return true, nil }},
		Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}},
	}
	h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Rules = append(p.Tools[3].Rules, always) }))
	h.approve(lead, r.ID)
	if got := rules(r.ID, approvers.AuditReplanned); got != always.ID() {
		t.Errorf("a stricter policy: %s", got)
	}
	h = newHarness(t)
	c := h.propose(h.say(alice, "x").Turn, `search_orders {}`)[0]
	if got := rules(c.Execution, approvers.AuditProposed); got != "none recorded" {
		t.Errorf("a tool without rules: %s", got)
	}
}
