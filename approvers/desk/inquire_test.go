package desk_test

import (
	"encoding/json"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

const question = `ask_people {"question":"Which order?","options":["A-1","A-2"]}`

// inquire has alice ask for something, and the model ask back. It returns the turn and the open question.
func (o *office) inquire() (string, store.Call) {
	o.t.Helper()
	o.tools.asks("ask_people")
	turn := o.say(alice, "refund my order").Turn
	c := o.propose(turn, question)[0]
	if c.Outcome != "" || c.Inquiry == nil || c.Execution != "" || c.Request != "" {
		o.t.Fatalf("the question is %+v", c)
	}
	return turn, c
}

func (o *office) wantAnswer(call string, outcome approvers.Outcome, answer string, by approvers.PersonID) {
	o.t.Helper()
	c := o.call(call)
	var got struct {
		Answer string `json:"answer"`
	}
	if err := json.Unmarshal([]byte(c.Result), &got); err != nil {
		o.t.Fatalf("%v: %q", err, c.Result)
	}
	if c.Outcome != outcome || got.Answer != answer || c.Inquiry.By != by {
		o.t.Errorf("%s, %q by %s; want %s, %q by %s", c.Outcome, got.Answer, c.Inquiry.By, outcome, answer, by)
	}
	if _, waits := o.timers(store.TimerInquiry)[call]; waits {
		o.t.Error("its timer is left")
	}
}

func TestInquiryIsAnsweredByAChoice(t *testing.T) {
	o := newOffice(t)
	turn, c := o.inquire()
	if s := o.only(c.ID, store.SurfaceInquiry); s.To != "conversation:"+c.Conversation {
		t.Errorf("it is shown at %s", s.To)
	}
	choose := func(who approvers.Identity, option int) error {
		return o.Choose(o.ctx(), desk.Click{At: o.clock.Now(), Who: who, Call: c.ID}, option)
	}
	wantDenied(t, choose(bob, 0), approvers.DeniedNotAsked)
	wantDenied(t, choose(lead, 0), approvers.DeniedNotAsked)
	wantDenied(t, choose(alice, 2), approvers.DeniedNothing)
	gone := alice
	gone.Deleted = true
	wantDenied(t, choose(gone, 0), approvers.DeniedUnidentified)
	o.ok(choose(alice, 1))
	wantDenied(t, choose(alice, 0), approvers.DeniedNothing)
	o.wantAnswer(c.ID, approvers.OutcomeExecuted, "A-2", alice.ID)
	o.wantKinds(c.ID, "proposed answered returned")
	o.answer(turn)
}

// TestInquiryIsAnsweredByWriting: what the person writes is the answer, and is given to the model once: as the question's result.
func TestInquiryIsAnsweredByWriting(t *testing.T) {
	o := newOffice(t)
	turn, c := o.inquire()
	if heard := o.say(bob, "I would like something else"); !heard.Queued {
		t.Errorf("somebody else's message: %+v", heard)
	}
	if heard := o.say(alice, "the second one, please"); heard.Queued || heard.Turn != turn {
		t.Errorf("the answer: %+v", heard)
	}
	o.wantAnswer(c.ID, approvers.OutcomeExecuted, "the second one, please", alice.ID)
	b := o.begin(turn)
	for _, m := range b.Messages {
		if m.Text == "the second one, please" {
			t.Error("the model is given the answer a second time, as a message")
		}
	}
	o.answer(turn)
}

// TestWritingIsNoAnswerWhileACallWaits: a message is the answer only where the question is all that is waited for.
func TestWritingIsNoAnswerWhileACallWaits(t *testing.T) {
	o := newOffice(t)
	o.tools.asks("ask_people")
	turn := o.say(alice, "refund my order").Turn
	cs := o.propose(turn, question, `issue_refund {"amount":10}`)
	if heard := o.say(alice, "the second one"); !heard.Queued {
		t.Errorf("%+v", heard)
	}
	// Going on with the message gives the question up too.
	o.ok(o.GoOn(o.ctx(), desk.Click{Inbox: "", At: o.clock.Now(), Who: alice, Turn: turn}))
	for _, c := range cs {
		if got := o.call(c.ID); got.Outcome != approvers.OutcomeWithdrawn {
			t.Errorf("%s: %s", c.Tool, got.Outcome)
		}
	}
	o.answer(turn)
}

// TestAnAnswerBeforeTheDeadlineIsHandledBeforeTheQuestionLapses, whichever of the two falls to be handled first.
func TestAnAnswerBeforeTheDeadlineIsHandledBeforeTheQuestionLapses(t *testing.T) {
	o := newOffice(t)
	turn, c := o.inquire()
	o.clock.pass(expiresAfter)
	click := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: alice, Call: c.ID}
	o.receive(click)
	o.clock.pass(time.Second)
	lapse := o.timers(store.TimerInquiry)[c.ID]
	o.ok(o.LapseInquiry(o.ctx(), lapse))
	if got := o.call(c.ID); got.Outcome != "" {
		t.Fatalf("it lapsed (%s) although an answer had come in time", got.Outcome)
	}
	if again := o.timers(store.TimerInquiry)[c.ID]; !again.Due.After(o.clock.Now()) || again.Tries != 1 {
		t.Errorf("it is looked at again at %s, try %d; now is %s", again.Due, again.Tries, o.clock.Now())
	}
	o.ok(o.Choose(o.ctx(), click, 0))
	o.wantAnswer(c.ID, approvers.OutcomeExecuted, "A-1", alice.ID)
	o.answer(turn)
}

func TestInquiryLapses(t *testing.T) {
	o := newOffice(t)
	turn, c := o.inquire()
	o.clock.pass(expiresAfter - 1)
	o.due()
	if got := o.call(c.ID); got.Outcome != "" {
		t.Fatalf("early: %s", got.Outcome)
	}
	o.reopen()
	o.clock.pass(1)
	o.due()
	o.wantAnswer(c.ID, approvers.OutcomeExpired, "", "")
	o.answer(turn)
}
