package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// simulatedOperator is the operator who pauses everything at the command line, and ends the pause.
type simulatedOperator struct {
	busy   atomic.Bool // true while a command of the operator is running
	paused atomic.Bool // the operator was told that everything is paused: no tool may run, and no model may be called
}

// isPaused reads the pause from the store.
func (s *simulation) isPaused() bool {
	var p settings.Pause
	err := s.db.View(context.Background(), func(r store.Reader) error {
		row, err := r.Setting(store.SettingPause)
		if err != nil {
			return err
		}
		return json.Unmarshal(row.Value, &p)
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.violate("it can't be read whether everything is paused: %v", err)
	}
	return p.On
}

// The method "operates" makes the operator pause everything, or end the pause.
func (s *simulation) operates() {
	pause, p := !s.isPaused(), s.bot
	s.step("the operator pauses everything: %t", pause)
	s.operator.busy.Store(true)
	s.operator.paused.Store(false)
	go func() {
		ctx, who := context.WithoutCancel(labels(p.ctx, "operator")), approvers.Operator("sim")
		var err error
		if pause {
			err = p.workflow.Pauses.Pause(ctx, who, "to have a look")
		} else {
			err = p.workflow.Pauses.Resume(ctx, who, "all is well")
		}
		s.operator.paused.Store(pause && err == nil)
		s.operator.busy.Store(false)
	}()
}
