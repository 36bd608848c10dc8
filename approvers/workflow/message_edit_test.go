package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// h.spoken returns a message of a person in the thread. The ts of the message is the current time.
func (h *harness) spoken(who approvers.Identity, text string) workflow.IncomingMessage {
	h.n++
	return workflow.IncomingMessage{
		Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", Thread: "100.1", TS: fmt.Sprintf("%d.%06d", h.clock.Now().Unix(), h.n), Who: who, Text: text,
		Start: true, Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
	}
}

// rewrite edits a message in Slack.
func (h *harness) rewrite(u workflow.IncomingMessage, text string) workflow.MessageResult {
	h.t.Helper()
	h.n++
	u.Inbox, u.Text, u.At, u.Edited = h.id("Ev"), text, h.clock.Now(), fmt.Sprintf("%d.%06d", h.clock.Now().Unix(), h.n)
	return h.hear(u)
}

// erase deletes a message in Slack. A second call of erase for the same message repeats Slack's event.
func (h *harness) erase(u workflow.IncomingMessage, rest bool) {
	h.t.Helper()
	id := workflow.DeletionID(u.Channel.Channel, u.TS)
	_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: id, Kind: store.InboxEvent, ReceivedAt: h.clock.Now(), Payload: []byte("{}")}, "")
	h.ok(err)
	h.ok(h.Intake.Deleted(h.ctx(), workflow.Deletion{Inbox: id, At: h.clock.Now(), Team: u.Team, Channel: u.Channel, Thread: u.Thread, TS: u.TS, Rest: rest}))
}

func (h *harness) conversation(id string) store.Conversation {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (store.Conversation, error) { return r.Conversation(id) })
}

// TestEditedBeforeItWasRead checks messages that the model has not received. If a message is edited, the model gets the
// latest text. If a message is deleted, the model does not get the message.
func TestEditedBeforeItWasRead(t *testing.T) {
	o := newHarness(t)
	first, second := o.spoken(alice, "refund 50"), o.spoken(bob, "and quickly")
	turn := o.hear(first).Turn
	o.hear(second)
	earlier := o.spoken(alice, "")
	if h := o.rewrite(first, "refund 60"); !h.Duplicate {
		t.Errorf("an edit was received as %+v", h)
	}
	first.Inbox, first.Text, first.Edited = o.id("Ev"), "refund 55", earlier.TS // an earlier edit, which arrives later
	o.hear(first)
	o.erase(second, false)
	if got := texts(o.begin(turn)); got != "refund 60" {
		t.Errorf("the model is given %q", got)
	}
	r := o.requestIn(turn, `issue_refund {"amount":60}`)
	if r.Facts.MessageEdit != nil || r.Facts.Quote != "refund 60" {
		t.Errorf("the card quotes %q, %+v", r.Facts.Quote, r.Facts.MessageEdit)
	}

	third, fourth := o.spoken(alice, "thank you"), o.spoken(bob, "hurry up")
	o.hear(third)
	o.hear(fourth)
	o.rewrite(third, "thanks")
	o.erase(fourth, false)
	notice := o.only(turn, store.OutboxQueued)
	if vm, err := o.Views.Message(o.ctx(), notice.ID); err != nil || len(vm.Queued) != 1 || vm.Queued[0].Text != "thanks" || notice.State != store.OutboxWanted {
		t.Errorf("it waits: %+v, %v; the notice is %s", vm.Queued, err, notice.State)
	}
	notice = o.show(notice)
	o.erase(third, false)
	if vm, err := o.Views.Message(o.ctx(), notice.ID); err != nil || len(vm.Queued) != 0 || o.message(notice.ID).State != store.OutboxWanted {
		t.Errorf("it waits: %+v, %v", vm.Queued, err)
	}
	o.ok(o.Outbox.Removed(o.ctx(), o.message(notice.ID)))
	o.hear(o.spoken(bob, "hello?")) // people are told again that messages wait
	if n := len(o.messagesOf(turn)); n != 3 || o.messagesOf(turn)[2].Kind != store.OutboxQueued {
		t.Errorf("%d outbox messages; want another notice", n)
	}
	o.approve(lead, r.ID)
	o.run(r.Execution, "refunded")
	o.answer(turn)
}

// TestOwnDeletionIsReported checks the bot's notice about waiting messages. The bot deletes the notice while another
// message begins to wait. Slack may report the deletion before or after the bot records it. In each case, Slack must
// finally show one notice.
func TestOwnDeletionIsReported(t *testing.T) {
	for _, order := range []string{"report, message, answer", "message, report, answer", "message, answer, report"} {
		o := newHarness(t)
		first := o.spoken(alice, "refund 50")
		turn := o.hear(first).Turn
		o.requestIn(turn, `issue_refund {"amount":50}`)
		thanks := o.spoken(bob, "thanks")
		o.hear(thanks)
		notice := o.show(o.only(turn, store.OutboxQueued))
		o.erase(thanks, false)
		read := o.message(notice.ID)
		report := first
		report.Channel.Channel, report.TS = read.Channel, read.TS
		for step := range strings.SplitSeq(order, ", ") {
			switch step {
			case "message":
				o.hear(o.spoken(bob, "hello?"))
			case "report":
				o.erase(report, true)
			case "answer":
				o.ok(o.Outbox.Removed(o.ctx(), read))
			}
		}
		var wanted []store.OutboxMessage
		for _, s := range o.messagesOf(turn) {
			if s.Kind == store.OutboxQueued && s.State == store.OutboxWanted && s.TS == "" {
				wanted = append(wanted, s)
			}
		}
		if len(wanted) != 1 || o.timers(wanted[0].Rank.Timer())[wanted[0].ID].Ref == "" {
			t.Errorf("%s: %d notices are to be posted; want one, which is due: %+v", order, len(wanted), wanted)
		}
	}
}

// TestTheOnlyMessageIsDeleted checks a turn whose only message is deleted. The model is not called, and the next
// message begins a turn as usual.
func TestTheOnlyMessageIsDeleted(t *testing.T) {
	o := newHarness(t)
	u := o.spoken(alice, "refund 50")
	turn := o.hear(u).Turn
	o.erase(u, false)
	o.erase(u, false)
	o.wantTurn(turn, approvers.TurnStopped)
	if left := o.timers(store.TimerThink); len(left) != 0 || len(o.messagesOf(turn)) != 0 {
		t.Errorf("%d model calls are due, %d outbox messages", len(left), len(o.messagesOf(turn)))
	}
	u.Inbox = o.id("Ev") // Slack's mention event about the same message arrives late
	if h := o.hear(u); !h.Ignored || h.Turn != "" {
		t.Errorf("a deleted message was received: %+v", h)
	}
	next := o.say(alice, "hello").Turn
	if got := texts(o.begin(next)); got != "hello" {
		t.Errorf("the model is given %q", got)
	}
	o.answer(next)
}

// TestEditedAfterItWasRead checks the edit of a message that the model has read. The edit does not change the later
// prompts or the digest of the call. Approvers and requesters are told about the edit.
func TestEditedAfterItWasRead(t *testing.T) {
	h := newHarness(t)
	u := h.spoken(alice, "refund 50")
	turn := h.hear(u).Turn
	r := h.requestIn(turn, `issue_refund {"amount":50}`)
	card := h.show(h.only(r.ID, store.OutboxCard))
	later := h.spoken(alice, "")
	h.rewrite(u, "refund 5000")
	h.rewrite(u, "refund 500")
	after := h.request(r.ID)
	if w := after.Facts.MessageEdit; w == nil || w.Text != "refund 500" || after.Digest != r.Digest || after.Facts.Quote != "refund 50" {
		t.Errorf("the request: %+v, %q", w, after.Facts.Quote)
	}
	if now := h.message(card.ID); now.State != store.OutboxWanted {
		t.Errorf("the card is %s", now.State)
	}
	u.Inbox, u.Text, u.Edited = h.id("Ev"), "refund 1", later.TS // an edit from before the other two
	h.hear(u)
	h.wantKinds(r.ID, "proposed shown reworded reworded")
	told := h.only(turn, store.OutboxMessageEdit)
	if vm, err := h.Views.Message(h.ctx(), told.ID); err != nil || vm.MessageEdit == nil || vm.MessageEdit.MessageEdit.Text != "refund 500" || len(vm.Calls) != 1 {
		t.Errorf("the asker is told of %+v, %v", vm.MessageEdit, err)
	}
	h.erase(u, true)
	h.rewrite(u, "refund 7") // Slack reports this edit late
	if w := h.request(r.ID).Facts.MessageEdit; !w.Deleted || w.Text != "" {
		t.Errorf("after the deletion: %+v", w)
	}
	h.wantKinds(r.ID, "proposed shown reworded reworded reworded")
	h.wantState(r.ID, approvers.Pending) // a deletion withdraws nothing
	told = h.show(h.message(told.ID))
	h.approve(lead, r.ID)
	if now := h.message(told.ID); now.State != store.OutboxWanted {
		t.Errorf("the message to the requester is %s after the decision", now.State)
	}
	h.run(r.Execution, "refunded")
	if got := texts(h.begin(turn)); got != "refund 50|Let me see." {
		t.Errorf("the model is given %q", got)
	}
	h.answer(turn)
	h.erase(u, true)
	h.wantKinds(r.ID, "proposed shown reworded reworded reworded decided approved executing executed returned")
}

// TestEditedWhileTheModelThinks checks a message that is edited during a model call. The model then requests a call
// because of the old text.
func TestEditedWhileTheModelThinks(t *testing.T) {
	h := newHarness(t)
	u := h.spoken(alice, "refund 50")
	turn := h.hear(u).Turn
	b := h.begin(turn)
	h.rewrite(u, "refund 5")
	h.ok(h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: turn, Step: b.Turn.Step, Calls: calls(`issue_refund {"amount":50}`, `issue_refund {"amount":51}`), Authors: []approvers.PersonID{alice.ID}}))
	for _, c := range h.callsOf(turn) {
		r := h.request(c.Request)
		if w := r.Facts.MessageEdit; w == nil || w.Text != "refund 5" || r.Facts.Quote != "refund 50" {
			t.Errorf("the request: %+v, %q", w, r.Facts.Quote)
		}
	}
	h.only(turn, store.OutboxMessageEdit)
}

// TestEditsOvertakeTheirMessage checks an edit that arrives before the message itself. The message is received once,
// with its new text. An edit of an old message that was not for the bot has no effect.
func TestEditsOvertakeTheirMessage(t *testing.T) {
	o := newHarness(t)
	u := o.spoken(alice, "refund 50")
	turn := o.rewrite(u, "refund 60").Turn
	if h := o.hear(u); !h.Duplicate {
		t.Errorf("the message itself was received, too: %+v", h)
	}
	if got := texts(o.begin(turn)); got != "refund 60" {
		t.Errorf("the model is given %q", got)
	}
	o.answer(turn)

	gone := o.spoken(alice, "refund 70")
	o.erase(gone, false)
	if h := o.hear(gone); !h.Ignored {
		t.Errorf("a message that was deleted before it arrived: %+v", h)
	}
	old := o.spoken(alice, "refund 80")
	o.clock.pass(expiresAfter * 3)
	if h := o.rewrite(old, "refund 81"); !h.Ignored {
		t.Errorf("the edit of an old message was received: %+v", h)
	}
}

// TestTheThreadGoes checks a thread that disappears because all its messages are deleted. The store then marks the
// conversation as gone.
func TestTheThreadGoes(t *testing.T) {
	h := newHarness(t)
	u := h.spoken(alice, "refund 50")
	u.Thread = u.TS
	heard := h.hear(u)
	b := h.begin(heard.Turn)
	h.erase(u, true)
	if h.conversation(heard.Conversation).Gone {
		t.Error("a thread that continues without its first message is gone")
	}
	h.ok(h.Intake.Deleted(h.ctx(), workflow.Deletion{At: h.clock.Now(), Team: u.Team, Channel: u.Channel, Thread: u.TS, TS: u.TS})) // now the last reply is deleted, too
	if !h.conversation(heard.Conversation).Gone {
		t.Error("the thread is not gone")
	}
	h.ok(h.Turns.Answer(h.ctx(), heard.Turn, b.Turn.Step, "Done.", nil, 1))
}

// wantAskedBy checks who asked for a call according to its request, and with which message.
func (h *harness) wantAskedBy(r approvers.Request, u workflow.IncomingMessage) {
	h.t.Helper()
	f := r.Facts
	if f.Quote != u.Text || f.MessageTS != u.TS || f.Asker != u.Who.ID || f.AskerName != u.Who.Name || f.MessageEdit != nil {
		h.t.Errorf("it is asked for by %s with %q at %s; want %s with %q at %s", f.Asker, f.Quote, f.MessageTS, u.Who.ID, u.Text, u.TS)
	}
	if !slices.Equal(f.Requesters, []approvers.PersonID{u.Who.ID}) || !slices.Equal(f.Authors, []approvers.PersonID{u.Who.ID}) {
		h.t.Errorf("requesters %v, authors %v; want only %s", f.Requesters, f.Authors, u.Who.ID)
	}
}

// The model does not get the answer to an approver's question. So the answer is not the message that led to the next
// calls of the turn, or to another run of a call.
func TestAnAnswerLeadsToNoCall(t *testing.T) {
	h := newHarness(t)
	u := h.spoken(alice, "refund 50 and tell me")
	turn := h.hear(u).Turn
	r := h.requestIn(turn, `issue_refund {"amount":600}`)
	h.question(lead, r.ID, "why?")
	h.showsQuestion(r.ID, store.OutboxQuestion, "1772442000.000001", false, store.ToConversation)
	answer := h.spoken(alice, "it broke")
	if h.hear(answer).Passed != lead.ID {
		t.Fatal("the message was not passed to the approver")
	}
	for _, who := range []approvers.Identity{lead, fin1, fin2} {
		h.approve(who, r.ID)
	}
	_, _, err := h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	h.ok(h.again(alice, r.Execution))
	retry := h.request(h.call(r.Call).Request)
	h.wantAskedBy(retry, u)
	h.reject(lead, retry.ID)
	next := h.requestIn(turn, `apply_discount {}`)
	h.rewrite(answer, "it did not break")
	h.wantAskedBy(h.request(next.ID), u)
}

// A call waits for its run or for a report, and meanwhile the turn takes the message of another person. This message
// did not lead to the call. So if the call needs approval then, its author is neither the asker nor a requester.
func TestALaterMessageLeadsToNoEarlierCall(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[1].Risk, p.Tools[1].MaxAuto = approvers.High, approvers.Limit{Count: 1, Per: time.Hour}
		p.Approvers[1].Members = users("U0002", "U0200")
	}))
	u := h.spoken(alice, "change both addresses")
	turn := h.hear(u).Turn
	b := h.begin(turn)
	early := h.spoken(bob, "what is the time?") // written during the model call
	h.hear(early)
	h.ok(h.Turns.Propose(h.ctx(), workflow.Proposal{
		Turn: turn, Step: b.Turn.Step, Calls: calls(`update_address {"n":1}`, `update_address {"n":2}`), Authors: []approvers.PersonID{alice.ID},
	}))
	cs := h.callsOf(turn)
	late := h.spoken(bob, "what is the weather?")
	h.hear(late)
	h.ok(h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: turn, Who: bob, At: h.clock.Now()}))
	h.run(cs[0].Execution, "ok")
	h.notRun(cs[1].Execution)
	r := h.request(h.call(cs[1].ID).Request)
	h.wantAskedBy(r, u)
	h.approve(bob, r.ID)
	h.run(r.Execution, "ok")
	if next := h.requestIn(turn, `apply_discount {}`); next.Facts.Quote != late.Text || next.Facts.Asker != bob.ID || len(next.Facts.Requesters) != 2 {
		t.Errorf("the next call is asked for by %s with %q, requesters %v", next.Facts.Asker, next.Facts.Quote, next.Facts.Requesters)
	}
}
