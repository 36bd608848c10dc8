package workflow_test

import (
	"errors"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/internal/testkit"
	"countersign/store"
)

// A conversation never ends. Its old turns are erased, with their calls and texts. Later, the chains of the calls are
// deleted. The model no longer gets the old messages, a click on an old card is refused, and the history still
// verifies.
func TestRetentionOfTurns(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	onEachStore(t, func(t *testing.T, h *harness) {
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Retention = approvers.Retention{Conversations: 30 * aDay, Records: 60 * aDay}
		}))
		key := newSealKey(t, "retention")
		r := h.requestIn(h.say(alice, "refund Roswell").Turn, `issue_refund {"amount":5,"customer":"Roswell"}`)
		h.approve(lead, r.ID)
		h.run(r.Execution, "Roswell has the money")
		h.answer(r.Turn)
		unknown := h.lost(`issue_refund {"amount":6}`, lead)
		h.clock.pass(expiresAfter)
		h.due()
		h.answer(unknown.Turn)
		h.weeks(4)
		if done := h.retain(0, 0); done.Turns != 0 {
			t.Fatalf("erased %+v before the time", done)
		}
		if len(h.rowsWith("Roswell")) == 0 {
			t.Fatal("there is nothing to erase")
		}

		h.weeks(1)
		if done := h.retain(0, 0); done.Turns != 1 {
			t.Errorf("erased %+v", done)
		}
		h.turns = h.turns[1:]
		if found := h.rowsWith("Roswell"); len(found) > 0 || len(h.messagesOf(r.ID)) > 0 {
			t.Errorf("the words are still in %v", found)
		}
		h.wantKinds(r.ID, "proposed decided approved executing executed returned erased")
		if state := h.execution(unknown.Execution).State; state != approvers.ExecutionUnknown {
			t.Errorf("the unknown run is %s", state)
		}
		click := workflow.Click{
			Inbox: h.id("click"), At: h.clock.Now(), Who: lead, Request: r.ID, Kind: approvers.Approve, Digest: r.Digest, Stage: approvers.StageDigest(r), Whole: true,
			Rendering: "rendering", Channel: "C0002", MessageTS: "200.1",
		}
		h.receive(click)
		_, err := h.Requests.Decide(h.ctx(), click)
		wantDenied(t, err, approvers.DeniedNotFound)
		h.ok(h.store.Check(h.ctx()))
		h.verifies(key)
		b := h.begin(h.say(alice, "what now?").Turn)
		var texts []string
		for _, m := range b.Messages {
			texts = append(texts, m.Text)
		}
		if context := strings.Join(texts, "\n"); strings.Contains(context, "Roswell") || !strings.Contains(context, "hello again") || !strings.Contains(context, "what now?") {
			t.Errorf("the model gets %q", context)
		}
		h.answer(b.Turn.ID)

		h.weeks(5) // the turns of the earlier weeks are old, too
		h.ok(h.reports(lead, unknown.Execution, workflow.Happened))
		h.retain(0, 1)
		h.wantKinds(r.ID, "")
		if h.payloadsOf(unknown.Request) == 0 {
			t.Error("a run whose outcome was just reported has lost its texts")
		}
		h.ok(h.store.Check(h.ctx()))
		h.verifies(key)
		h.turns = nil
		h.ok(h.faults())
	})
}

// An old turn with a damaged record stays, and the turns of other conversations are erased.
func TestRetentionOfTurnsPassesDamage(t *testing.T) {
	h := newHarness(t)
	monthly(h)
	var rs []approvers.Request
	for _, thread := range []string{"100.1", "200.1"} {
		r := h.requestIn(h.sayIn(thread, alice, "please").Turn, `issue_refund {"amount":5}`)
		h.reject(lead, r.ID)
		h.answer(r.Turn)
		rs = append(rs, r)
	}
	h.clock.pass(31 * aDay)
	for _, thread := range []string{"100.1", "200.1"} {
		h.answer(h.sayIn(thread, alice, "once more").Turn)
	}
	h.Store = &tornStore{Store: h.store, bad: map[string]bool{"turns " + rs[0].Turn: true}}
	done, err := retention.Enforce(h.ctx(), h.Workflow)
	if done.Turns != 1 || !store.OnlyDamaged(err) {
		t.Errorf("erased %+v, %v", done, err)
	}
	h.Store = h.store
	for i, r := range rs {
		stored := readStore(h, func(s store.Reader) (bool, error) {
			_, err := s.Turn(r.Turn)
			return err == nil, store.IgnoreNotFound(err)
		})
		if stored != (i == 0) {
			t.Errorf("turn %d is stored: %v", i, stored)
		}
	}
	h.turns = nil
}

// While a grant is in force, the turn with the grant's card and the turns with runs under the grant stay.
func TestRetentionKeepsRunsOfOpenGrants(t *testing.T) {
	h := newHarness(t)
	monthly(h, granting, func(p *approvers.Policy) { p.Tools[3].Grants.Within = 300 * aDay })
	r := h.ask(oneRefund)
	h.grantMore(lead, r.ID, 2, 200*aDay)
	h.run(r.Execution, "RF-1")
	h.answer(r.Turn)
	c := h.next(oneRefund)
	h.run(c.Execution, "RF-2")
	h.answer(c.Turn)
	h.answer(h.say(alice, "thanks").Turn)
	h.turns = h.turns[:2]
	h.clock.pass(31 * aDay)
	h.answer(h.say(alice, "hello again").Turn)
	if done, err := retention.Enforce(h.ctx(), h.Workflow); err != nil || done.Turns != 1 {
		t.Errorf("erased %+v, %v", done, err)
	}
	if state := h.execution(c.Execution).State; state != approvers.ExecutionSucceeded {
		t.Errorf("the run is %s", state)
	}
	h.ok(h.faults())
}

// A grant is used up by two runs. Retention erases the older run first, and the grant stays with the younger run.
func TestRetentionOfSomeRunsOfGrant(t *testing.T) {
	h := newHarness(t)
	monthly(h, granting, func(p *approvers.Policy) { p.Tools[3].Grants.Within = 300 * aDay })
	r := h.ask(oneRefund)
	g := h.grantMore(lead, r.ID, 2, 200*aDay)
	h.run(r.Execution, "RF-1")
	h.answer(r.Turn)
	var runs []string
	for range 2 {
		c := h.next(oneRefund)
		h.run(c.Execution, "RF")
		h.answer(c.Turn)
		runs = append(runs, c.Execution)
		h.clock.pass(20 * aDay)
	}
	h.turns = h.turns[2:]
	if done, err := retention.Enforce(h.ctx(), h.Workflow); err != nil || done.Turns != 2 || done.Grants != 0 {
		t.Errorf("erased %+v, %v", done, err)
	}
	gone := readStore(h, func(s store.Reader) (bool, error) {
		_, err := s.Execution(runs[0])
		return errors.Is(err, store.ErrNotFound), store.IgnoreNotFound(err)
	})
	if !gone || !h.hasGrant(g.ID) || h.execution(runs[1]).State != approvers.ExecutionSucceeded {
		t.Error("retention has not erased the older run alone")
	}
	h.ok(h.faults())
}

// Retention has erased most messages of a long conversation. The model gets the oldest turn that is left, because no
// message of this turn is missing.
func TestContextAfterRetention(t *testing.T) {
	h := newHarness(t)
	first := h.say(alice, "hello")
	h.answer(first.Turn)
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { // as if the messages up to the 5000th were erased
		_, err := tx.EraseTurn(store.TurnRecords{ID: first.Turn, Messages: []uint64{1, 2}}, 100)
		conv, err2 := tx.Conversation(first.Conversation)
		conv.Messages = 5000
		return errors.Join(err, err2, tx.PutConversation(conv))
	}))
	h.turns = nil
	h.answer(h.say(alice, "the oldest that is left").Turn)
	if b := h.begin(h.say(alice, "and now?").Turn); len(b.Messages) != 3 || b.Messages[0].Text != "the oldest that is left" {
		t.Errorf("the model gets %+v", b.Messages)
	}
}
