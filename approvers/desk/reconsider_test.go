package desk_test

import (
	"testing"

	"countersign/approvers"
)

// After a restart with another policy, what waits is held against it at once: a card shows the risk and the stages that have to be
// passed now, and what nobody can allow any more is voided without a click.
func TestReconsider(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":10}`)
	o.ok(o.Reconsider(o.ctx()))
	same := o.request(r.ID)

	o.policy.Store(policy("policy-2", func(p *approvers.Policy) {
		for i := range p.Tools {
			if p.Tools[i].Name == "issue_refund" {
				p.Tools[i].Risk = approvers.Critical
			}
		}
	}))
	o.ok(o.Reconsider(o.ctx()))
	now := o.request(r.ID)
	if same.Plan.Risk != approvers.High || now.Plan.Risk != approvers.Critical || now.State != approvers.Pending {
		t.Errorf("%s under the first policy, %s and %s under the second", same.Plan.Risk, now.Plan.Risk, now.State)
	}
	again := now.Version
	o.ok(o.Reconsider(o.ctx()))
	if v := o.request(r.ID).Version; v != again {
		t.Errorf("version %d after a second look, want %d: nothing changed", v, again)
	}

	o.policy.Store(policy("policy-3", func(p *approvers.Policy) { p.Approvers = nil }))
	o.ok(o.Reconsider(o.ctx()))
	if r := o.request(r.ID); r.State != approvers.Voided {
		t.Errorf("%s although nobody can allow it any more", r.State)
	}
}
