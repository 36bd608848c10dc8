package workflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

const question = `ask_people {"question":"Which order?","options":["A-1","A-2"]}`

// askPeople makes alice write a message, to which the model replies with a question to the requesters. askPeople
// returns the turn and the call of the open question.
func (h *harness) askPeople() (string, store.Call) {
	h.t.Helper()
	h.tools.asks("ask_people")
	turn := h.say(alice, "refund my order").Turn
	c := h.propose(turn, question)[0]
	if c.Outcome != "" || c.ModelQuestion == nil || c.Execution != "" || c.Request != "" {
		h.t.Fatalf("the question is %+v", c)
	}
	return turn, c
}

func (h *harness) wantAnswer(call string, outcome approvers.Outcome, answer string, by approvers.PersonID) {
	h.t.Helper()
	c := h.call(call)
	var got struct {
		Answer string `json:"answer"`
	}
	if err := json.Unmarshal([]byte(c.Result), &got); err != nil {
		h.t.Fatalf("%v: %q", err, c.Result)
	}
	if c.Outcome != outcome || got.Answer != answer || c.ModelQuestion.By != by {
		h.t.Errorf("%s, %q by %s; want %s, %q by %s", c.Outcome, got.Answer, c.ModelQuestion.By, outcome, answer, by)
	}
	if _, waits := h.timers(store.TimerModelQuestion)[call]; waits {
		h.t.Error("its timer is left")
	}
}

func TestModelQuestionIsAnsweredByAChoice(t *testing.T) {
	h := newHarness(t)
	turn, c := h.askPeople()
	if s := h.only(c.ID, store.OutboxModelQuestion); s.To != "conversation:"+c.Conversation {
		t.Errorf("it is shown at %s", s.To)
	}
	choose := func(who approvers.Identity, option int) error {
		return h.Questions.Answer(h.ctx(), workflow.Click{At: h.clock.Now(), Who: who, Call: c.ID}, option)
	}
	wantDenied(t, choose(bob, 0), approvers.DeniedNotAsked)
	wantDenied(t, choose(lead, 0), approvers.DeniedNotAsked)
	wantDenied(t, choose(alice, 2), approvers.DeniedNothing)
	gone := alice
	gone.Deleted = true
	wantDenied(t, choose(gone, 0), approvers.DeniedUnidentified)
	h.ok(choose(alice, 1))
	wantDenied(t, choose(alice, 0), approvers.DeniedNothing)
	h.wantAnswer(c.ID, approvers.OutcomeExecuted, "A-2", alice.ID)
	h.wantKinds(c.ID, "proposed answered returned")
	h.answer(turn)
}

// TestModelQuestionIsAnsweredByWriting checks that a message in the thread can answer a question of the model. The
// model gets the message only once, as the result of the question.
func TestModelQuestionIsAnsweredByWriting(t *testing.T) {
	h := newHarness(t)
	turn, c := h.askPeople()
	h.showsQuestion(c.ID, store.OutboxModelQuestion, "1790000100.000200", false, store.ToConversation)
	if heard := h.hear(h.reply(bob, "1790000160.000100", "I would like something else")); !heard.Queued {
		t.Errorf("somebody else's message: %+v", heard)
	}
	if heard := h.hear(h.reply(alice, "1790000170.000100", "the second one, please")); heard.Queued || heard.Turn != turn {
		t.Errorf("the answer: %+v", heard)
	}
	h.wantAnswer(c.ID, approvers.OutcomeExecuted, "the second one, please", alice.ID)
	b := h.begin(turn)
	for _, m := range b.Messages {
		if m.Text == "the second one, please" {
			t.Error("the model is given the answer a second time, as a message")
		}
	}
	h.answer(turn)
}

// TestOnlyAShownInquiryIsAnsweredByWriting checks that a message in the thread answers the model's question only if the
// message's author saw the question before writing. All other messages wait for the turn to end.
func TestOnlyAShownInquiryIsAnsweredByWriting(t *testing.T) {
	const posted, earlier, later = "1790000100.000200", "1790000100.000100", "1790000160.000100"
	for name, c := range map[string]struct {
		shown  []string // where Slack shows the question; elsewhere Slack refuses it
		lost   bool     // the question was deleted in Slack
		ts     string   // ts of the message, which arrives a minute after the question
		answer bool
	}{
		"written after it":                 {shown: []string{"conversation:"}, ts: later, answer: true},
		"written before it, received late": {shown: []string{"conversation:"}, ts: earlier},
		"shown by direct message":          {shown: []string{"user:U0100"}, ts: later, answer: true},
		"refused everywhere":               {ts: later},
		"deleted":                          {shown: []string{"conversation:"}, lost: true, ts: later},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			_, q := h.askPeople()
			h.showsQuestion(q.ID, store.OutboxModelQuestion, posted, c.lost, c.shown...)
			h.clock.pass(time.Minute)
			heard := h.hear(h.reply(alice, c.ts, "the second one, please"))
			if got := h.call(q.ID); (got.ModelQuestion.Answer != "") != c.answer || (got.Outcome != "") != c.answer || heard.Queued == c.answer {
				t.Errorf("%+v; the question %+v", heard, got.ModelQuestion)
			}
		})
	}
}

// TestWritingIsNoAnswerWhileACallWaits checks that a message in the thread does not answer the model's question if the
// turn also waits for another call.
func TestWritingIsNoAnswerWhileACallWaits(t *testing.T) {
	h := newHarness(t)
	h.tools.asks("ask_people")
	turn := h.say(alice, "refund my order").Turn
	cs := h.propose(turn, question, `issue_refund {"amount":10}`)
	h.showsQuestion(cs[0].ID, store.OutboxModelQuestion, "1790000100.000200", false, store.ToConversation)
	if heard := h.hear(h.reply(alice, "1790000160.000100", "the second one")); !heard.Queued {
		t.Errorf("%+v", heard)
	}
	// The button "Withdraw and continue" also withdraws the question.
	h.ok(h.Requests.WithdrawAll(h.ctx(), workflow.Click{Inbox: "", At: h.clock.Now(), Who: alice, Turn: turn}))
	for _, c := range cs {
		if got := h.call(c.ID); got.Outcome != approvers.OutcomeWithdrawn {
			t.Errorf("%s: %s", c.Tool, got.Outcome)
		}
	}
	h.answer(turn)
}

// TestAnAnswerBeforeTheDeadlineIsHandledBeforeTheQuestionLapses checks that an answer that arrives before the deadline
// counts, even if the timer of the deadline is handled first.
func TestAnAnswerBeforeTheDeadlineIsHandledBeforeTheQuestionLapses(t *testing.T) {
	h := newHarness(t)
	turn, c := h.askPeople()
	h.clock.pass(expiresAfter)
	click := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: alice, Call: c.ID}
	h.receive(click)
	h.clock.pass(time.Second)
	lapse := h.timers(store.TimerModelQuestion)[c.ID]
	h.ok(h.Questions.Expire(h.ctx(), lapse))
	if got := h.call(c.ID); got.Outcome != "" {
		t.Fatalf("it lapsed (%s) although an answer had come in time", got.Outcome)
	}
	if again := h.timers(store.TimerModelQuestion)[c.ID]; !again.Due.After(h.clock.Now()) || again.Tries != 1 {
		t.Errorf("the timer is due again at %s, try %d; now it is %s", again.Due, again.Tries, h.clock.Now())
	}
	h.ok(h.Questions.Answer(h.ctx(), click, 0))
	h.wantAnswer(c.ID, approvers.OutcomeExecuted, "A-1", alice.ID)
	h.answer(turn)
}

func TestModelQuestionExpires(t *testing.T) {
	h := newHarness(t)
	turn, c := h.askPeople()
	h.clock.pass(expiresAfter - 1)
	h.due()
	if got := h.call(c.ID); got.Outcome != "" {
		t.Fatalf("early: %s", got.Outcome)
	}
	h.reopen()
	h.clock.pass(1)
	h.due()
	h.wantAnswer(c.ID, approvers.OutcomeExpired, "", "")
	h.answer(turn)
}
