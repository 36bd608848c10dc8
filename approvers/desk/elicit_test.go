package desk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

var trip = desk.Elicitation{From: "the server travel", Text: "Where to?", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}

// asks has a run of alice's ask, and waits until the question is there. done gives what Elicit returned.
func (o *office) asks(ask desk.Elicitation) (execution string, q approvers.Elicitation, done <-chan error) {
	o.t.Helper()
	call := o.propose(o.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
	if _, ran, err := o.Claim(o.ctx(), call.Execution); err != nil || !ran {
		o.t.Fatalf("claim: %t, %v", ran, err)
	}
	q, done = o.asksMore(o.ctx(), call.Execution, ask)
	return call.Execution, q, done
}

func (o *office) asksMore(ctx context.Context, execution string, ask desk.Elicitation) (q approvers.Elicitation, done <-chan error) {
	o.t.Helper()
	before := len(o.elicitations(execution))
	ended := make(chan error, 1)
	d := o.Desk
	go func() {
		_, err := d.Elicit(ctx, execution, ask, func() string { return "its context ended" })
		ended <- err
	}()
	give := time.After(time.Minute)
	for {
		if list := o.elicitations(execution); len(list) > before {
			return list[len(list)-1], ended
		}
		select {
		case err := <-ended:
			o.t.Fatalf("it did not ask: %v", err)
		case <-give:
			o.t.Fatal("it did not ask")
		case <-time.After(time.Millisecond):
		}
	}
}

func (o *office) elicitations(execution string) []approvers.Elicitation {
	o.t.Helper()
	return view(o, func(r store.Reader) ([]approvers.Elicitation, error) { return r.Elicitations(execution) })
}

func (o *office) elicitation(id string) approvers.Elicitation {
	o.t.Helper()
	return view(o, func(r store.Reader) (approvers.Elicitation, error) { return r.Elicitation(id) })
}

func (o *office) woken(done <-chan error) {
	o.t.Helper()
	select {
	case err := <-done:
		o.ok(err)
	case <-time.After(time.Minute):
		o.t.Fatal("the run that waits was not woken")
	}
}

func (o *office) respond(who approvers.Identity, q, values string) error {
	return o.Respond(o.ctx(), desk.Click{At: o.clock.Now(), Who: who, Elicitation: q}, json.RawMessage(values))
}

// An answer wakes the run, is in the history without its words, and leaves the run its time.
func TestElicitationIsAnswered(t *testing.T) {
	o := newOffice(t)
	execution, q, done := o.asks(trip)
	if s := o.only(q.ID, store.SurfaceElicit); s.To != "conversation:"+q.Conversation || q.Asked != alice.ID {
		t.Errorf("%s is asked at %s", q.Asked, s.To)
	}
	timers := o.timers(store.TimerElicit, store.TimerRun)
	if due := timers[q.ID].Due; !due.Equal(q.ExpiresAt) || !q.ExpiresAt.Equal(o.clock.Now().Add(desk.AnswerWithin)) {
		t.Errorf("it ends at %s", due)
	}
	if due := timers[execution].Due; due.Before(q.ExpiresAt.Add(time.Minute)) {
		t.Errorf("the run counts until %s, and the answer until %s", due, q.ExpiresAt)
	}
	wantDenied(t, o.respond(bob, q.ID, `{"city":"x"}`), approvers.DeniedNotAsked)
	wantDenied(t, o.respond(alice, "ask_none", `{}`), approvers.DeniedNotFound)
	o.clock.pass(5 * time.Minute)
	o.ok(o.respond(alice, q.ID, `{"city":"Roswell"}`))
	o.woken(done)
	if got := o.elicitation(q.ID); got.State != approvers.ElicitationAccepted || string(got.Values) != `{"city":"Roswell"}` {
		t.Errorf("it is %+v", got)
	}
	wantDenied(t, o.respond(alice, q.ID, `{"city":"again"}`), approvers.DeniedAnswered)
	wantDenied(t, o.Decline(o.ctx(), desk.Click{At: o.clock.Now(), Who: alice, Elicitation: q.ID}), approvers.DeniedAnswered)
	if due := o.timers(store.TimerRun)[execution].Due; !due.After(o.clock.Now()) || due.After(o.clock.Now().Add(2*time.Hour)) {
		t.Errorf("the run counts until %s", due)
	}
	facts, body := o.lastFacts(execution, approvers.AuditReplied)
	if facts["state"] != "accepted" || strings.Contains(fmt.Sprint(facts), "Roswell") || !strings.Contains(body, "Roswell") {
		t.Errorf("the record is %v with %s", facts, body)
	}
	o.ok(o.Finish(o.ctx(), execution, true, "done"))
	o.answer(o.execution(execution).Turn)
	_, err := o.Erase(o.ctx(), execution, approvers.Operator("root"), "asked to")
	o.ok(err)
	if left := o.written(o.execution(execution).Turn); strings.Contains(left, "Roswell") || strings.Contains(left, "Where to") {
		t.Errorf("the store still has %s", left)
	}
}

// Whatever ends the run or its time ends the question, once, and wakes the run.
func TestElicitationsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(o *office, e approvers.Execution, q approvers.Elicitation)
		want approvers.ElicitationState
		why  string
	}{
		"the deadline": {func(o *office, _ approvers.Execution, q approvers.Elicitation) {
			o.ok(o.LapseElicitation(o.ctx(), store.Timer{Kind: store.TimerElicit, Ref: q.ID}))
			if o.elicitation(q.ID).State != approvers.ElicitationOpen {
				o.t.Error("it ended before its time")
			}
			o.clock.pass(desk.AnswerWithin)
			o.ok(o.LapseElicitation(o.ctx(), store.Timer{Kind: store.TimerElicit, Ref: q.ID}))
		}, approvers.ElicitationExpired, ""},
		"the end of the run": {func(o *office, e approvers.Execution, _ approvers.Elicitation) {
			o.ok(o.Finish(o.ctx(), e.ID, true, "without it"))
		}, approvers.ElicitationCancelled, "the run ended"},
		"a run that is lost": {func(o *office, e approvers.Execution, _ approvers.Elicitation) { o.ok(o.Lose(o.ctx(), e.ID)) }, approvers.ElicitationCancelled, "the run ended"},
		"a pause": {func(o *office, _ approvers.Execution, _ approvers.Elicitation) {
			o.ok(o.Pause(o.ctx(), approvers.Operator("root"), ""))
			o.ok(o.Resume(o.ctx(), approvers.Operator("root"), ""))
		}, approvers.ElicitationCancelled, "paused"},
		"a stop": {func(o *office, e approvers.Execution, _ approvers.Elicitation) {
			o.ok(o.Halt(o.ctx(), desk.Click{At: o.clock.Now(), Who: alice, Turn: e.Turn}))
		}, approvers.ElicitationCancelled, "the agent was stopped"},
		"going on": {func(o *office, e approvers.Execution, _ approvers.Elicitation) {
			o.sayIn("", alice, "something else")
			o.ok(o.GoOn(o.ctx(), desk.Click{At: o.clock.Now(), Who: alice, Turn: e.Turn}))
		}, approvers.ElicitationCancelled, "went on to something else"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			execution, q, done := o.asks(trip)
			c.end(o, o.execution(execution), q)
			o.woken(done)
			if got := o.elicitation(q.ID); got.State != c.want || !strings.Contains(got.Why, c.why) {
				t.Errorf("it is %s, because %q", got.State, got.Why)
			}
			if _, left := o.timers(store.TimerElicit)[q.ID]; left {
				t.Error("its timer is left")
			}
			code := approvers.DeniedAnswered
			if c.want == approvers.ElicitationExpired {
				code = approvers.DeniedLateAnswer
			}
			wantDenied(t, o.respond(alice, q.ID, `{}`), code)
			if e := o.execution(execution); e.State == approvers.ExecutionExecuting {
				o.ok(o.Finish(o.ctx(), execution, true, "after all"))
			}
		})
	}
}

// A context that ends cancels the question; a run asks five times at most, and sixteen at once wait for people.
func TestElicitationsAreBounded(t *testing.T) {
	o := newOffice(t)
	execution, q, done := o.asks(trip)
	for n := 2; n <= desk.MaxElicitations; n++ {
		ctx, cancel := context.WithCancel(o.ctx())
		more, gone := o.asksMore(ctx, execution, trip)
		cancel()
		o.woken(gone)
		if got := o.elicitation(more.ID); got.State != approvers.ElicitationCancelled || got.Why != "its context ended" {
			t.Errorf("it is %s, because %q", got.State, got.Why)
		}
	}
	if _, err := o.Elicit(o.ctx(), execution, trip, nil); !errors.Is(err, desk.ErrTooManyElicitations) {
		t.Errorf("one too many: %v", err)
	}
	o.ok(o.respond(alice, q.ID, `{}`))
	o.woken(done)
	o.ok(o.Finish(o.ctx(), execution, true, "done"))
	if _, err := o.Elicit(o.ctx(), execution, trip, nil); !errors.Is(err, desk.ErrNotDue) {
		t.Errorf("after the end: %v", err)
	}
}

// After a crash the question of the dead process is cancelled with the run, and whoever answers before that is told so.
func TestElicitationOfADeadProcess(t *testing.T) {
	for name, answersFirst := range map[string]bool{"the run is taken up": false, "somebody answers first": true} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			ctx, stop := context.WithCancel(o.ctx())
			call := o.propose(o.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
			if _, ran, err := o.Claim(o.ctx(), call.Execution); err != nil || !ran {
				t.Fatalf("claim: %t, %v", ran, err)
			}
			q, done := o.asksMore(ctx, call.Execution, trip)
			o.reopen() // the process is gone with whoever waits
			stop()
			<-done
			if got := o.elicitation(q.ID); got.State != approvers.ElicitationOpen {
				t.Fatalf("it is %s", got.State)
			}
			if answersFirst {
				wantDenied(t, o.respond(alice, q.ID, `{"city":"x"}`), approvers.DeniedAnswered)
			} else {
				o.ok(o.Recover(o.ctx()))
				if e, ran, err := o.Claim(o.ctx(), call.Execution); err != nil || !ran || e.Tries != 2 {
					t.Fatalf("the next try: %t, %v", ran, err)
				}
			}
			if got := o.elicitation(q.ID); got.State != approvers.ElicitationCancelled || !strings.Contains(got.Why, "the process stopped") {
				t.Errorf("it is %s, because %q", got.State, got.Why)
			}
			if !answersFirst {
				o.ok(o.Finish(o.ctx(), call.Execution, true, "done"))
			}
		})
	}
}
