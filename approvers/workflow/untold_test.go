package workflow_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/store"
)

// ranStep runs a turn whose only step is never shown in Slack. If late is set, Slack has asked the bot to postpone the
// step's message.
func (h *harness) ranStep(late bool) (turn string, step store.OutboxMessage) {
	h.t.Helper()
	call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"Roswell"}`)[0]
	step = h.only(call.Turn, store.OutboxStep)
	if late {
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
			timer, err := tx.Timer(store.TimerShowLast, step.ID)
			if err != nil {
				return err
			}
			timer.Tries, timer.PutOff, timer.Due = 1, h.clock.Now(), h.clock.Now().Add(time.Minute)
			return tx.SetTimer(timer)
		}))
	}
	h.run(call.Execution, "found")
	h.answer(call.Turn)
	return call.Turn, h.message(step.ID)
}

// If steps have no message in Slack, the answer describes them, and the bot posts no messages about them later. A later
// rendering of the answer also describes these steps. When a step's texts are erased, the answer is rendered without
// them.
func TestAnswerTellsOfAStep(t *testing.T) {
	h := newHarness(t)
	var events []workflow.Event
	h.Count = func(_ context.Context, e workflow.Event) { events = append(events, e) }
	turn, step := h.ranStep(true)
	answer := h.only(turn, store.OutboxAnswer)
	if answer.Rank != store.RankAnswer {
		t.Errorf("an answer is ranked %q", answer.Rank)
	}
	untold, err := h.Views.Untold(h.ctx(), turn)
	h.ok(err)
	if len(untold) != 1 || untold[0].ID != step.ID {
		t.Fatalf("%d steps are untold", len(untold))
	}
	vm, err := h.Views.Answer(h.ctx(), answer.ID, []int{step.Step})
	h.ok(err)
	if len(vm.Steps) != 1 || vm.Steps[0].Text != "Let me see." || len(vm.Steps[0].Calls) != 1 || !vm.Steps[0].Calls[0].Settled() {
		t.Fatalf("the answer describes %+v", vm.Steps)
	}
	h.clock.pass(4 * time.Second)
	s := vm.Message
	s.Channel, s.TS = "C", "ts"
	h.ok(h.Outbox.Delivered(h.ctx(), s, workflow.SentMessage{Body: []byte(`{"text":"Roswell"}`)}))
	if got := h.message(step.ID); got.State != store.OutboxRemoved || len(h.timers(store.ShowTimers...)) != 0 {
		t.Errorf("the step is %s, and %d timers are left", got.State, len(h.timers(store.ShowTimers...)))
	}
	if vm, err = h.Views.Message(h.ctx(), answer.ID); err != nil || len(vm.Steps) != 1 {
		t.Errorf("rendered again, the answer describes %d steps (%v)", len(vm.Steps), err)
	}
	shown := slices.IndexFunc(events, func(e workflow.Event) bool { return e.Answer != nil })
	if shown < 0 || *events[shown].Answer != (workflow.AnswerShown{SinceEnd: 4 * time.Second, SinceRun: 4 * time.Second}) {
		t.Errorf("events %+v", events)
	}
	h.invariants()
	_, err = retention.Erase(h.ctx(), h.Workflow, h.callsOf(turn)[0].Execution, approvers.Operator("root"), "asked to")
	h.ok(err)
	if left := h.written(turn); strings.Contains(left, "Roswell") {
		t.Errorf("the store still has\n%s", left)
	}
}

// If Slack shows a step's own message before the answer, the answer does not describe the step.
func TestAnswerTellsOfNothingTwice(t *testing.T) {
	h := newHarness(t)
	turn, _ := h.ranStep(false)
	if untold, err := h.Views.Untold(h.ctx(), turn); err != nil || len(untold) > 0 {
		t.Errorf("%d untold steps (%v)", len(untold), err)
	}

	h = newHarness(t)
	turn, step := h.ranStep(true)
	h.show(step)
	answer := h.only(turn, store.OutboxAnswer)
	vm, err := h.Views.Answer(h.ctx(), answer.ID, []int{step.Step})
	h.ok(err)
	if len(vm.Steps) != 0 || len(vm.Message.Steps) != 0 {
		t.Errorf("the answer describes %v", vm.Message.Steps)
	}
}
