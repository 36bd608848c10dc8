package workflow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/jobs"
)

// h.stop makes a person click the button Stop.
func (h *harness) stop(who approvers.Identity, turn string) error {
	h.t.Helper()
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Turn: turn}
	h.receive(c)
	return h.Turns.StopBy(h.ctx(), c)
}

// sayStop makes a person write the word "stop" in the thread.
func (h *harness) sayStop(who approvers.Identity) workflow.MessageResult {
	h.t.Helper()
	return h.hear(workflow.IncomingMessage{
		Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", Thread: "100.1", TS: "900." + h.id("ts"), Who: who, Text: "stop", Stop: true,
		Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
	})
}

// If a turn is stopped during a model call, the turn ends immediately, and the bot drops the model's output. Messages
// that waited for the end of the turn begin the next turn.
func TestStopWhileThinking(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	b := h.begin(turn)
	next := h.say(alice, "something else")
	h.ok(h.stop(bob, turn))
	if err := h.Turns.Answer(h.ctx(), turn, b.Turn.Step, "too late", nil, 1); !errors.Is(err, workflow.ErrNotDue) {
		t.Errorf("an answer after the stop: %v", err)
	}
	tn := h.turn(turn)
	if tn.State != approvers.TurnStopped || tn.Problem != "U0200 stopped this." || !tn.CanRetry {
		t.Errorf("the turn is %+v", tn)
	}
	if !next.Queued {
		t.Error("the next message did not wait")
	}
	wantDenied(t, h.stop(alice, turn), approvers.DeniedNothing)
	under, err := h.Views.TurnAt(h.ctx(), "T0001", "C0001", "100.1")
	if h.ok(err); under == "" || under == turn {
		t.Errorf("the turn under way is %q", under)
	}
}

// A stop withdraws calls that wait for people or for their run. Each call gets one result, no call runs, and the turn
// ends.
func TestStopWhileWaiting(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	calls := h.propose(turn, `issue_refund {"amount":20}`, `apply_discount {"amount":1}`, `search_orders {}`)
	h.approve(support, calls[1].Request)
	if heard := h.sayStop(alice); !heard.Stopped || heard.Queued {
		t.Errorf("the message's result: %+v", heard)
	}
	for _, c := range calls {
		h.wantOutcome(c.ID, approvers.OutcomeWithdrawn)
		h.notRun(c.Execution)
	}
	h.wantTurn(turn, approvers.TurnStopped)
	h.wantState(calls[0].Request, approvers.Withdrawn)
	h.wantState(calls[1].Request, approvers.Withdrawn)
	if left := h.timers(store.TimerRun, store.TimerThink, store.TimerExpire); len(left) > 0 {
		t.Errorf("timers are left: %v", left)
	}
	if heard := h.sayStop(alice); heard.Stopped {
		t.Error("a second stop found something to stop")
	}
}

// If the tool of a stopped run returns a result, the run has this outcome. If the tool returns no result, the outcome
// is unknown and the bot asks people. The turn does not wait for their answer.
func TestStopWhileRunning(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		end        func(h *harness, execution string)
		want       approvers.Outcome
		state      approvers.ExecutionState
	}{
		{"the tool succeeds", "search_orders", func(h *harness, e string) { h.ok(h.Runs.Finish(h.ctx(), e, true, "found")) }, approvers.OutcomeExecuted, approvers.ExecutionSucceeded},
		{"the tool can't tell the outcome", "update_address", func(h *harness, e string) { h.ok(h.Runs.MarkUnknown(h.ctx(), e)) }, approvers.OutcomeUnknown, approvers.ExecutionUnknown},
		{"the process stops, and it only reads", "search_orders", func(h *harness, e string) { h.reopen(); h.notRun(e) }, approvers.OutcomeError, approvers.ExecutionFailed},
		{"the process stops, and it could run again", "update_address", func(h *harness, e string) { h.reopen(); h.notRun(e) }, approvers.OutcomeUnknown, approvers.ExecutionUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			turn := h.say(alice, "please").Turn
			call := h.propose(turn, c.tool+` {}`)[0]
			_, run, err := h.Runs.Claim(h.ctx(), call.Execution)
			if h.ok(err); !run {
				t.Fatal("the call was not claimed")
			}
			h.ok(h.stop(alice, turn))
			h.wantTurn(turn, approvers.TurnWaiting)
			wantDenied(t, h.stop(alice, turn), approvers.DeniedNothing)
			c.end(h, call.Execution)
			h.wantOutcome(call.ID, c.want)
			if e := h.execution(call.Execution); e.State != c.state {
				t.Errorf("the run is %s", e.State)
			}
			h.wantTurn(turn, approvers.TurnStopped)
		})
	}
}

// People who may not ask the agent can't stop its turns.
func TestStopIsForThoseWhoMayAsk(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	for code, change := range map[approvers.Code]func(*approvers.Identity){
		approvers.DeniedForeign: func(i *approvers.Identity) { i.Foreign = true },
		approvers.DeniedGuest:   func(i *approvers.Identity) { i.Guest = true },
		approvers.DeniedBot:     func(i *approvers.Identity) { i.Bot = true },
	} {
		who := bob
		change(&who)
		wantDenied(t, h.stop(who, turn), code)
	}
	wantDenied(t, h.stop(alice, "turn_none"), approvers.DeniedNotFound)
	h.wantTurn(turn, approvers.TurnQueued)
}

// The commit of a stop cancels the contexts of the stopped turn's handlers, and no other contexts.
func TestStopEndsContexts(t *testing.T) {
	h := newHarness(t)
	mine := h.say(alice, "please").Turn
	other := h.sayIn("300.1", bob, "please").Turn
	began, ended := make(chan string, 2), make(chan error, 1)
	ctx, quit := context.WithCancel(h.ctx())
	done := make(chan error)
	go func() {
		done <- h.Work(ctx, map[store.TimerKind]jobs.Worker{store.TimerThink: {Concurrency: 2, Handle: func(ctx context.Context, t store.Timer) error {
			began <- t.Ref
			<-ctx.Done()
			if t.Ref == mine {
				ended <- context.Cause(ctx)
			} else if quit := context.Cause(ctx); errors.Is(quit, workflow.ErrStopped) {
				h.t.Error("the other turn was stopped, too")
			}
			return ctx.Err()
		}}})
	}()
	if first, second := <-began, <-began; first == second || other == mine {
		t.Fatal("the turns did not begin to think")
	}
	h.ok(h.stop(alice, mine))
	if cause := <-ended; !errors.Is(cause, workflow.ErrStopped) {
		t.Errorf("it ended with %v", cause)
	}
	quit()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A message that stops the turn is not for the model. If a person then resumes the turn, the model does not get the
// message, and later cards do not quote it. The author of the message is not a requester.
func TestStopInWordsIsNotForTheModel(t *testing.T) {
	for name, before := range map[string]func(h *harness, turn string){
		"while the turn waits for the model": func(*harness, string) {},
		"during the model call":              func(h *harness, turn string) { h.begin(turn) },
		"while a call waits for people":      func(h *harness, turn string) { h.propose(turn, `issue_refund {"amount":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			u := h.spoken(alice, "give Acme a discount")
			turn := h.hear(u).Turn
			before(h, turn)
			stop := h.spoken(bob, "stop")
			stop.Stop = true
			if heard := h.hear(stop); !heard.Stopped {
				t.Fatalf("the message's result: %+v", heard)
			}
			h.wantTurn(turn, approvers.TurnStopped)
			h.ok(h.Turns.TryAgain(h.ctx(), workflow.Click{Who: alice, Turn: turn}))
			for _, m := range h.begin(turn).Messages {
				if m.Text == "stop" {
					t.Error("the model gets the message")
				}
			}
			h.wantAskedBy(h.requestIn(turn, `apply_discount {}`), u)
		})
	}
}

// A pause interrupts a repeatable run, which waits for the end of the pause. If somebody stops its turn meanwhile, the
// run ends during the pause, and so does the turn. The tool is not called again.
func TestStopEndsARunThatWaitsForAPause(t *testing.T) {
	for tool, want := range map[string]approvers.Outcome{"update_address": approvers.OutcomeUnknown, "search_orders": approvers.OutcomeError} {
		t.Run(tool, func(t *testing.T) {
			h := newHarness(t)
			turn := h.say(alice, "please").Turn
			call := h.propose(turn, tool+` {}`)[0]
			_, run, err := h.Runs.Claim(h.ctx(), call.Execution)
			if h.ok(err); !run {
				t.Fatal("the call was not claimed")
			}
			h.ok(h.Pauses.Pause(h.ctx(), approvers.Operator("ann"), "a drill"))
			h.ok(h.Runs.PutBack(h.ctx(), call.Execution))
			if _, _, err := h.Runs.Claim(h.ctx(), call.Execution); !errors.Is(err, workflow.ErrPaused) {
				t.Fatalf("a claim during the pause: %v", err)
			}
			ctx, quit := context.WithCancel(h.ctx())
			claimed, done := make(chan error, 1), make(chan error)
			go func() {
				done <- h.Work(ctx, map[store.TimerKind]jobs.Worker{store.TimerRun: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
					_, run, err := h.Runs.Claim(ctx, timer.Ref)
					if run {
						err = errors.New("the tool would be called")
					}
					claimed <- err
					return nil
				}}})
			}()
			h.ok(h.stop(alice, turn))
			select {
			case err := <-claimed:
				if err != nil {
					t.Errorf("the claim after the stop: %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("the run still waits for the end of the pause")
			}
			quit()
			h.ok(<-done)
			h.wantOutcome(call.ID, want)
			h.wantTurn(turn, approvers.TurnStopped)
			if next := h.say(bob, "something else"); next.Queued {
				t.Error("the next message waits for the stopped turn")
			}
		})
	}
}
