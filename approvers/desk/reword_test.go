package desk_test

import (
	"fmt"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// spoken is an utterance in the thread, with a ts of the clock.
func (o *office) spoken(who approvers.Identity, text string) desk.Utterance {
	o.n++
	return desk.Utterance{
		Inbox: o.id("Ev"), At: o.clock.Now(), Team: "T0001", Thread: "100.1", TS: fmt.Sprintf("%d.%06d", o.clock.Now().Unix(), o.n), Who: who, Text: text,
		Start: true, Place: approvers.Place{Channel: "C0001", Name: "support"},
	}
}

// edit says the same message anew.
func (o *office) rewrite(u desk.Utterance, text string) desk.Heard {
	o.t.Helper()
	o.n++
	u.Inbox, u.Text, u.At, u.Edited = o.id("Ev"), text, o.clock.Now(), fmt.Sprintf("%d.%06d", o.clock.Now().Unix(), o.n)
	return o.hear(u)
}

// erase deletes a message in Slack, and tells of it as often as asked.
func (o *office) erase(u desk.Utterance, rest bool) {
	o.t.Helper()
	id := desk.DeletionID(u.Place.Channel, u.TS)
	_, err := o.Receive(o.ctx(), store.Inbox{ID: id, Kind: store.InboxEvent, ReceivedAt: o.clock.Now(), Payload: []byte("{}")}, "")
	o.ok(err)
	o.ok(o.Deleted(o.ctx(), desk.Deletion{Inbox: id, At: o.clock.Now(), Team: u.Team, Place: u.Place, Thread: u.Thread, TS: u.TS, Rest: rest}))
}

func (o *office) conversation(id string) store.Conversation {
	o.t.Helper()
	return view(o, func(r store.Reader) (store.Conversation, error) { return r.Conversation(id) })
}

// TestRewordedBeforeItWasRead: what the model was not given yet reads as it was edited last, and is not given to it once it is deleted.
func TestRewordedBeforeItWasRead(t *testing.T) {
	o := newOffice(t)
	first, second := o.spoken(alice, "refund 50"), o.spoken(bob, "and quickly")
	turn := o.hear(first).Turn
	o.hear(second)
	earlier := o.spoken(alice, "")
	if h := o.rewrite(first, "refund 60"); !h.Duplicate {
		t.Errorf("an edit was heard as %+v", h)
	}
	first.Inbox, first.Text, first.Edited = o.id("Ev"), "refund 55", earlier.TS // an edit before that one, which comes later
	o.hear(first)
	o.erase(second, false)
	if got := texts(o.begin(turn)); got != "refund 60" {
		t.Errorf("the model is given %q", got)
	}
	r := o.requestIn(turn, `issue_refund {"amount":60}`)
	if r.Facts.Reworded != nil || r.Facts.Quote != "refund 60" {
		t.Errorf("the card quotes %q, %+v", r.Facts.Quote, r.Facts.Reworded)
	}

	third, fourth := o.spoken(alice, "thank you"), o.spoken(bob, "hurry up")
	o.hear(third)
	o.hear(fourth)
	o.rewrite(third, "thanks")
	o.erase(fourth, false)
	notice := o.only(turn, store.SurfaceQueued)
	if sight, err := o.See(o.ctx(), notice.ID); err != nil || len(sight.Queued) != 1 || sight.Queued[0].Text != "thanks" || notice.State != store.SurfaceWanted {
		t.Errorf("it waits: %+v, %v; the notice is %s", sight.Queued, err, notice.State)
	}
	notice = o.show(notice)
	o.erase(third, false)
	if sight, err := o.See(o.ctx(), notice.ID); err != nil || len(sight.Queued) != 0 || o.surface(notice.ID).State != store.SurfaceWanted {
		t.Errorf("it waits: %+v, %v", sight.Queued, err)
	}
	o.ok(o.Gone(o.ctx(), o.surface(notice.ID)))
	o.hear(o.spoken(bob, "hello?")) // people are told anew
	if n := len(o.surfacesOf(turn)); n != 3 || o.surfacesOf(turn)[2].Kind != store.SurfaceQueued {
		t.Errorf("%d surfaces; want another notice", n)
	}
	o.approve(lead, r.ID)
	o.run(r.Execution, "refunded")
	o.answer(turn)
}

// TestTheOnlyMessageIsDeleted: the model is asked nothing, and the next message begins a turn as any other.
func TestTheOnlyMessageIsDeleted(t *testing.T) {
	o := newOffice(t)
	u := o.spoken(alice, "refund 50")
	turn := o.hear(u).Turn
	o.erase(u, false)
	o.erase(u, false)
	o.wantTurn(turn, approvers.TurnStopped)
	if left := o.timers(store.TimerThink); len(left) != 0 || len(o.surfacesOf(turn)) != 0 {
		t.Errorf("%d model calls are due, %d surfaces", len(left), len(o.surfacesOf(turn)))
	}
	u.Inbox = o.id("Ev") // its mention, late
	if h := o.hear(u); !h.Ignored || h.Turn != "" {
		t.Errorf("what was deleted was heard: %+v", h)
	}
	next := o.say(alice, "hello").Turn
	if got := texts(o.begin(next)); got != "hello" {
		t.Errorf("the model is given %q", got)
	}
	o.answer(next)
}

// TestRewordedAfterItWasRead: the model's history and the digest stay; whoever decides is told, and so is whoever asked.
func TestRewordedAfterItWasRead(t *testing.T) {
	o := newOffice(t)
	u := o.spoken(alice, "refund 50")
	turn := o.hear(u).Turn
	r := o.requestIn(turn, `issue_refund {"amount":50}`)
	card := o.show(o.only(r.ID, store.SurfaceCard))
	later := o.spoken(alice, "")
	o.rewrite(u, "refund 5000")
	o.rewrite(u, "refund 500")
	after := o.request(r.ID)
	if w := after.Facts.Reworded; w == nil || w.Text != "refund 500" || after.Digest != r.Digest || after.Facts.Quote != "refund 50" {
		t.Errorf("the request: %+v, %q", w, after.Facts.Quote)
	}
	if now := o.surface(card.ID); now.State != store.SurfaceWanted {
		t.Errorf("the card is %s", now.State)
	}
	u.Inbox, u.Text, u.Edited = o.id("Ev"), "refund 1", later.TS // it was before both
	o.hear(u)
	o.wantKinds(r.ID, "proposed shown reworded reworded")
	told := o.only(turn, store.SurfaceReworded)
	if sight, err := o.See(o.ctx(), told.ID); err != nil || sight.Reworded == nil || sight.Reworded.Reworded.Text != "refund 500" || len(sight.Calls) != 1 {
		t.Errorf("the asker is told of %+v, %v", sight.Reworded, err)
	}
	o.erase(u, true)
	o.rewrite(u, "refund 7") // Slack tells of it late
	if w := o.request(r.ID).Facts.Reworded; !w.Deleted || w.Text != "" {
		t.Errorf("after the deletion: %+v", w)
	}
	o.wantKinds(r.ID, "proposed shown reworded reworded reworded")
	o.wantState(r.ID, approvers.Pending) // a deletion withdraws nothing
	told = o.show(o.surface(told.ID))
	o.approve(lead, r.ID)
	if now := o.surface(told.ID); now.State != store.SurfaceWanted {
		t.Errorf("what the asker was told is %s after the decision", now.State)
	}
	o.run(r.Execution, "refunded")
	if got := texts(o.begin(turn)); got != "refund 50|Let me see." {
		t.Errorf("the model is given %q", got)
	}
	o.answer(turn)
	o.erase(u, true)
	o.wantKinds(r.ID, "proposed shown reworded reworded reworded decided approved executing executed returned")
}

// TestRewordedWhileTheModelThinks: the request comes after the edit, and from the words before it.
func TestRewordedWhileTheModelThinks(t *testing.T) {
	o := newOffice(t)
	u := o.spoken(alice, "refund 50")
	turn := o.hear(u).Turn
	b := o.begin(turn)
	o.rewrite(u, "refund 5")
	o.ok(o.Propose(o.ctx(), desk.Proposal{Turn: turn, Step: b.Turn.Step, Calls: calls(`issue_refund {"amount":50}`, `issue_refund {"amount":51}`), Authors: []approvers.PersonID{alice.ID}}))
	for _, c := range o.callsOf(turn) {
		r := o.request(c.Request)
		if w := r.Facts.Reworded; w == nil || w.Text != "refund 5" || r.Facts.Quote != "refund 50" {
			t.Errorf("the request: %+v, %q", w, r.Facts.Quote)
		}
	}
	o.only(turn, store.SurfaceReworded)
}

// TestEditsOvertakeTheirMessage: it is heard as it reads since, once. An old message that was never for the bot begins nothing by its edit.
func TestEditsOvertakeTheirMessage(t *testing.T) {
	o := newOffice(t)
	u := o.spoken(alice, "refund 50")
	turn := o.rewrite(u, "refund 60").Turn
	if h := o.hear(u); !h.Duplicate {
		t.Errorf("the message itself was heard too: %+v", h)
	}
	if got := texts(o.begin(turn)); got != "refund 60" {
		t.Errorf("the model is given %q", got)
	}
	o.answer(turn)

	gone := o.spoken(alice, "refund 70")
	o.erase(gone, false)
	if h := o.hear(gone); !h.Ignored {
		t.Errorf("it was deleted before it came: %+v", h)
	}
	old := o.spoken(alice, "refund 80")
	o.clock.pass(expiresAfter * 3)
	if h := o.rewrite(old, "refund 81"); !h.Ignored {
		t.Errorf("the edit of an old message was heard: %+v", h)
	}
}

// TestTheThreadGoes with its only message: what is to be said there goes to those who asked.
func TestTheThreadGoes(t *testing.T) {
	o := newOffice(t)
	u := o.spoken(alice, "refund 50")
	u.Thread = u.TS
	heard := o.hear(u)
	b := o.begin(heard.Turn)
	o.erase(u, true)
	if o.conversation(heard.Conversation).Gone {
		t.Error("a thread that goes on without its first message is gone")
	}
	o.ok(o.Deleted(o.ctx(), desk.Deletion{At: o.clock.Now(), Team: u.Team, Place: u.Place, Thread: u.TS, TS: u.TS})) // with its last reply
	if !o.conversation(heard.Conversation).Gone {
		t.Error("the thread is not gone")
	}
	o.ok(o.Answer(o.ctx(), heard.Turn, b.Turn.Step, "Done.", 1))
}
