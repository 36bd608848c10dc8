package desk_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// vanishes has Slack tell that the message of a surface was deleted.
func (o *office) vanishes(s store.Surface) store.Surface {
	o.t.Helper()
	o.erase(desk.Utterance{Team: "T0001", Place: approvers.Place{Channel: s.Channel}, TS: s.TS}, false)
	return o.surface(s.ID)
}

// showThese has everything shown that is to be of some refs.
func (o *office) showThese(refs ...string) {
	o.t.Helper()
	for _, ref := range refs {
		for _, s := range o.surfacesOf(ref) {
			if s.State == store.SurfaceWanted {
				o.n++
				o.show(s)
			}
		}
	}
}

// TestVanishedCards are posted again when somebody asks, and not before.
func TestVanishedCards(t *testing.T) {
	for name, ask := range map[string]func(*office, approvers.Request, store.Surface){
		"somebody writes in the asker's thread": func(o *office, _ approvers.Request, _ store.Surface) { o.say(bob, "hello?") },
		"somebody writes under the card": func(o *office, _ approvers.Request, was store.Surface) {
			o.hear(desk.Utterance{Inbox: o.id("Ev"), At: o.clock.Now(), Team: "T0001", Thread: was.TS, TS: o.id("ts"), Who: support, Text: "where is it?", Place: approvers.Place{Channel: was.Channel}})
		},
		"the lead is told": func(o *office, _ approvers.Request, _ store.Surface) {
			o.clock.pass(escalateAfter)
			o.due()
		},
		"a quarter of its time is left": func(o *office, r approvers.Request, _ store.Surface) {
			o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[0].Lead = "" }))
			o.clock.pass(expiresAfter*3/4 - time.Second)
			o.due()
			if s := o.only(r.ID, store.SurfaceCard); s.State != store.SurfaceVanished {
				o.t.Errorf("before its time it is %s", s.State)
			}
			o.clock.pass(time.Second)
			o.due()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			r := o.ask(`apply_discount {}`)
			card := o.show(o.only(r.ID, store.SurfaceCard))
			o.showThese(r.Turn)
			gone := o.vanishes(card)
			if gone.State != store.SurfaceVanished || len(o.timers(store.TimerRepost)) != 1 {
				t.Fatalf("it is %s, with %d timers", gone.State, len(o.timers(store.TimerRepost)))
			}
			if got := o.vanishes(card); got != gone {
				t.Errorf("told twice: %+v", got)
			}
			o.ok(o.Vanished(o.ctx(), card)) // found out at an update as well
			if sight, err := o.See(o.ctx(), o.only(r.Turn, store.SurfaceStep).ID); err != nil || len(sight.Calls[0].Cards) != 0 {
				t.Errorf("a link leads to a card that is not there (%v)", err)
			}
			ask(o, r, card)
			back := o.surface(card.ID)
			if back.State != store.SurfaceWanted || back.TS != "" || back.Round != 1 || len(o.timers(store.TimerRepost)) != 0 {
				t.Fatalf("it is %+v", back)
			}
			o.say(bob, "and now?")
			o.vanishes(card) // told late
			if now := o.surface(card.ID); now.Round != 1 || now.State != store.SurfaceWanted {
				t.Errorf("it is %+v", now)
			}
			back.Channel, back.TS = card.Channel, "300.1"
			o.ok(o.Shown(o.ctx(), back, o.posted(back)))
			if sight, err := o.See(o.ctx(), o.only(r.Turn, store.SurfaceStep).ID); err != nil || len(sight.Calls[0].Cards) == 0 || o.only(r.Turn, store.SurfaceStep).State != store.SurfaceWanted {
				t.Errorf("nothing leads to the new card (%v)", err)
			}
		})
	}
}

// TestVanishedCardsOfOthers: a card that is gone comes back when it is put before other people at the same place, told of or not.
func TestVanishedCardsOfOthers(t *testing.T) {
	for _, told := range []bool{true, false} {
		o := newOffice(t)
		o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
			p.Approvers[1].Cards = "#support-approvals"
		}))
		r := o.ask(`apply_discount {}`)
		card := o.show(o.only(r.ID, store.SurfaceCard))
		if told {
			o.vanishes(card)
		}
		o.approve(support, r.ID)
		if !told {
			o.ok(o.Vanished(o.ctx(), o.surface(card.ID)))
		}
		if got := o.surface(card.ID); got.State != store.SurfaceWanted || got.TS != "" {
			t.Errorf("told of: %t; it is %+v", told, got)
		}
	}
}

// TestWhatVanishesTwice comes back by itself less and less before its deadline, and in the end not at all: whoever deletes it wins.
func TestWhatVanishesTwice(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[0].Lead = "" }))
	r := o.ask(`apply_discount {}`)
	start := o.clock.Now()
	var again []time.Duration
	for range 5 {
		card := o.only(r.ID, store.SurfaceCard)
		card.Channel, card.TS = "C0002", o.id("ts")
		o.ok(o.Shown(o.ctx(), card, o.posted(card)))
		o.vanishes(o.surface(card.ID))
		timer, ok := o.timers(store.TimerRepost)[card.ID]
		if !ok {
			break
		}
		again = append(again, timer.Due.Sub(start))
		o.clock.pass(timer.Due.Sub(o.clock.Now()))
		o.due()
	}
	if want := []time.Duration{expiresAfter * 3 / 4, expiresAfter * 7 / 8, expiresAfter * 15 / 16}; !slices.Equal(again, want) {
		t.Errorf("posted again after %s; want %s", again, want)
	}
	o.clock.pass(expiresAfter)
	o.due()
	o.wantState(r.ID, approvers.Expired)
	if left := o.timers(store.TimerRepost); len(left) != 0 {
		t.Errorf("%d timers are left", len(left))
	}
}

// TestWhatDoesNotMatterStaysAway: a card that was decided, an answer, the notices.
func TestWhatDoesNotMatterStaysAway(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	o.show(o.only(r.ID, store.SurfaceCard))
	o.showThese(r.Turn)
	o.approve(support, r.ID)
	o.run(r.Execution, "ok")
	o.answer(r.Turn)
	o.showThese(r.ID, r.Turn)
	for _, ref := range []string{r.ID, r.Turn} {
		for _, s := range o.surfacesOf(ref) {
			if got := o.vanishes(s); got.State != store.SurfaceGone || got.TS != "" {
				t.Errorf("%s is %s", s.Kind, got.State)
			}
		}
	}
	o.say(bob, "hello?")
	if left := len(o.timers(store.TimerShow)) + len(o.timers(store.TimerRepost)); left != 0 {
		t.Errorf("%d things are to be shown", left)
	}
}

// TestVanishedInTheThread: what the asker's thread shows comes back with a word there: the step, a question of an approver's, the question about a run.
func TestVanishedInTheThread(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "one").Turn
	r := o.requestIn(turn, `issue_refund {"amount":1}`)
	o.question(lead, r.ID, "Really?")
	o.showThese(r.ID, turn)
	step, question := o.only(turn, store.SurfaceStep), o.only(r.ID, store.SurfaceQuestion)
	for _, s := range []store.Surface{step, question} {
		if got := o.vanishes(s); got.State != store.SurfaceVanished {
			t.Errorf("%s is %s", s.Kind, got.State)
		}
	}
	o.say(bob, "hello?")
	if a, b := o.surface(step.ID), o.surface(question.ID); a.State != store.SurfaceWanted || b.State != store.SurfaceWanted || a.TS+b.TS != "" {
		t.Errorf("they are %s and %s", a.State, b.State)
	}
	o.showThese(r.ID, turn)
	o.approve(lead, r.ID)
	_, _, err := o.Claim(o.ctx(), r.Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), r.Execution))
	o.showThese(r.ID, turn, r.Execution)
	asks := o.surfacesOf(r.Execution)[0]
	if got := o.vanishes(asks); got.State != store.SurfaceVanished || len(o.timers(store.TimerRepost)) == 0 {
		t.Errorf("the question about the run is %s", got.State)
	}
	o.say(bob, "and?")
	if got := o.surface(asks.ID); got.State != store.SurfaceWanted {
		t.Errorf("the question about the run is %s", got.State)
	}
	o.showThese(r.ID, turn, r.Execution)
	o.vanishes(o.surface(asks.ID))
	o.clock.pass(expiresAfter)
	o.due() // the model is told that nobody knows; people may still say
	if got := o.surface(asks.ID); got.State != store.SurfaceWanted {
		t.Errorf("the question about the run is %s near its deadline", got.State)
	}
	o.answer(turn)
}

// TestTheDeadlineIsPutOff: what vanished waits for the new one.
func TestTheDeadlineIsPutOff(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
	}))
	r := o.ask(`apply_discount {}`)
	o.showThese(r.ID, r.Turn)
	step := o.only(r.Turn, store.SurfaceStep)
	o.vanishes(step)
	o.clock.pass(expiresAfter / 2)
	o.approve(support, r.ID)
	o.clock.pass(expiresAfter / 2)
	o.due()
	if got := o.surface(step.ID); got.State != store.SurfaceVanished {
		t.Errorf("half of its new time is left, and it is %s", got.State)
	}
	o.clock.pass(expiresAfter / 4)
	o.due()
	if got := o.surface(step.ID); got.State != store.SurfaceWanted {
		t.Errorf("a quarter of its new time is left, and it is %s", got.State)
	}
}

// TestVanishedMeanwhile: a deletion that overtakes the record of the post, and one during an update, are not lost; what was posted anew because Slack let
// nothing be changed any more is told apart from what was there.
func TestVanishedMeanwhile(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	card := o.only(r.ID, store.SurfaceCard)
	card.Channel, card.TS = "C0002", "300.1"
	o.vanishes(card) // nobody knows yet what it showed
	o.ok(o.Shown(o.ctx(), card, o.posted(card)))
	if got := o.surface(card.ID); got.State != store.SurfaceVanished || got.Round != 1 {
		t.Fatalf("it is %+v", got)
	}
	o.say(bob, "hello?")
	back := o.surface(card.ID)
	back.Channel, back.TS = "C0002", "300.2"
	o.ok(o.Shown(o.ctx(), back, o.posted(back)))
	read := o.surface(card.ID)
	o.vanishes(read)
	o.ok(o.Shown(o.ctx(), read, o.posted(read))) // the answer to an update that was under way
	o.ok(o.StillShown(o.ctx(), read))
	if got := o.surface(card.ID); got.State != store.SurfaceVanished || got.Round != 2 || got.Posts != 3 {
		t.Errorf("it is %+v", got)
	}
	o.say(bob, "hello?")
	back = o.surface(card.ID)
	back.Channel, back.TS = "C0002", "300.3"
	o.ok(o.Shown(o.ctx(), back, o.posted(back)))
	o.ok(o.Replace(o.ctx(), back))
	o.ok(o.Replace(o.ctx(), back))
	if got := o.surface(card.ID); got.State != store.SurfaceWanted || got.Round != 3 || got.TS != "" {
		t.Errorf("it is %+v", got)
	}
}

// TestReminderFindsOut that a card is gone of which nobody told: it is posted again at once then.
func TestReminderFindsOut(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	card := o.show(o.only(r.ID, store.SurfaceCard))
	o.clock.pass(escalateAfter)
	o.due()
	read := o.surface(card.ID)
	if read.State != store.SurfaceWanted || !read.Insist {
		t.Fatalf("it is %+v", read)
	}
	o.ok(o.Vanished(o.ctx(), read))
	if got := o.surface(card.ID); got.State != store.SurfaceWanted || got.TS != "" || got.Insist || got.Round != 1 {
		t.Errorf("it is %+v", got)
	}
}
