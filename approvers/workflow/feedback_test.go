package workflow_test

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
)

func (h *harness) rate(who approvers.Identity, turn string, good bool) error {
	h.t.Helper()
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Turn: turn}
	h.receive(c)
	return h.Turns.AddFeedback(h.ctx(), c, good)
}

// If a person rates an answer several times, only the latest rating counts, even after a restart. The ratings of people
// who may not ask the agent do not count.
func TestRatings(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "hello").Turn
	wantDenied(t, h.rate(alice, turn, true), approvers.DeniedNothing) // there is no answer yet
	h.answer(turn)
	want := func(good, poor int) {
		t.Helper()
		got, err := h.Views.Feedback(h.ctx())
		if h.ok(err); got["support"] != (settings.Feedback{Good: good, Poor: poor}) {
			t.Errorf("the ratings are %+v; want %d good and %d poor", got, good, poor)
		}
	}
	h.ok(h.rate(alice, turn, true))
	h.ok(h.rate(alice, turn, true))
	h.ok(h.rate(bob, turn, true))
	want(2, 0)
	h.ok(h.rate(alice, turn, false))
	want(1, 1)
	h.reopen()
	want(1, 1)
	h.ok(h.rate(alice, turn, true))
	want(2, 0)
	for code, change := range map[approvers.Code]func(*approvers.Identity){
		approvers.DeniedForeign: func(i *approvers.Identity) { i.Foreign = true },
		approvers.DeniedGuest:   func(i *approvers.Identity) { i.Guest = true },
		approvers.DeniedBot:     func(i *approvers.Identity) { i.Bot = true },
	} {
		who := lead
		change(&who)
		wantDenied(t, h.rate(who, turn, false), code)
	}
	wantDenied(t, h.rate(alice, "turn_none", true), approvers.DeniedNotFound)
	want(2, 0)
}
