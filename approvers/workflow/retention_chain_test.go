package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// monthly sets a policy that keeps conversations and audit records for 30 days.
func monthly(h *harness, also ...func(*approvers.Policy)) {
	h.policy.Store(policy("policy-1", append(also, func(p *approvers.Policy) {
		p.Retention = approvers.Retention{Conversations: 30 * aDay, Records: 30 * aDay}
	})...))
}

// h.weeks lets weeks pass. In each week, somebody writes in the conversation.
func (h *harness) weeks(n int) {
	h.t.Helper()
	for range n {
		h.clock.pass(7 * aDay)
		h.answer(h.say(alice, "hello again").Turn)
	}
}

// The conversation of an old request is still in use. The request's audit chain stays with the request, so a late click
// is recorded in the chain, and the call's texts can be erased.
func TestRetentionKeepsTheChainsOfStoredRequests(t *testing.T) {
	h := newHarness(t)
	monthly(h)
	r := h.ask(`issue_refund {"amount":5}`)
	old := h.clickOn(lead, approvers.Approve, r.ID)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	h.weeks(5)
	h.retain(0, 0)
	_, err := h.Requests.Decide(h.ctx(), old)
	wantDenied(t, err, approvers.DeniedResolved)
	h.wantKinds(r.ID, "proposed decided closed returned denied")
	h.verifies(newSealKey(t, "retention"))
	_, err = retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("ann"), "asked for")
	h.ok(err)
	if args := h.request(r.ID).Args; string(args) != "{}" {
		t.Errorf("the arguments are %s", args)
	}
	h.clock.pass(31 * aDay)
	if done := h.retain(1, 1); done.Records != 6 {
		t.Errorf("removed %+v", done)
	}
	h.turns = nil
}

// The history of a run with an unknown outcome stays until a person reports the outcome, whether or not people were
// asked for the run.
func TestRetentionKeepsTheChainsOfUnknownRuns(t *testing.T) {
	for name, spec := range map[string]string{"approved": `issue_refund {"amount":5}`, "automatic": `update_address {"a":1}`} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			keeping(h)
			c := h.propose(h.say(alice, "please").Turn, spec)[0]
			if c.Request != "" {
				h.approve(lead, c.Request)
			}
			_, _, err := h.Runs.Claim(h.ctx(), c.Execution)
			h.ok(err)
			h.ok(h.Runs.MarkUnknown(h.ctx(), c.Execution))
			h.clock.pass(expiresAfter)
			h.due()
			h.answer(c.Turn)
			h.clock.pass(4 * 365 * aDay)
			h.retain(0, 0)
			who := lead
			if c.Request == "" {
				who = alice
			}
			h.ok(h.reports(who, c.Execution, workflow.Happened))
			h.verifies(newSealKey(t, "retention"))
			h.clock.pass(4 * 365 * aDay)
			h.retain(1, 1)
			h.turns = nil
		})
	}
}

// Somebody asked again for a call with an unknown outcome. The first run is still unknown, so its conversation stays.
func TestRetentionKeepsTheFirstUnknownRun(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	c := h.lost(`issue_refund {"amount":5}`, lead)
	h.ok(h.again(lead, c.Execution))
	h.reject(lead, h.call(c.ID).Request)
	h.answer(c.Turn)
	h.clock.pass(91 * aDay)
	h.retain(0, 0)
	h.ok(h.reports(lead, c.Execution, workflow.Happened))
	h.retain(1, 0)
	h.turns = nil
}

// Earlier programs deleted the chain of an ended request that was still stored. Later records then began the chain anew.
// Verification accepts this chain, because the history records that the chain was pruned. The texts of the call can be
// erased.
func TestChainsThatWerePrunedTooEarly(t *testing.T) {
	h := newBareHarness(t, t.TempDir())
	r := h.ask(`issue_refund {"amount":5}`)
	old := h.clickOn(lead, approvers.Approve, r.ID)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	h.ok(h.Update(h.ctx(), "prune", func(t workflow.Tx) error {
		head, err := t.AuditHead(r.ID)
		if err != nil {
			return err
		}
		n, err := t.PruneChain(r.ID)
		if err != nil {
			return err
		}
		return t.WriteAudit(approvers.InstallationChain, approvers.AuditPruned, "", approvers.Pruning{Chain: r.ID, Records: uint64(n), Head: head.Hash}.Facts(), nil)
	}))
	_, err := h.Requests.Decide(h.ctx(), old)
	wantDenied(t, err, approvers.DeniedResolved)
	h.wantKinds(r.ID, "denied")
	h.verifies(newSealKey(t, "retention"))
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		_, err := tx.PruneChain(r.ID)
		return err
	}))
	_, err = retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("ann"), "asked for")
	h.ok(err)
	if args := h.request(r.ID).Args; string(args) != "{}" {
		t.Errorf("the arguments are %s", args)
	}
	_, err = retention.Erase(h.ctx(), h.Workflow, "req_none", approvers.Operator("ann"), "asked for")
	if store.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("an unknown request: %v", err)
	}
}

// A streak of approved calls has values of their arguments. The streak ends if the texts of such a call are erased, and
// if retention erases the conversation of its last call.
func TestStreaksAreErased(t *testing.T) {
	streak := func(t *testing.T) (*harness, approvers.Request) {
		h := newHarness(t)
		monthly(h, granting, func(p *approvers.Policy) { p.Tools[3].Grants.Same = []string{"customer"} })
		r := h.ask(`issue_refund {"amount":5,"customer":"maria@example.com"}`)
		h.approve(lead, r.ID)
		h.run(r.Execution, "done")
		h.answer(r.Turn)
		if h.streak() != 1 {
			t.Fatalf("the streak is %d", h.streak())
		}
		return h, r
	}
	t.Run("on request", func(t *testing.T) {
		h, r := streak(t)
		_, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("ann"), "asked for")
		h.ok(err)
		if found := h.rowsWith("maria@example.com"); found[store.PartSettings] != 0 || h.streak() != 0 {
			t.Errorf("still in %v", found)
		}
	})
	t.Run("by age", func(t *testing.T) {
		h, r := streak(t)
		h.clock.pass(31 * aDay)
		h.retain(1, 1)
		if found := h.rowsWith("maria@example.com"); len(found) > 0 || h.streak() != 0 {
			t.Errorf("still in %v", found)
		}
		h.turns, _ = nil, r
	})
	t.Run("a later call", func(t *testing.T) {
		h, _ := streak(t)
		h.clock.pass(20 * aDay)
		r := h.requestIn(h.sayIn("700.1", alice, "please").Turn, `issue_refund {"amount":4,"customer":"maria@example.com"}`)
		h.approve(lead, r.ID)
		h.run(r.Execution, "done")
		h.answer(r.Turn)
		h.clock.pass(11 * aDay)
		h.retain(1, 1)
		if h.streak() != 2 {
			t.Errorf("the streak is %d", h.streak())
		}
		h.turns = nil
	})
}

// A clock that is years ahead for some minutes erases at most the data of one more day. After a stop of the bot for
// months, the rounds of retention catch up, one day a round.
func TestRetentionWithAWrongClock(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	r := h.ask(`issue_refund {"amount":5}`)
	h.approve(lead, r.ID)
	h.run(r.Execution, "refunded")
	h.answer(r.Turn)
	round := func() int {
		t.Helper()
		done, err := retention.Round(h.ctx(), h.Workflow)
		h.ok(err)
		return done.Conversations
	}
	round()
	h.clock.pass(5 * 365 * aDay)
	if n := round(); n != 0 || !h.hasConversation(r.Conversation) || h.kinds(r.ID) == "" {
		t.Fatalf("a wrong clock erased %d conversations", n)
	}
	h.clock.pass(-5 * 365 * aDay)
	round()
	h.clock.pass(95 * aDay)
	rounds, erased := 0, 0
	for ; erased == 0 && rounds < 200; rounds++ {
		erased = round()
	}
	if erased != 1 || rounds != 91 {
		t.Errorf("%d conversations were erased after %d rounds", erased, rounds)
	}
	for range 4 {
		round()
	}
	h.clock.pass(6 * time.Hour)
	round()
	if at := readStore(h, func(r store.Reader) (time.Time, error) {
		last, _, err := settings.ReadRetention(r)
		return last.At, err
	}); !at.Equal(h.clock.Now()) {
		t.Errorf("the last round was for %s, and the clock says %s", at, h.clock.Now())
	}
	h.turns = nil
}

// Retention is off for months, while the bot runs. The first round after it is switched on again erases all old data.
func TestRetentionSwitchedOnAgain(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	round := func(erased int) {
		t.Helper()
		done, err := retention.Round(h.ctx(), h.Workflow)
		h.ok(err)
		if done.Conversations != erased {
			t.Errorf("%d conversations were erased; want %d", done.Conversations, erased)
		}
	}
	round(0)
	h.policy.Store(policy("policy-2"))
	for i := range 5 {
		r := h.requestIn(h.sayIn(fmt.Sprintf("%d00.1", i+1), alice, "please").Turn, `issue_refund {"amount":5}`)
		h.reject(lead, r.ID)
		h.answer(r.Turn)
		h.clock.pass(60 * aDay)
		round(0)
	}
	keeping(h)
	h.clock.pass(6 * time.Hour)
	round(4)
	round(0)
	h.turns = nil // most turns are erased, and the invariants are checked only for existing turns
}
