package view

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Paused returns the pause. If p.On is false, nothing is paused.
func (v *Reader) Paused(ctx context.Context) (p settings.Pause, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		p, _, err = settings.ReadPause(r)
		return err
	})
	return p, err
}

// maxTimers is the maximum number of timers of each kind that PauseImpact reads.
const maxTimers = 10_000

// PauseImpact counts the work that a pause stops if it begins now.
type PauseImpact struct {
	Runs     int // running tools
	Thinking int // turns that wait for the model
	Approved int // calls that are about to start
}

// PauseImpact counts the work that a pause stops if it begins now. PauseImpact also returns the current pause.
func (v *Reader) PauseImpact(ctx context.Context) (s PauseImpact, p settings.Pause, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		s = PauseImpact{}
		thinking, err := r.Timers(store.TimerThink, maxTimers)
		if err != nil {
			return err
		}
		s.Thinking = len(thinking)
		runs, err := r.Timers(store.TimerRun, maxTimers)
		if err != nil {
			return err
		}
		for _, timer := range runs {
			e, err := r.Execution(timer.Ref)
			switch {
			case err != nil:
				return err
			case e.State == approvers.ExecutionExecuting:
				s.Runs++
			case e.State == approvers.ExecutionNone:
				s.Approved++
			}
		}
		p, _, err = settings.ReadPause(r)
		return err
	})
	return s, p, err
}
