package workflow_test

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// refuse lets Slack refuse every waiting message of a request, until no message waits.
func (h *harness) refuse(request string, members ...string) {
	h.t.Helper()
	for waits := true; waits; {
		waits = false
		for _, s := range h.messagesOf(request) {
			if s.State != store.OutboxWanted {
				continue
			}
			waits = true
			if strings.HasPrefix(s.To, store.ToRole) {
				h.ok(h.Outbox.Expand(h.ctx(), s.ID, members))
				continue
			}
			h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "conversations.open: missing_scope: im:write", ""))
		}
	}
}

// noLead is a policy without a lead above the team lead.
func noLead(p *approvers.Policy) {
	for i := range p.Approvers {
		p.Approvers[i].Lead = ""
	}
}

// TestNobodyCanSeeTheCard: the request immediately records that nobody can see its card. The bot tries the card again
// after growing pauses. When the request expires, the reason names the cause.
func TestNobodyCanSeeTheCard(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead))
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	if got := h.request(r.ID); !got.ReachesNobody() || got.Unreached.Cause != "conversations.open: missing_scope: im:write" {
		t.Fatalf("unreached: %+v", got.Unreached)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		h.clock.pass(pause - time.Second)
		h.due()
		if got := h.where(r.ID); got != "" {
			t.Fatalf("%d: tried too early: %s", i, got)
		}
		h.clock.pass(time.Second)
		h.due()
		if got := h.where(r.ID); got == "" {
			t.Fatalf("%d: not tried again", i)
		}
		h.refuse(r.ID, lead.ID.User())
	}
	h.clock.pass(r.ExpiresAt.Sub(h.clock.Now()))
	h.due()
	if got := h.request(r.ID); got.State != approvers.Expired || got.Reason != "its card reached nobody (conversations.open: missing_scope: im:write)" {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
	h.clock.pass(expiresAfter)
	h.due()
	if timers := h.timers(store.TimerRepost); len(timers) != 0 {
		t.Errorf("%d timers are left", len(timers))
	}
}

// TestACardThatIsShownAgain checks that a request no longer counts as unseen when Slack finally shows its card. If the
// request then expires, the reason is that nobody decided.
func TestACardThatIsShownAgain(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead))
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	h.ok(h.Outbox.RetryUnreached(h.ctx()))
	for _, s := range h.messagesOf(r.ID) {
		if s.State == store.OutboxWanted {
			s.Channel, s.TS = "C-support", s.ID
			h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
		}
	}
	if got := h.request(r.ID); got.ReachesNobody() {
		t.Errorf("unreached: %+v", got.Unreached)
	}
	h.clock.pass(r.ExpiresAt.Sub(h.clock.Now()))
	h.due()
	if got := h.request(r.ID); got.Reason != "nobody decided in time" {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
}

// TestRetriesOutOfTurn: an answer is tried early because the cause may be gone. This try does not change the pauses
// between later tries.
func TestRetriesOutOfTurn(t *testing.T) {
	h := newHarness(t)
	said := h.say(alice, "one")
	h.answer(said.Turn)
	refuse := func() (answer string) {
		t.Helper()
		for waits := true; waits; {
			waits = false
			for _, s := range h.messagesOf(said.Turn) {
				if s.State == store.OutboxWanted {
					waits, answer = true, s.ID
					h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "chat.postMessage: msg_too_long", ""))
				}
			}
		}
		return answer
	}
	for range 4 {
		answer := refuse()
		if timer := h.timers(store.TimerRepost)[answer]; timer.Due.Sub(h.clock.Now()) != 10*time.Minute {
			t.Fatalf("it is tried again in %s", timer.Due.Sub(h.clock.Now()))
		}
		h.clock.pass(time.Minute)
		h.ok(h.Outbox.RetryUnreached(h.ctx()))
	}
}

// TestTheLeadIfNobodyCanSeeTheCard: the lead is asked immediately, and not after escalate_after.
func TestTheLeadIfNobodyCanSeeTheCard(t *testing.T) {
	h := newHarness(t)
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	h.due()
	got := h.request(r.ID)
	if len(got.Joined) != 1 || !got.Unreached.Added(got, got.Joined[0]) {
		t.Fatalf("joined: %v", got.Joined)
	}
	h.refuse(r.ID, fin1.ID.User())
	if got := h.request(r.ID); !got.ReachesNobody() || !got.Unreached.Added(got, got.Joined[0]) {
		t.Errorf("unreached: %+v", got.Unreached)
	}
}

// TestARefusedQuestionIsAskedLater: Slack refuses a question in the thread and by direct message. The bot tries to post
// it again as long as people can answer the question.
func TestARefusedQuestionIsAskedLater(t *testing.T) {
	h := newHarness(t)
	_, c := h.askPeople()
	h.refuse(c.ID)
	if got := h.where(c.ID); got != "" {
		t.Fatalf("it is shown: %s", got)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		h.clock.pass(pause - time.Second)
		h.due()
		if got := h.where(c.ID); got != "" {
			t.Fatalf("%d: tried too early: %s", i, got)
		}
		h.clock.pass(time.Second)
		h.due()
		if got := h.where(c.ID); got != "inquiry user:"+alice.ID.User() {
			t.Fatalf("%d: not tried again: %q", i, got)
		}
		h.refuse(c.ID)
	}
	h.ok(h.Questions.Answer(h.ctx(), workflow.Click{At: h.clock.Now(), Who: alice, Call: c.ID}, 0))
	h.clock.pass(time.Hour)
	h.due()
	h.ok(h.Outbox.RetryUnreached(h.ctx()))
	if got, timers := h.where(c.ID), h.timers(store.TimerRepost); got != "" || len(timers) != 0 {
		t.Errorf("after the answer: shown %q, %d timers", got, len(timers))
	}
}
