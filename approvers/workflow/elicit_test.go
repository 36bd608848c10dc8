package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/store"
)

var trip = workflow.Elicitation{From: "the server travel", Text: "Where to?", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}

// h.asks starts a run that alice asked for, makes the run ask a question, and waits until the question is stored. The
// channel done receives the error that Elicit returns.
func (h *harness) asks(ask workflow.Elicitation) (execution string, q approvers.Elicitation, done <-chan error) {
	h.t.Helper()
	call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
	if _, ran, err := h.Runs.Claim(h.ctx(), call.Execution); err != nil || !ran {
		h.t.Fatalf("claim: %t, %v", ran, err)
	}
	q, done = h.asksMore(h.ctx(), call.Execution, ask)
	return call.Execution, q, done
}

func (h *harness) asksMore(ctx context.Context, execution string, ask workflow.Elicitation) (q approvers.Elicitation, done <-chan error) {
	h.t.Helper()
	before := len(h.elicitations(execution))
	ended := make(chan error, 1)
	wf := h.Workflow
	go func() {
		_, err := wf.Questions.Elicit(ctx, execution, ask, func() string { return "its context ended" })
		ended <- err
	}()
	give := time.After(time.Minute)
	for {
		if list := h.elicitations(execution); len(list) > before {
			return list[len(list)-1], ended
		}
		select {
		case err := <-ended:
			h.t.Fatalf("it did not ask: %v", err)
		case <-give:
			h.t.Fatal("it did not ask")
		case <-time.After(time.Millisecond):
		}
	}
}

func (h *harness) elicitations(execution string) []approvers.Elicitation {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]approvers.Elicitation, error) { return r.Elicitations(execution) })
}

func (h *harness) elicitation(id string) approvers.Elicitation {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (approvers.Elicitation, error) { return r.Elicitation(id) })
}

func (h *harness) woken(done <-chan error) {
	h.t.Helper()
	select {
	case err := <-done:
		h.ok(err)
	case <-time.After(time.Minute):
		h.t.Fatal("the run that waits was not woken")
	}
}

func (h *harness) respond(who approvers.Identity, q, values string) error {
	return h.Questions.Respond(h.ctx(), workflow.Click{At: h.clock.Now(), Who: who, Elicitation: q}, json.RawMessage(values))
}

// An answer to a run's question wakes the run. The audit gets a record of the answer without its text. The wait for the
// answer does not count towards the run's timeout.
func TestElicitationIsAnswered(t *testing.T) {
	h := newHarness(t)
	execution, q, done := h.asks(trip)
	if s := h.only(q.ID, store.OutboxElicitation); s.To != "conversation:"+q.Conversation || q.Asked != alice.ID {
		t.Errorf("%s is asked at %s", q.Asked, s.To)
	}
	timers := h.timers(store.TimerElicit, store.TimerRun)
	if due := timers[q.ID].Due; !due.Equal(q.ExpiresAt) || !q.ExpiresAt.Equal(h.clock.Now().Add(workflow.AnswerWithin)) {
		t.Errorf("it ends at %s", due)
	}
	if due := timers[execution].Due; due.Before(q.ExpiresAt.Add(time.Minute)) {
		t.Errorf("the run counts as under way until %s, and can be answered until %s", due, q.ExpiresAt)
	}
	wantDenied(t, h.respond(bob, q.ID, `{"city":"x"}`), approvers.DeniedNotAsked)
	wantDenied(t, h.respond(alice, "ask_none", `{}`), approvers.DeniedNotFound)
	h.clock.pass(5 * time.Minute)
	h.ok(h.respond(alice, q.ID, `{"city":"Roswell"}`))
	h.woken(done)
	if got := h.elicitation(q.ID); got.State != approvers.ElicitationAccepted || string(got.Values) != `{"city":"Roswell"}` {
		t.Errorf("it is %+v", got)
	}
	wantDenied(t, h.respond(alice, q.ID, `{"city":"again"}`), approvers.DeniedAnswered)
	wantDenied(t, h.Questions.Decline(h.ctx(), workflow.Click{At: h.clock.Now(), Who: alice, Elicitation: q.ID}), approvers.DeniedAnswered)
	if due := h.timers(store.TimerRun)[execution].Due; !due.After(h.clock.Now()) || due.After(h.clock.Now().Add(2*time.Hour)) {
		t.Errorf("the run counts as under way until %s", due)
	}
	facts, body := h.lastFacts(execution, approvers.AuditReplied)
	if facts["state"] != "accepted" || strings.Contains(fmt.Sprint(facts), "Roswell") || !strings.Contains(body, "Roswell") {
		t.Errorf("the record is %v with %s", facts, body)
	}
	h.ok(h.Runs.Finish(h.ctx(), execution, true, "done"))
	h.answer(h.execution(execution).Turn)
	_, err := retention.Erase(h.ctx(), h.Workflow, execution, approvers.Operator("root"), "asked to")
	h.ok(err)
	if left := h.written(h.execution(execution).Turn); strings.Contains(left, "Roswell") || strings.Contains(left, "Where to") {
		t.Errorf("the store still has %s", left)
	}
}

// A question of a run ends exactly once, for example when the run ends or the question's time is over. The end of the
// question wakes the run.
func TestElicitationsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(h *harness, e approvers.Execution, q approvers.Elicitation)
		want approvers.ElicitationState
		why  string
	}{
		"the deadline": {func(h *harness, _ approvers.Execution, q approvers.Elicitation) {
			h.ok(h.Questions.Lapse(h.ctx(), store.Timer{Kind: store.TimerElicit, Ref: q.ID}))
			if h.elicitation(q.ID).State != approvers.ElicitationOpen {
				h.t.Error("it ended before its time")
			}
			h.clock.pass(workflow.AnswerWithin)
			h.ok(h.Questions.Lapse(h.ctx(), store.Timer{Kind: store.TimerElicit, Ref: q.ID}))
		}, approvers.ElicitationExpired, ""},
		"the end of the run": {func(h *harness, e approvers.Execution, _ approvers.Elicitation) {
			h.ok(h.Runs.Finish(h.ctx(), e.ID, true, "without it"))
		}, approvers.ElicitationCancelled, "the run ended"},
		"a run that is lost": {func(h *harness, e approvers.Execution, _ approvers.Elicitation) {
			h.ok(h.Runs.MarkUnknown(h.ctx(), e.ID))
		}, approvers.ElicitationCancelled, "the run ended"},
		"a pause": {func(h *harness, _ approvers.Execution, _ approvers.Elicitation) {
			h.ok(h.Pauses.Pause(h.ctx(), approvers.Operator("root"), ""))
			h.ok(h.Pauses.Resume(h.ctx(), approvers.Operator("root"), ""))
		}, approvers.ElicitationCancelled, "paused"},
		"a stop": {func(h *harness, e approvers.Execution, _ approvers.Elicitation) {
			h.ok(h.Turns.StopBy(h.ctx(), workflow.Click{At: h.clock.Now(), Who: alice, Turn: e.Turn}))
		}, approvers.ElicitationCancelled, "the agent was stopped"},
		"withdrawing": {func(h *harness, e approvers.Execution, _ approvers.Elicitation) {
			h.sayIn("", alice, "something else")
			h.ok(h.Requests.WithdrawAll(h.ctx(), workflow.Click{At: h.clock.Now(), Who: alice, Turn: e.Turn}))
		}, approvers.ElicitationCancelled, "continued with something else"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			execution, q, done := h.asks(trip)
			c.end(h, h.execution(execution), q)
			h.woken(done)
			if got := h.elicitation(q.ID); got.State != c.want || !strings.Contains(got.Why, c.why) {
				t.Errorf("it is %s, because %q", got.State, got.Why)
			}
			if _, left := h.timers(store.TimerElicit)[q.ID]; left {
				t.Error("its timer is left")
			}
			code := approvers.DeniedAnswered
			if c.want == approvers.ElicitationExpired {
				code = approvers.DeniedLateAnswer
			}
			wantDenied(t, h.respond(alice, q.ID, `{}`), code)
			if e := h.execution(execution); e.State == approvers.ExecutionExecuting {
				h.ok(h.Runs.Finish(h.ctx(), execution, true, "after all"))
			}
		})
	}
}

// The cancellation of a run's context cancels the run's question. A run can ask at most five questions.
func TestElicitationsAreBounded(t *testing.T) {
	h := newHarness(t)
	execution, q, done := h.asks(trip)
	for n := 2; n <= workflow.MaxElicitations; n++ {
		ctx, cancel := context.WithCancel(h.ctx())
		more, gone := h.asksMore(ctx, execution, trip)
		cancel()
		h.woken(gone)
		if got := h.elicitation(more.ID); got.State != approvers.ElicitationCancelled || got.Why != "its context ended" {
			t.Errorf("it is %s, because %q", got.State, got.Why)
		}
	}
	if _, err := h.Questions.Elicit(h.ctx(), execution, trip, nil); !errors.Is(err, workflow.ErrTooManyElicitations) {
		t.Errorf("one too many: %v", err)
	}
	h.ok(h.respond(alice, q.ID, `{}`))
	h.woken(done)
	h.ok(h.Runs.Finish(h.ctx(), execution, true, "done"))
	if _, err := h.Questions.Elicit(h.ctx(), execution, trip, nil); !errors.Is(err, workflow.ErrNotDue) {
		t.Errorf("after the end: %v", err)
	}
}

// After a crash, the question of the dead process is cancelled when another process takes over the run, or when a
// person answers the question. The person who answers is told that the question has ended.
func TestElicitationOfADeadProcess(t *testing.T) {
	for name, answersFirst := range map[string]bool{"the run is taken up": false, "somebody answers first": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ctx, stop := context.WithCancel(h.ctx())
			call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
			if _, ran, err := h.Runs.Claim(h.ctx(), call.Execution); err != nil || !ran {
				t.Fatalf("claim: %t, %v", ran, err)
			}
			q, done := h.asksMore(ctx, call.Execution, trip)
			h.reopen() // the process that waited for the answer has ended
			stop()
			<-done
			if got := h.elicitation(q.ID); got.State != approvers.ElicitationOpen {
				t.Fatalf("it is %s", got.State)
			}
			if answersFirst {
				wantDenied(t, h.respond(alice, q.ID, `{"city":"x"}`), approvers.DeniedAnswered)
			} else {
				h.ok(h.Runs.Recover(h.ctx(), store.AllShares))
				if e, ran, err := h.Runs.Claim(h.ctx(), call.Execution); err != nil || !ran || e.Tries != 2 {
					t.Fatalf("the next try: %t, %v", ran, err)
				}
			}
			if got := h.elicitation(q.ID); got.State != approvers.ElicitationCancelled || !strings.Contains(got.Why, "the process stopped") {
				t.Errorf("it is %s, because %q", got.State, got.Why)
			}
			if !answersFirst {
				h.ok(h.Runs.Finish(h.ctx(), call.Execution, true, "done"))
			}
		})
	}
}
