package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// h.ran makes alice ask for a refund, which lead approves unchanged, and runs the call.
func (h *harness) ran(amount int) approvers.Request {
	h.t.Helper()
	r := h.ask(fmt.Sprintf(`issue_refund {"amount":%d,"currency":"USD"}`, amount))
	h.approve(lead, r.ID)
	h.run(r.Execution, "RF")
	h.answer(r.Turn)
	return r
}

// h.streak returns the number of consecutive calls to issue_refund that were approved unchanged.
func (h *harness) streak() int {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (int, error) {
		var trust approvers.Trust
		s, err := r.Setting(store.SettingTrust + "support/issue_refund")
		if errors.Is(err, store.ErrNotFound) {
			return 0, nil
		}
		if err == nil {
			err = json.Unmarshal(s.Value, &trust)
		}
		return trust.Row, err
	})
}

func trusting(t *testing.T) *harness {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	return h
}

// TestAGrantIsOffered checks that the bot offers a grant after three consecutive calls to a tool were approved
// unchanged. The offer goes to the lead of the approving role. Calls run under the grant only after the lead has
// accepted the offer.
func TestAGrantIsOffered(t *testing.T) {
	h := trusting(t)
	for _, amount := range []int{20, 120, 3} {
		if len(h.grants()) != 0 {
			t.Fatal("offered too early")
		}
		h.ran(amount)
	}
	g := h.grants()[0]
	if g.State != approvers.GrantOffered || g.OfferedTo != "finance-director" || g.Row != 3 || string(g.Bounds[0].AtMost) != "120" || g.Conversation != "" {
		t.Errorf("%+v", g)
	}
	if got := h.wanted(g.ID); got != "grant role:finance-director" || h.streak() != 0 {
		t.Errorf("shown: %s; the streak is %d", got, h.streak())
	}
	r := h.wantAsked(h.next(`issue_refund {"amount":1,"currency":"USD"}`))
	h.reject(lead, r.ID)
	h.answer(r.Turn)

	_, err := h.Grants.Accept(h.ctx(), h.clickGrant(lead, g.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	h.clock.pass(time.Hour)
	_, err = h.Grants.Accept(h.ctx(), h.clickGrant(fin1, g.ID))
	h.ok(err)
	_, err = h.Grants.Decline(h.ctx(), h.clickGrant(fin2, g.ID))
	wantDenied(t, err, approvers.DeniedResolved)
	c := h.propose(h.sayIn("900.1", bob, "and one for me").Turn, `issue_refund {"amount":120,"currency":"USD"}`)[0]
	h.run(c.Execution, "RF")
	if e := h.execution(c.Execution); e.Grant != g.ID || h.streak() != 0 {
		t.Errorf("ran under %q; the streak is %d", e.Grant, h.streak())
	}
	h.wantKinds("grant:"+g.ID, "granted denied granted denied granted")
	h.clock.pass(time.Hour)
	h.due()
	if g = h.grant(g.ID); g.State != approvers.GrantExpired || g.Left != 4 {
		t.Errorf("%s with %d left", g.State, g.Left)
	}
}

// TestAnOfferLapses checks that an offer lapses after a day. An answer that arrived within the day counts, even if the
// answer is handled later.
func TestAnOfferLapses(t *testing.T) {
	h := trusting(t)
	for range 3 {
		h.ran(20)
	}
	g := h.grants()[0]
	h.clock.pass(approvers.OfferHolds - time.Minute)
	click := h.clickGrant(fin1, g.ID)
	h.clock.pass(2 * time.Minute)
	h.ok(h.Grants.Lapse(h.ctx(), h.timers(store.TimerGrant)[g.ID]))
	if g := h.grant(g.ID); g.State != approvers.GrantOffered {
		t.Fatalf("%s before the click was handled", g.State)
	}
	_, err := h.Grants.Accept(h.ctx(), click)
	h.ok(err)
	if g = h.grant(g.ID); g.State != approvers.GrantLive || g.Until != h.clock.Now().Add(time.Hour) {
		t.Errorf("%s until %s", g.State, g.Until)
	}
	h.revokeGrant(fin2, g.ID)
	for range 3 {
		h.ran(20)
	}
	g = h.grants()[0]
	h.clock.pass(approvers.OfferHolds)
	h.due()
	if g = h.grant(g.ID); g.State != approvers.GrantExpired {
		t.Errorf("%s after a day", g.State)
	}
	_, err = h.Grants.Accept(h.ctx(), h.clickGrant(fin1, g.ID))
	wantDenied(t, err, approvers.DeniedResolved)
}

// TestOneOfferAtATime checks that the bot makes no second offer while an offer is open. After the offer was declined,
// the bot makes another offer.
func TestOneOfferAtATime(t *testing.T) {
	h := trusting(t)
	for range 7 {
		h.ran(20)
	}
	if n := len(h.grants()); n != 1 {
		t.Errorf("%d offers", n)
	}
	_, err := h.Grants.Decline(h.ctx(), h.clickGrant(fin1, h.grants()[0].ID))
	h.ok(err)
	for range 2 {
		h.ran(20)
	}
	if n := len(h.grants()); n != 1 {
		t.Errorf("%d offers after one was declined", n)
	}
}

// TestWhatEndsTheStreak lists events that end a tool's streak of unchanged approvals, and events that do not end it. An
// event ends the streak if it shows that a person must check the calls.
func TestWhatEndsTheStreak(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		do  func(h *harness)
		row int
	}{
		"a rejection": {do: func(h *harness) { h.reject(lead, h.ask(oneRefund).ID) }},
		"a change": {do: func(h *harness) {
			r := h.ask(oneRefund)
			_, err := h.Requests.Decide(h.ctx(), h.edit(lead, r.ID, `{"amount":10,"currency":"USD"}`))
			h.ok(err)
			h.run(h.request(r.ID).Execution, "RF")
		}},
		"an approval taken back": {do: func(h *harness) {
			r := h.ask(oneRefund)
			h.approve(lead, r.ID)
			_, err := h.Requests.Revoke(h.ctx(), h.clickOn(lead, "", r.ID))
			h.ok(err)
		}},
		"a failure": {do: func(h *harness) {
			r := h.ask(oneRefund)
			h.approve(lead, r.ID)
			_, _, err := h.Runs.Claim(h.ctx(), r.Execution)
			h.ok(err)
			h.ok(h.Runs.Finish(h.ctx(), r.Execution, false, "no"))
		}},
		"an unknown outcome, although it happened": {do: func(h *harness) {
			r := h.ask(oneRefund)
			h.approve(lead, r.ID)
			_, _, err := h.Runs.Claim(h.ctx(), r.Execution)
			h.ok(err)
			h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
			click := h.clickOn(lead, "", r.ID)
			click.Execution = r.Execution
			h.ok(h.Runs.Report(h.ctx(), click, workflow.Happened))
		}},
		"silence does not":    {row: 2, do: func(h *harness) { h.ask(oneRefund); h.clock.pass(expiresAfter); h.due() }},
		"withdrawal does not": {row: 2, do: func(h *harness) { h.withdraw(h.ask(oneRefund).ID) }},
		"another tool does not": {row: 2, do: func(h *harness) {
			h.reject(support, h.ask(`apply_discount {}`).ID)
		}},
		"another definition begins one": {row: 1, do: func(h *harness) {
			h.tools.change("issue_refund", func(t *workflow.Tool) { t.Hash = "another" })
			h.ran(20)
		}},
		"other terms begin one": {row: 1, do: func(h *harness) {
			h.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Tools[3].Grants.Uses = 4 }))
			h.ran(20)
		}},
		"a call that needed more stages does not": {row: 2, do: func(h *harness) {
			r := h.ask(`issue_refund {"amount":900,"currency":"USD"}`)
			for _, who := range []approvers.Identity{lead, fin1, fin2} {
				h.approve(who, r.ID)
			}
			h.run(r.Execution, "RF")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := trusting(t)
			h.ran(20)
			h.ran(20)
			c.do(h)
			if got := h.streak(); got != c.row || len(h.grants()) != 0 {
				t.Errorf("a streak of %d, %d offers; want %d", got, len(h.grants()), c.row)
			}
		})
	}
}

// TestARunUnderAGrantEarnsNothing checks that a successful run under a grant does not extend the streak of approved
// calls, because nobody approved the run. A failed run under a grant ends the streak.
func TestARunUnderAGrantEarnsNothing(t *testing.T) {
	h := trusting(t)
	h.granted(3)
	c := h.next(oneRefund)
	h.run(c.Execution, "RF")
	h.answer(c.Turn)
	if h.streak() != 1 {
		t.Errorf("a streak of %d; want the one that was approved", h.streak())
	}
	c = h.next(oneRefund)
	_, _, err := h.Runs.Claim(h.ctx(), c.Execution)
	h.ok(err)
	h.ok(h.Runs.Finish(h.ctx(), c.Execution, false, "no"))
	if h.streak() != 0 {
		t.Errorf("a streak of %d after a failure", h.streak())
	}
}
