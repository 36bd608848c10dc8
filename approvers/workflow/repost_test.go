package workflow_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// h.loses delivers Slack's event about the deletion of an outbox message.
func (h *harness) loses(s store.OutboxMessage) store.OutboxMessage {
	h.t.Helper()
	h.erase(workflow.IncomingMessage{Team: "T0001", Channel: approvers.ChannelRef{Channel: s.Channel}, TS: s.TS}, false)
	return h.message(s.ID)
}

// showThese delivers all waiting outbox messages of some refs, as the bot does.
func (h *harness) showThese(refs ...string) {
	h.t.Helper()
	for _, ref := range refs {
		for _, s := range h.messagesOf(ref) {
			if s.State == store.OutboxWanted {
				h.n++
				h.show(s)
			}
		}
	}
}

// TestDeletedCards checks when a deleted card is posted again: when somebody writes in a thread about it, when the lead
// is asked, and when a quarter of the request's time is left.
func TestDeletedCards(t *testing.T) {
	for name, ask := range map[string]func(*harness, approvers.Request, store.OutboxMessage){
		"somebody writes in the asker's thread": func(h *harness, _ approvers.Request, _ store.OutboxMessage) { h.say(bob, "hello?") },
		"somebody writes under the card": func(h *harness, _ approvers.Request, was store.OutboxMessage) {
			h.hear(workflow.IncomingMessage{Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", Thread: was.TS, TS: h.id("ts"), Who: support, Text: "where is it?", Channel: approvers.ChannelRef{Channel: was.Channel}})
		},
		"the lead is told": func(h *harness, _ approvers.Request, _ store.OutboxMessage) {
			h.clock.pass(escalateAfter)
			h.due()
		},
		"a quarter of its time is left": func(h *harness, r approvers.Request, _ store.OutboxMessage) {
			h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[0].Lead = "" }))
			h.clock.pass(expiresAfter*3/4 - time.Second)
			h.due()
			if s := h.only(r.ID, store.OutboxCard); s.State != store.OutboxLost {
				h.t.Errorf("before its time it is %s", s.State)
			}
			h.clock.pass(time.Second)
			h.due()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			r := h.ask(`apply_discount {}`)
			card := h.show(h.only(r.ID, store.OutboxCard))
			h.showThese(r.Turn)
			gone := h.loses(card)
			if gone.State != store.OutboxLost || len(h.timers(store.TimerRepost)) != 1 {
				t.Fatalf("it is %s, with %d timers", gone.State, len(h.timers(store.TimerRepost)))
			}
			if got := h.loses(card); !reflect.DeepEqual(got, gone) {
				t.Errorf("after a second report of the deletion: %+v", got)
			}
			h.ok(h.Outbox.MarkLost(h.ctx(), card)) // the bot also notices the deletion when it updates the card
			if vm, err := h.Views.Message(h.ctx(), h.only(r.Turn, store.OutboxStep).ID); err != nil || len(vm.Calls[0].Cards) != 0 {
				t.Errorf("a link leads to a card that is not there (%v)", err)
			}
			ask(h, r, card)
			back := h.message(card.ID)
			if back.State != store.OutboxWanted || back.TS != "" || back.Round != 1 || len(h.timers(store.TimerRepost)) != 0 {
				t.Fatalf("it is %+v", back)
			}
			h.say(bob, "and now?")
			h.loses(card) // Slack reports the deletion late
			if now := h.message(card.ID); now.Round != 1 || now.State != store.OutboxWanted {
				t.Errorf("it is %+v", now)
			}
			back.Channel, back.TS = card.Channel, "300.1"
			h.ok(h.Outbox.Delivered(h.ctx(), back, h.posted(back)))
			if vm, err := h.Views.Message(h.ctx(), h.only(r.Turn, store.OutboxStep).ID); err != nil || len(vm.Calls[0].Cards) == 0 || h.only(r.Turn, store.OutboxStep).State != store.OutboxWanted {
				t.Errorf("nothing leads to the new card (%v)", err)
			}
		})
	}
}

// TestDeletedCardsOfOthers checks that a deleted card is posted again if other people at the same address must see it,
// even if Slack did not report the deletion.
func TestDeletedCardsOfOthers(t *testing.T) {
	for _, told := range []bool{true, false} {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
			p.Approvers[1].Cards = "#support-approvals"
		}))
		r := h.ask(`apply_discount {}`)
		card := h.show(h.only(r.ID, store.OutboxCard))
		if told {
			h.loses(card)
		}
		h.approve(support, r.ID)
		if !told {
			h.ok(h.Outbox.MarkLost(h.ctx(), h.message(card.ID)))
		}
		if got := h.message(card.ID); got.State != store.OutboxWanted || got.TS != "" {
			t.Errorf("deletion reported: %t; it is %+v", told, got)
		}
	}
}

// TestCardsDeletedRepeatedly checks a card that is deleted each time after the bot has posted it. Before the deadline,
// the bot posts the card again a limited number of times. Then the card stays deleted.
func TestCardsDeletedRepeatedly(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[0].Lead = "" }))
	r := h.ask(`apply_discount {}`)
	start := h.clock.Now()
	var again []time.Duration
	for range 5 {
		card := h.only(r.ID, store.OutboxCard)
		card.Channel, card.TS = "C0002", h.id("ts")
		h.ok(h.Outbox.Delivered(h.ctx(), card, h.posted(card)))
		h.loses(h.message(card.ID))
		timer, ok := h.timers(store.TimerRepost)[card.ID]
		if !ok {
			break
		}
		again = append(again, timer.Due.Sub(start))
		h.clock.pass(timer.Due.Sub(h.clock.Now()))
		h.due()
	}
	if want := []time.Duration{expiresAfter * 3 / 4, expiresAfter * 7 / 8, expiresAfter * 15 / 16}; !slices.Equal(again, want) {
		t.Errorf("posted again after %s; want %s", again, want)
	}
	h.clock.pass(expiresAfter)
	h.due()
	h.wantState(r.ID, approvers.Expired)
	if left := h.timers(store.TimerRepost); len(left) != 0 {
		t.Errorf("%d timers are left", len(left))
	}
}

// TestWhatDoesNotMatterStaysAway checks deleted messages that are not posted again: a decided card, an answer and a
// notice.
func TestWhatDoesNotMatterStaysAway(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	h.show(h.only(r.ID, store.OutboxCard))
	h.showThese(r.Turn)
	h.approve(support, r.ID)
	h.run(r.Execution, "ok")
	h.answer(r.Turn)
	h.showThese(r.ID, r.Turn)
	for _, ref := range []string{r.ID, r.Turn} {
		for _, s := range h.messagesOf(ref) {
			if got := h.loses(s); got.State != store.OutboxRemoved || got.TS != "" {
				t.Errorf("%s is %s", s.Kind, got.State)
			}
		}
	}
	h.say(bob, "hello?")
	if left := len(h.timers(store.TimerShow)) + len(h.timers(store.TimerRepost)); left != 0 {
		t.Errorf("%d things are to be shown", left)
	}
}

// TestDeletedInTheThread checks that deleted messages in the requester's thread are posted again after the next message
// in the thread. The messages are a step, an approver's question, and the question about a run.
func TestDeletedInTheThread(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	r := h.requestIn(turn, `issue_refund {"amount":1}`)
	h.question(lead, r.ID, "Really?")
	h.showThese(r.ID, turn)
	step, question := h.only(turn, store.OutboxStep), h.only(r.ID, store.OutboxQuestion)
	for _, s := range []store.OutboxMessage{step, question} {
		if got := h.loses(s); got.State != store.OutboxLost {
			t.Errorf("%s is %s", s.Kind, got.State)
		}
	}
	h.say(bob, "hello?")
	if a, b := h.message(step.ID), h.message(question.ID); a.State != store.OutboxWanted || b.State != store.OutboxWanted || a.TS+b.TS != "" {
		t.Errorf("they are %s and %s", a.State, b.State)
	}
	h.showThese(r.ID, turn)
	h.approve(lead, r.ID)
	_, _, err := h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	h.showThese(r.ID, turn, r.Execution)
	asks := h.messagesOf(r.Execution)[0]
	if got := h.loses(asks); got.State != store.OutboxLost || len(h.timers(store.TimerRepost)) == 0 {
		t.Errorf("the question about the run is %s", got.State)
	}
	h.say(bob, "and?")
	if got := h.message(asks.ID); got.State != store.OutboxWanted {
		t.Errorf("the question about the run is %s", got.State)
	}
	h.showThese(r.ID, turn, r.Execution)
	h.loses(h.message(asks.ID))
	h.clock.pass(expiresAfter)
	h.due() // the model is told that it is unknown; people may still report
	if got := h.message(asks.ID); got.State != store.OutboxWanted {
		t.Errorf("the question about the run is %s near its deadline", got.State)
	}
	h.answer(turn)
}

// TestTheDeadlineIsPutOff checks a deleted message whose deadline is postponed. The message is posted again shortly
// before the new deadline, and not before the old deadline.
func TestTheDeadlineIsPutOff(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
	}))
	r := h.ask(`apply_discount {}`)
	h.showThese(r.ID, r.Turn)
	step := h.only(r.Turn, store.OutboxStep)
	h.loses(step)
	h.clock.pass(expiresAfter / 2)
	h.approve(support, r.ID)
	h.clock.pass(expiresAfter / 2)
	h.due()
	if got := h.message(step.ID); got.State != store.OutboxLost {
		t.Errorf("half of its new time is left, and it is %s", got.State)
	}
	h.clock.pass(expiresAfter / 4)
	h.due()
	if got := h.message(step.ID); got.State != store.OutboxWanted {
		t.Errorf("a quarter of its new time is left, and it is %s", got.State)
	}
}

// TestDeletedMeanwhile checks that the bot handles a deletion that Slack reports before the post is recorded, or during
// an update. The test also checks a message that the bot posted again because Slack refused to edit it. A late event
// about the old Slack message must not affect the new Slack message.
func TestDeletedMeanwhile(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.only(r.ID, store.OutboxCard)
	card.Channel, card.TS = "C0002", "300.1"
	h.loses(card) // Slack reports the deletion before the delivery is recorded
	h.ok(h.Outbox.Delivered(h.ctx(), card, h.posted(card)))
	if got := h.message(card.ID); got.State != store.OutboxLost || got.Round != 1 {
		t.Fatalf("it is %+v", got)
	}
	h.say(bob, "hello?")
	back := h.message(card.ID)
	back.Channel, back.TS = "C0002", "300.2"
	h.ok(h.Outbox.Delivered(h.ctx(), back, h.posted(back)))
	read := h.message(card.ID)
	h.loses(read)
	h.ok(h.Outbox.Delivered(h.ctx(), read, h.posted(read))) // the answer to an update that was under way
	h.ok(h.Outbox.Unchanged(h.ctx(), read))
	if got := h.message(card.ID); got.State != store.OutboxLost || got.Round != 2 || got.Posts != 3 {
		t.Errorf("it is %+v", got)
	}
	h.say(bob, "hello?")
	back = h.message(card.ID)
	back.Channel, back.TS = "C0002", "300.3"
	h.ok(h.Outbox.Delivered(h.ctx(), back, h.posted(back)))
	h.ok(h.Outbox.Replace(h.ctx(), back))
	h.ok(h.Outbox.Replace(h.ctx(), back))
	if got := h.message(card.ID); got.State != store.OutboxWanted || got.Round != 3 || got.TS != "" {
		t.Errorf("it is %+v", got)
	}
}

// TestReminderFindsOut checks a card whose deletion Slack did not report. The update of the card after an escalation
// detects the deletion, and the bot immediately posts the card again.
func TestReminderFindsOut(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.show(h.only(r.ID, store.OutboxCard))
	h.clock.pass(escalateAfter)
	h.due()
	read := h.message(card.ID)
	if read.State != store.OutboxWanted || !read.RepostIfLost {
		t.Fatalf("it is %+v", read)
	}
	h.ok(h.Outbox.MarkLost(h.ctx(), read))
	if got := h.message(card.ID); got.State != store.OutboxWanted || got.TS != "" || got.RepostIfLost || got.Round != 1 {
		t.Errorf("it is %+v", got)
	}
}
