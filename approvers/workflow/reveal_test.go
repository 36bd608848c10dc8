package workflow_test

import (
	"errors"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// h.masks makes the policy mask an argument of refunds.
func (h *harness) masks(change ...func(*approvers.ToolPolicy)) {
	h.policy.Store(policy("policy-masked", func(p *approvers.Policy) {
		p.Tools[3].Secrets = []string{"iban"}
		for _, c := range change {
			c(&p.Tools[3])
		}
	}))
}

// reveal shows the masked values of a request to a person.
func (h *harness) reveal(who approvers.Identity, c workflow.Click) {
	h.t.Helper()
	c.Who = who
	h.ok(h.Requests.Reveal(h.ctx(), c, []string{"iban"}, []byte(`{"text":"Revealed: iban"}`)))
}

func (h *harness) revealedTo(request string) (who []approvers.PersonID) {
	records := readStore(h, func(s store.Reader) ([]approvers.AuditRecord, error) { return s.Audit(request) })
	for _, a := range records {
		if a.Kind == approvers.AuditShown && a.Facts["surface"] == approvers.ShownAsReveal {
			who = append(who, a.Actor)
		}
	}
	return who
}

// When a person reveals masked values, the reveal is stored in the request and in the audit. The person can then
// approve, and the cards show who revealed the values.
func TestReveal(t *testing.T) {
	h := newHarness(t)
	h.masks()
	r := h.ask(`issue_refund {"amount":600,"iban":"DE02 1234"}`)
	var denied *approvers.Denied
	if _, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID)); !errors.As(err, &denied) || denied.Code != approvers.DeniedMasked {
		t.Fatalf("unseen: %v", err)
	}
	card := h.show(h.messagesOf(r.ID)[0])
	look := h.clickOn(lead, "", r.ID)
	h.reveal(lead, look)
	h.reveal(lead, look) // the delivery was repeated
	if got := h.revealedTo(r.ID); len(got) != 1 || got[0] != lead.ID {
		t.Errorf("recorded: %v", got)
	}
	if s := h.message(card.ID); s.State != store.OutboxWanted {
		t.Errorf("its card is %s", s.State)
	}
	if got := h.request(r.ID); got.MustReveal(h.policy.Load(), lead.ID) || !got.MustReveal(h.policy.Load(), fin1.ID) {
		t.Errorf("%+v", got.Revealed)
	}
	h.reopen()
	h.approve(lead, r.ID)
	h.invariants()
}

// If the arguments are edited before the reveal of the old arguments is stored, the audit still gets a record of the
// reveal. Before an approval, the person must also reveal the new arguments.
func TestRevealOfOldArguments(t *testing.T) {
	h := newHarness(t)
	h.masks()
	r := h.ask(`issue_refund {"amount":600,"iban":"DE02 1234"}`)
	look := h.clickOn(lead, "", r.ID)
	other := h.clickOn(fin1, "", r.ID)
	h.reveal(lead, look)
	h.change(lead, r.ID, `{"amount":601,"iban":"DE02 1234"}`)
	h.reveal(fin1, other)
	if got := h.revealedTo(r.ID); len(got) != 2 {
		t.Errorf("recorded: %v", got)
	}
	if got := h.request(r.ID); got.MustReveal(h.policy.Load(), lead.ID) || !got.MustReveal(h.policy.Load(), fin1.ID) {
		t.Errorf("%+v", got.Revealed)
	}
	h.invariants()
}

// If a stored request has a reveal for which there is no audit record, the call is voided.
func TestAForgedReveal(t *testing.T) {
	h := newHarness(t)
	h.masks()
	r := h.ask(`issue_refund {"amount":600,"iban":"DE02 1234"}`)
	h.tamper(r.ID, func(r *approvers.Request) {
		r.Revealed = []approvers.Reveal{{By: lead.ID, Digest: r.Digest, Secrets: []string{"iban"}}}
	})
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
	if got := h.wantState(r.ID, approvers.Voided); !strings.Contains(got.Reason, "without a record") {
		t.Errorf("%v: %s", err, got.Reason)
	}
}

// A call with masked values has its own card, because a person must reveal the values before approving the call. If the
// policy lets people approve calls without seeing their masked values, the calls may share a card.
func TestMaskedCallsHaveTheirOwnCards(t *testing.T) {
	h := newHarness(t)
	h.masks()
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2,"iban":"DE02 1"}`, `issue_refund {"amount":3}`)
	if got, want := h.cards(rs...), "role:team-lead [{\"amount\":1} {\"amount\":3}]\nrole:team-lead {\"amount\":2,\"iban\":\"DE02 1\"}"; got != want {
		t.Errorf("cards\n%s\nwant\n%s", got, want)
	}
	h = newHarness(t)
	h.masks(func(p *approvers.ToolPolicy) { p.Blind = true })
	rs = h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2,"iban":"DE02 1"}`)
	if got, want := h.cards(rs...), "role:team-lead [{\"amount\":1} {\"amount\":2,\"iban\":\"DE02 1\"}]"; got != want {
		t.Errorf("cards\n%s\nwant\n%s", got, want)
	}
}

// If a new policy masks values of calls that share a card, these calls can't be approved together.
func TestApproveAllOfMaskedCalls(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2,"iban":"DE02 1"}`)
	h.masks()
	inTheWay, err := h.decideAll(lead, approvers.Approve, h.offer(rs[0].Turn))
	var denied *approvers.Denied
	if !errors.As(err, &denied) || denied.Code != approvers.DeniedMasked || inTheWay.ID != rs[1].ID {
		t.Errorf("%s: %v", inTheWay.ID, err)
	}
	for _, r := range rs {
		h.wantState(r.ID, approvers.Pending)
	}
}
