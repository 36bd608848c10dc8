package workflow_test

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// clickAt returns a click on a card's latest version. The click contains the time when the card first showed the
// request's arguments.
func (h *harness) clickAt(who approvers.Identity, kind approvers.DecisionKind, request, to string) workflow.Click {
	h.t.Helper()
	for _, s := range h.messagesOf(request) {
		if s.To != to {
			continue
		}
		shown, err := h.Views.Rendering(h.ctx(), s.ID, s.Posts)
		h.ok(err)
		c := h.clickOn(who, kind, request)
		c.FirstSeen = shown.Of(request).Since
		return c
	}
	h.t.Fatalf("there is no card at %s", to)
	return workflow.Click{}
}

// h.shows acts as Slack, and shows every card of a request in the card's current state.
func (h *harness) shows(request string) {
	h.t.Helper()
	for _, s := range h.messagesOf(request) {
		if s.Kind == store.OutboxCard && s.State == store.OutboxWanted {
			h.show(s)
		}
	}
}

// took returns the decision time of the last decision: as stored in the request, and as stored in the audit in
// milliseconds.
func (h *harness) took(request string) (time.Duration, string) {
	h.t.Helper()
	r := h.request(request)
	var fact string
	for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(request) }) {
		if a.Kind == approvers.AuditDecided {
			fact = a.Facts["took"]
		}
	}
	return r.Decisions[len(r.Decisions)-1].Took, fact
}

func (h *harness) wantTook(request string, want time.Duration, fact string) {
	h.t.Helper()
	if got, audited := h.took(request); got != want || audited != fact {
		h.t.Errorf("took %v, %q ms in the audit; want %v, %q", got, audited, want, fact)
	}
}

// TestDecisionTime checks that the decision time begins when the card first shows the arguments. Later renderings of
// the card do not change the beginning.
func TestDecisionTime(t *testing.T) {
	const to = "channel:#support-approvals"
	h := newHarness(t)
	r := h.ask(`apply_discount {"amount":10}`)
	h.clock.pass(time.Second) // the time until Slack shows the card
	h.shows(r.ID)
	h.clock.pass(40 * time.Second)
	comment := h.clickOn(support, "", r.ID)
	_, err := h.Requests.Say(h.ctx(), comment, approvers.Comment)
	h.ok(err)
	h.shows(r.ID) // the card now shows the comment
	h.clock.pass(2500 * time.Millisecond)
	_, err = h.Requests.Decide(h.ctx(), h.clickAt(support, approvers.Approve, r.ID, to))
	h.ok(err)
	h.wantTook(r.ID, 42500*time.Millisecond, "42500")
}

// TestDecisionTimeAfterAnEdit checks that the decision time begins when the card first shows the edited arguments.
func TestDecisionTimeAfterAnEdit(t *testing.T) {
	const to = "channel:#support-approvals"
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 2}}
		p.Approvers[0].Members = users("U0001", "U0005")
	}))
	r := h.ask(`apply_discount {"amount":10}`)
	h.shows(r.ID)
	h.clock.pass(time.Minute)
	edit := h.clickAt(support, approvers.Modify, r.ID, to)
	edit.Args = []byte(`{"amount":20}`)
	_, err := h.Requests.Decide(h.ctx(), edit)
	h.ok(err)
	h.wantTook(r.ID, time.Minute, "60000")

	h.clock.pass(time.Second)
	h.shows(r.ID)
	h.clock.pass(2 * time.Second)
	_, err = h.Requests.Decide(h.ctx(), h.clickAt(person("U0005"), approvers.Approve, r.ID, to))
	h.ok(err)
	h.wantTook(r.ID, 2*time.Second, "2000")
}

// TestDecisionTimeAtALaterStage checks that the decision time does not include the time before the stage began, even if
// the approver had the card earlier.
func TestDecisionTimeAtALaterStage(t *testing.T) {
	const to = "channel:#support-approvals"
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
		p.Approvers[1].Cards = "#support-approvals"
	}))
	r := h.ask(`apply_discount {"amount":10}`)
	h.shows(r.ID)
	h.clock.pass(time.Hour / 4)
	_, err := h.Requests.Decide(h.ctx(), h.clickAt(support, approvers.Approve, r.ID, to))
	h.ok(err)
	h.wantTook(r.ID, 15*time.Minute, "900000")
	h.shows(r.ID)
	h.clock.pass(5 * time.Second)
	_, err = h.Requests.Decide(h.ctx(), h.clickAt(lead, approvers.Approve, r.ID, to))
	h.ok(err)
	h.wantTook(r.ID, 5*time.Second, "5000")
}

// TestUnknownDecisionTime checks two cases. If the time when the card was first shown is unknown, the decision has no
// decision time. If the click arrived before the card's delivery was recorded, the decision time is one millisecond.
func TestUnknownDecisionTime(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {"amount":10}`)
	h.approve(support, r.ID)
	h.wantTook(r.ID, 0, "")

	h = newHarness(t)
	r = h.ask(`issue_refund {"amount":10}`)
	c := h.clickOn(lead, approvers.Approve, r.ID)
	c.FirstSeen = c.At.Add(time.Second)
	_, err := h.Requests.Decide(h.ctx(), c)
	h.ok(err)
	h.wantTook(r.ID, time.Millisecond, "1")
}

// TestDecisionTimeInABundle checks that each call of a bundle has its own decision time. If one click decides all
// calls, the decision time of each call begins when the card first showed the call.
func TestDecisionTimeInABundle(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`apply_discount {"a":1}`, `apply_discount {"a":2}`, `apply_discount {"a":3}`)
	bundle := h.only(rs[0].Turn, store.OutboxBundle)
	shown := func() []store.Shown {
		t.Helper()
		bundle.Channel, bundle.TS, bundle.Revision = "C0002", "200.1", h.message(bundle.ID).Revision
		vm, err := h.Views.Message(h.ctx(), bundle.ID)
		h.ok(err)
		h.ok(h.Outbox.Delivered(h.ctx(), bundle, workflow.SentMessage{Body: []byte("{}"), Shows: putUp(vm)}))
		rendering, err := h.Views.Rendering(h.ctx(), bundle.ID, h.message(bundle.ID).Posts)
		h.ok(err)
		return rendering.Shows
	}
	first := shown()
	h.clock.pass(10 * time.Second)
	alone := h.clickOn(support, approvers.Reject, rs[0].ID)
	alone.FirstSeen = first[0].Since
	_, err := h.Requests.Decide(h.ctx(), alone)
	h.ok(err)
	h.wantTook(rs[0].ID, 10*time.Second, "10000")
	rest := shown() // the calls of the bundle that are still undecided
	h.clock.pass(4 * time.Second)
	_, err = h.decideAll(support, approvers.Approve, rest)
	h.ok(err)
	h.wantTook(rs[1].ID, 14*time.Second, "14000")
	h.wantTook(rs[2].ID, 14*time.Second, "14000")
}
