package bot

import (
	"context"
	"slices"

	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/store"
)

// When Slack's limits are tight, an answer includes earlier steps whose messages were not posted yet. One post then
// replaces up to three calls, because those steps need neither a message nor an update.

// telling adds the postponed steps to an answer. Their messages are locked until done is called.
func (b *Bot) telling(ctx context.Context, answer workflow.ViewModel) (vm workflow.ViewModel, done func(), err error) {
	var taken []string
	done = func() {
		for _, id := range taken {
			b.shows.done(id)
		}
	}
	if s := answer.Message; s.Kind != store.OutboxAnswer || s.Posts > 0 {
		return answer, done, nil
	}
	steps, err := b.Workflow.Untold(ctx, answer.Message.Ref)
	if err != nil || len(steps) == 0 {
		return answer, done, err
	}
	var numbers []int
	for _, s := range steps {
		if _, doubtful := b.unconfirmed.unconfirmedSince(s, b.Workflow.Made(s)); doubtful || !b.shows.try(s.ID) {
			continue // it may have been posted already
		}
		taken, numbers = append(taken, s.ID), append(numbers, s.Step)
	}
	if vm, err = b.Workflow.SeeTelling(ctx, answer.Message.ID, numbers); err != nil {
		return answer, done, err
	}
	vm.Steps = slices.DeleteFunc(vm.Steps, func(s workflow.StepSight) bool { return !render.IsBrief(s) })
	vm.Steps = vm.Steps[:min(len(vm.Steps), render.MaxStepsTold)]
	vm.Message.Steps = nil
	for _, s := range vm.Steps {
		vm.Message.Steps = append(vm.Message.Steps, s.Step)
	}
	return vm, done, nil
}
