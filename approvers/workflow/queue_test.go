package workflow_test

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// The function texts returns the texts of a model call's messages, in order.
func texts(b workflow.Brief) string {
	var out []string
	for _, m := range b.Messages {
		out = append(out, m.Text)
	}
	return strings.Join(out, "|")
}

func TestMessagesWaitTheirTurn(t *testing.T) {
	o := newHarness(t)
	turn := o.say(alice, "one").Turn
	if h := o.say(bob, "two"); h.Queued || h.Turn != turn {
		t.Errorf("before the model was asked: %+v; want it part of the question", h)
	}
	r := o.requestIn(turn, `issue_refund {"amount":1}`)
	if len(r.Facts.Requesters) != 2 {
		t.Errorf("requesters %v; want both who spoke", r.Facts.Requesters)
	}
	h := o.say(bob, "three")
	if !h.Queued || h.Turn != turn {
		t.Errorf("while it waits: %+v; want queued", h)
	}
	o.say(alice, "four")
	queued := 0
	for _, s := range o.messagesOf(turn) {
		if s.Kind == store.OutboxQueued {
			queued++
			if s.Revision < 2 {
				t.Error("the second sender is not told")
			}
		}
	}
	if queued != 1 {
		t.Errorf("%d notices; want one that is kept up to date", queued)
	}
	o.approve(lead, r.ID)
	o.run(r.Execution, "refunded")
	if got := texts(o.begin(turn)); got != "one|two|Let me see." {
		t.Errorf("the model is given %q", got)
	}
	o.answer(turn)

	conv := readStore(o, func(r store.Reader) (store.Conversation, error) { return r.Conversation(h.Conversation) })
	if conv.Turn == "" || conv.Turn == turn {
		t.Fatalf("the messages that waited began %q", conv.Turn)
	}
	o.turns = append(o.turns, conv.Turn)
	b := o.begin(conv.Turn)
	if got := texts(b); got != "one|two|Let me see.|Done.|three|four" {
		t.Errorf("the model is given %q", got)
	}
	if len(b.Turn.Requesters) != 2 || b.Turn.Requesters[0] != bob.ID {
		t.Errorf("requesters of the new turn: %v", b.Turn.Requesters)
	}
	o.answer(conv.Turn)
}

// TestQueuedSendersAreToldOnlyOfWaits checks messages that arrive during a model call. If the turn waits for people
// after the model call, the senders are told that their messages wait. If not, the senders are told nothing.
func TestQueuedSendersAreToldOnlyOfWaits(t *testing.T) {
	notices := func(h *harness, turn string) (n int) {
		for _, s := range h.messagesOf(turn) {
			n += b2i(s.Kind == store.OutboxQueued)
		}
		return n
	}
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	h.begin(turn)
	h.say(bob, "two")
	if n := notices(h, turn); n != 0 {
		t.Errorf("%d notices during the model call", n)
	}
	c := h.propose(turn, `search_orders {}`)
	if n := notices(h, turn); n != 0 {
		t.Errorf("%d notices during an automatic run", n)
	}
	h.run(c[0].Execution, "found")
	h.propose(turn, `issue_refund {"amount":1}`)
	if n := notices(h, turn); n != 1 {
		t.Errorf("%d notices while people are asked; want 1", n)
	}
}

func TestWithdrawAllTakesTheMessagesAlong(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	cs := h.propose(turn, `issue_refund {"amount":1}`, `cancel_account {}`, `search_orders {}`)
	h.run(cs[2].Execution, "found")
	h.approve(lead, cs[0].Request)
	h.say(bob, "never mind")

	wantDenied(t, h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: turn, Who: fin1, At: h.clock.Now()}), approvers.DeniedNotRequester)
	wantDenied(t, h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: "turn_none", Who: bob}), approvers.DeniedNotFound)
	h.ok(h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: turn, Who: bob, At: h.clock.Now()}))
	h.wantOutcome(cs[0].ID, approvers.OutcomeWithdrawn)
	h.wantOutcome(cs[1].ID, approvers.OutcomeWithdrawn)
	h.wantOutcome(cs[2].ID, approvers.OutcomeExecuted)
	h.wantTurn(turn, approvers.TurnThinking)
	h.notRun(cs[0].Execution)
	b := h.begin(turn)
	if got := texts(b); got != "one|Let me see.|never mind" {
		t.Errorf("the model is given %q", got)
	}
	if len(b.Turn.Requesters) != 2 {
		t.Errorf("requesters %v; want bob among them from now on", b.Turn.Requesters)
	}
	wantDenied(t, h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: turn, Who: bob}), approvers.DeniedNothing)
	h.answer(turn)
}

// TestWithdrawAllByNobody checks that a denied WithdrawAll changes nothing, not even the waiting messages.
func TestWithdrawAllByNobody(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	r := h.requestIn(turn, `issue_refund {"amount":1}`)
	h.say(bob, "two")
	gone := bob
	gone.Deleted = true
	for _, who := range []approvers.Identity{gone, {}} {
		wantDenied(t, h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: turn, Who: who}), approvers.DeniedUnidentified)
	}
	h.wantState(r.ID, approvers.Pending)
	conv := h.turn(turn).Conversation
	for _, m := range readStore(h, func(r store.Reader) ([]store.Message, error) { return r.Messages(conv, 0) }) {
		if m.Text == "two" && m.State != store.MessageQueued {
			t.Error("the message that waits was taken although its sender was denied")
		}
	}
}

func TestWithdrawAllPastARunAndAnUnknownOutcome(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	cs := h.propose(turn, `search_orders {}`, `issue_refund {"amount":1}`)
	_, _, err := h.Runs.Claim(h.ctx(), cs[0].Execution)
	h.ok(err)
	h.approve(lead, cs[1].Request)
	_, _, err = h.Runs.Claim(h.ctx(), cs[1].Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), cs[1].Execution))
	h.ok(h.Requests.WithdrawAll(h.ctx(), workflow.Click{Turn: turn, Who: alice}))
	h.wantOutcome(cs[1].ID, approvers.OutcomeUnknown)
	h.wantTurn(turn, approvers.TurnWaiting) // the turn still waits for the result of the run
	h.ok(h.Runs.Finish(h.ctx(), cs[0].Execution, true, "found"))
	h.wantTurn(turn, approvers.TurnThinking)
}

func TestWithdrawIsForRequesters(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	_, err := h.Requests.Withdraw(h.ctx(), h.clickOn(lead, "", r.ID))
	wantDenied(t, err, approvers.DeniedNotRequester)
	_, err = h.Requests.Withdraw(h.ctx(), workflow.Click{Request: "req_none", Who: alice})
	wantDenied(t, err, approvers.DeniedNotFound)
	got, err := h.Requests.Withdraw(h.ctx(), h.clickOn(alice, "", r.ID))
	h.ok(err)
	if got.State != approvers.Withdrawn {
		t.Errorf("%s", got.State)
	}
	_, err = h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
	if denied := wantDenied(t, err, approvers.DeniedResolved); denied.By != alice.ID || denied.State != approvers.Withdrawn {
		t.Errorf("told %+v", denied)
	}
	h.wantKinds(r.ID, "proposed denied closed returned denied")
}

func TestTryAgain(t *testing.T) {
	h := newHarness(t)
	heard := h.say(alice, "one")
	turn := heard.Turn
	c := h.propose(turn, `search_orders {}`)[0]
	h.run(c.Execution, "found")
	b := h.begin(turn)
	h.ok(h.Turns.Stop(h.ctx(), turn, b.Turn.Step, "The model can't be reached.", true))
	h.wantTurn(turn, approvers.TurnStopped)

	guest := bob
	guest.Guest = true
	wantDenied(t, h.Turns.TryAgain(h.ctx(), workflow.Click{Turn: turn, Who: guest}), approvers.DeniedGuest)
	h.ok(h.Turns.TryAgain(h.ctx(), workflow.Click{Turn: turn, Who: bob}))
	h.wantTurn(turn, approvers.TurnThinking)
	wantDenied(t, h.Turns.TryAgain(h.ctx(), workflow.Click{Turn: turn, Who: bob}), approvers.DeniedNothing)
	b = h.begin(turn)
	if b.Turn.Step != 1 || len(b.Calls[turn]) != 1 || len(b.Turn.Requesters) != 2 {
		t.Errorf("continues at step %d with %d results, asked by %v", b.Turn.Step, len(b.Calls[turn]), b.Turn.Requesters)
	}
	h.ok(h.Turns.Stop(h.ctx(), turn, b.Turn.Step, "Out of steps.", false))
	wantDenied(t, h.Turns.TryAgain(h.ctx(), workflow.Click{Turn: turn, Who: alice}), approvers.DeniedNothing)
}

// TestTryAgainIsOverWhenTheConversationWentOn checks that a stopped turn can't be resumed after a newer turn has become
// the current turn.
func TestTryAgainIsOverWhenTheConversationWentOn(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	b := h.begin(turn)
	h.say(bob, "two")
	h.ok(h.Turns.Stop(h.ctx(), turn, b.Turn.Step, "The model can't be reached.", true))
	conv := readStore(h, func(r store.Reader) (store.Conversation, error) { return r.Conversation(b.Conversation.ID) })
	if conv.Turn == "" || conv.Turn == turn {
		t.Fatalf("the message that waited began %q", conv.Turn)
	}
	h.turns = append(h.turns, conv.Turn)
	wantDenied(t, h.Turns.TryAgain(h.ctx(), workflow.Click{Turn: turn, Who: alice}), approvers.DeniedNothing)
	next := h.begin(conv.Turn)
	if len(next.Turn.Requesters) != 2 { // alice's question was not answered, so she is still a requester
		t.Errorf("requesters %v; want both", next.Turn.Requesters)
	}
	h.answer(conv.Turn)
}

// TestTryAgainIsOverAfterANewerTurn checks that a stopped turn can't be resumed if a newer turn has taken messages, even
// if the newer turn has ended. Otherwise, the author of a newer message could approve a call to which the message led.
// The message about the older turn loses its button when the newer turn begins. The newer turn can be resumed, and its
// requesters are the authors of all messages without an answer.
func TestTryAgainIsOverAfterANewerTurn(t *testing.T) {
	h := newHarness(t)
	stop := func(turn string) {
		t.Helper()
		b := h.begin(turn)
		h.ok(h.Turns.Stop(h.ctx(), turn, b.Turn.Step, "The model can't be reached.", true))
	}
	hasButton := func(turn string) bool {
		t.Helper()
		vm, err := h.Views.Message(h.ctx(), h.only(turn, store.OutboxProblem).ID)
		h.ok(err)
		return vm.Turn.CanRetry
	}
	again := func(turn string) error {
		return h.Turns.TryAgain(h.ctx(), workflow.Click{Turn: turn, Who: alice})
	}
	first := h.hear(h.spoken(alice, "hello")).Turn
	stop(first)
	if !hasButton(first) {
		t.Error("the only turn has no button")
	}
	h.show(h.only(first, store.OutboxProblem))
	deleted := h.spoken(bob, "never mind")
	h.hear(deleted)
	if hasButton(first) || h.only(first, store.OutboxProblem).State != store.OutboxWanted {
		t.Error("the message about the older turn still has its button")
	}
	h.show(h.only(first, store.OutboxProblem))
	h.erase(deleted, true)
	if !hasButton(first) || h.only(first, store.OutboxProblem).State != store.OutboxWanted {
		t.Error("the only message of the newer turn was deleted, and the button is not there again")
	}
	second := h.hear(h.spoken(support, "give Acme a discount")).Turn
	stop(second)
	wantDenied(t, again(first), approvers.DeniedNothing)
	if hasButton(first) || !hasButton(second) {
		t.Error("the button is not at the newest turn")
	}
	h.ok(again(second))
	c := h.propose(second, `apply_discount {}`)[0]
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(support, approvers.Approve, c.Request))
	wantDenied(t, err, approvers.DeniedSelf)
}

func TestWhoIsHeard(t *testing.T) {
	o := newHarness(t)
	receive := func(change func(*workflow.IncomingMessage)) workflow.MessageResult {
		u := workflow.IncomingMessage{
			Inbox: o.id("Ev"), At: o.clock.Now(), Team: "T0001", Thread: o.id("th"), TS: o.id("ts"), Who: alice, Text: "hi", Start: true,
			Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		}
		change(&u)
		return o.hear(u)
	}
	if h := receive(func(u *workflow.IncomingMessage) { u.Channel.Name = "random"; u.Channel.Channel = "C0009" }); h.Denied == nil || h.Denied.Code != approvers.DeniedChannel {
		t.Errorf("in a channel without an agent: %+v", h)
	}
	if h := receive(func(u *workflow.IncomingMessage) { u.Who.Guest = true }); h.Denied == nil || h.Denied.Code != approvers.DeniedGuest {
		t.Errorf("a guest: %+v", h)
	}
	if h := receive(func(u *workflow.IncomingMessage) { u.Start = false }); !h.Ignored || h.Turn != "" {
		t.Errorf("talk in a thread that is not the bot's: %+v", h)
	}
	if h := receive(func(u *workflow.IncomingMessage) { u.Who.Bot, u.Start = true, false }); !h.Ignored {
		t.Errorf("a bot's talk: %+v", h)
	}
	if n := len(o.timers(store.TimerInbox)); n != 0 {
		t.Errorf("%d deliveries are still due", n)
	}
	h := o.say(alice, "hi")
	u := workflow.IncomingMessage{Inbox: o.id("Ev"), At: o.clock.Now(), Team: "T0001", Thread: "100.1", TS: o.id("ts"), Who: bob, Text: "me too",
		Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"}}
	if got := o.hear(u); got.Turn != h.Turn || got.Ignored {
		t.Errorf("a reply without a mention in the bot's thread: %+v", got)
	}
}

func TestDirectMessagesBeginAnew(t *testing.T) {
	h := newHarness(t)
	say := func(newConversation bool) workflow.MessageResult {
		return h.hear(workflow.IncomingMessage{
			Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", TS: h.id("ts"), Who: alice, Text: "hi", Start: true, NewConversation: newConversation,
			Channel: approvers.ChannelRef{Channel: "D0001", DM: true},
		})
	}
	first := say(false)
	h.answer(first.Turn)
	second := say(false)
	if second.Conversation != first.Conversation {
		t.Error("a direct message soon after began a new conversation")
	}
	h.clock.pass(9 * time.Hour)
	if h := say(false); h.Conversation != first.Conversation {
		t.Error("silence began a new conversation while a turn was under way")
	}
	h.answer(second.Turn)
	h.clock.pass(9 * time.Hour)
	third := say(false)
	if third.Conversation == first.Conversation {
		t.Error("a direct message after a long silence continued the old conversation")
	}
	h.answer(third.Turn)
	if h := say(true); h.Conversation == third.Conversation {
		t.Error("a message that asked for a new conversation did not begin one")
	}
}
