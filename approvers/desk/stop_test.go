package desk_test

import (
	"context"
	"errors"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// stop has somebody click Stop.
func (o *office) stop(who approvers.Identity, turn string) error {
	o.t.Helper()
	c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: who, Turn: turn}
	o.receive(c)
	return o.Halt(o.ctx(), c)
}

// say stops in words.
func (o *office) sayStop(who approvers.Identity) desk.Heard {
	o.t.Helper()
	return o.hear(desk.Utterance{
		Inbox: o.id("Ev"), At: o.clock.Now(), Team: "T0001", Thread: "100.1", TS: "900." + o.id("ts"), Who: who, Text: "stop", Halt: true,
		Place: approvers.Place{Channel: "C0001", Name: "support"},
	})
}

// A turn that thinks stops at once, and nothing is kept of what the model says after that. What was written meanwhile begins the next one.
func TestStopWhileThinking(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	b := o.begin(turn)
	next := o.say(alice, "something else")
	o.ok(o.stop(bob, turn))
	if err := o.Answer(o.ctx(), turn, b.Turn.Step, "too late", 1); !errors.Is(err, desk.ErrNotDue) {
		t.Errorf("an answer after the stop: %v", err)
	}
	tn := o.turn(turn)
	if tn.State != approvers.TurnStopped || tn.Problem != "U0200 stopped this." || !tn.CanRetry {
		t.Errorf("the turn is %+v", tn)
	}
	if !next.Queued {
		t.Error("the next message did not wait")
	}
	wantDenied(t, o.stop(alice, turn), approvers.DeniedNothing)
	under, err := o.TurnAt(o.ctx(), "T0001", "C0001", "100.1")
	if o.ok(err); under == "" || under == turn {
		t.Errorf("under way is %q", under)
	}
}

// Stopping takes back what waits, for people or for its turn to run. Each call has its one result, nothing of it runs, and the turn stops.
func TestStopWhileWaiting(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	calls := o.propose(turn, `issue_refund {"amount":20}`, `apply_discount {"amount":1}`, `search_orders {}`)
	o.approve(support, calls[1].Request)
	if heard := o.sayStop(alice); !heard.Halted || heard.Queued {
		t.Errorf("heard: %+v", heard)
	}
	for _, c := range calls {
		o.wantOutcome(c.ID, approvers.OutcomeWithdrawn)
		o.notRun(c.Execution)
	}
	o.wantTurn(turn, approvers.TurnStopped)
	o.wantState(calls[0].Request, approvers.Withdrawn)
	o.wantState(calls[1].Request, approvers.Withdrawn)
	if left := o.timers(store.TimerRun, store.TimerThink, store.TimerExpire); len(left) > 0 {
		t.Errorf("timers are left: %v", left)
	}
	if heard := o.sayStop(alice); heard.Halted {
		t.Error("a second stop found something to stop")
	}
}

// A run that was stopped ends as it did: what it still says counts; where it can't tell, people are asked, and nobody waits for them.
func TestStopWhileRunning(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		end        func(o *office, execution string)
		want       approvers.Outcome
		state      approvers.ExecutionState
	}{
		{"it is through", "search_orders", func(o *office, e string) { o.ok(o.Finish(o.ctx(), e, true, "found")) }, approvers.OutcomeExecuted, approvers.ExecutionSucceeded},
		{"it can't tell", "update_address", func(o *office, e string) { o.ok(o.Lose(o.ctx(), e)) }, approvers.OutcomeUnknown, approvers.ExecutionUnknown},
		{"the process stops, and it only reads", "search_orders", func(o *office, e string) { o.reopen(); o.notRun(e) }, approvers.OutcomeError, approvers.ExecutionFailed},
		{"the process stops, and it could run again", "update_address", func(o *office, e string) { o.reopen(); o.notRun(e) }, approvers.OutcomeUnknown, approvers.ExecutionUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice(t)
			turn := o.say(alice, "please").Turn
			call := o.propose(turn, c.tool+` {}`)[0]
			_, run, err := o.Claim(o.ctx(), call.Execution)
			if o.ok(err); !run {
				t.Fatal("it was not to be run")
			}
			o.ok(o.stop(alice, turn))
			o.wantTurn(turn, approvers.TurnWaiting)
			wantDenied(t, o.stop(alice, turn), approvers.DeniedNothing)
			c.end(o, call.Execution)
			o.wantOutcome(call.ID, c.want)
			if e := o.execution(call.Execution); e.State != c.state {
				t.Errorf("the run is %s", e.State)
			}
			o.wantTurn(turn, approvers.TurnStopped)
		})
	}
}

// Who may not ask the agent may not stop it.
func TestStopIsForThoseWhoMayAsk(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	for code, change := range map[approvers.Code]func(*approvers.Identity){
		approvers.DeniedForeign: func(i *approvers.Identity) { i.Foreign = true },
		approvers.DeniedGuest:   func(i *approvers.Identity) { i.Guest = true },
		approvers.DeniedBot:     func(i *approvers.Identity) { i.Bot = true },
	} {
		who := bob
		change(&who)
		wantDenied(t, o.stop(who, turn), code)
	}
	wantDenied(t, o.stop(alice, "turn_none"), approvers.DeniedNotFound)
	o.wantTurn(turn, approvers.TurnQueued)
}

// The contexts of what is under way for a turn end with the commit of its stop, and no others.
func TestStopEndsContexts(t *testing.T) {
	o := newOffice(t)
	mine := o.say(alice, "please").Turn
	other := o.sayIn("300.1", bob, "please").Turn
	began, ended := make(chan string, 2), make(chan error, 1)
	ctx, quit := context.WithCancel(o.ctx())
	done := make(chan error)
	go func() {
		done <- o.Work(ctx, map[store.TimerKind]desk.Duty{store.TimerThink: {Workers: 2, Handle: func(ctx context.Context, t store.Timer) error {
			began <- t.Ref
			<-ctx.Done()
			if t.Ref == mine {
				ended <- context.Cause(ctx)
			} else if quit := context.Cause(ctx); errors.Is(quit, desk.ErrStopped) {
				o.t.Error("the other turn was stopped, too")
			}
			return ctx.Err()
		}}})
	}()
	if first, second := <-began, <-began; first == second || other == mine {
		t.Fatal("the turns did not begin to think")
	}
	o.ok(o.stop(alice, mine))
	if cause := <-ended; !errors.Is(cause, desk.ErrStopped) {
		t.Errorf("it ended with %v", cause)
	}
	quit()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
