package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// ErrPaused means that everything is paused: no tool is started and no model is called until somebody resumes. It is
// also the cause with which the contexts of running handlers end.
var ErrPaused = errors.New("workflow: everything is paused")

// Pause says whether everything is paused: no tool runs and no model is called. It survives a restart. People may
// decide meanwhile, and deadlines pass as usual: a request that nobody decides is rejected, paused or not.
type Pause struct {
	On     bool               `json:"on"`
	By     approvers.PersonID `json:"by"` // who changed it last
	At     time.Time          `json:"at"`
	Reason string             `json:"reason,omitempty"`
	Round  int                `json:"round,omitempty"` // increases with each change
}

// Paused returns the current pause.
func (w *Workflow) Paused(ctx context.Context) (p Pause, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		p, _, err = paused(r)
		return err
	})
	return p, err
}

func paused(r store.Reader) (p Pause, s store.Setting, err error) {
	s, err = r.Setting(store.SettingPause)
	if errors.Is(err, store.ErrNotFound) {
		return p, store.Setting{Key: store.SettingPause}, nil
	}
	if errors.Is(err, store.ErrDamaged) { // nobody knows whether it was paused, so nothing runs until somebody resumes
		return Pause{On: true, By: approvers.Operator(damagedPause), Reason: "the record of whether everything is paused is damaged"}, store.Setting{Key: store.SettingPause}, nil
	}
	if err != nil {
		return p, s, err
	}
	return p, s, json.Unmarshal(s.Value, &p)
}

// damagedPause stands for the unknown person who paused, if the record is damaged.
const damagedPause = "nobody"

// Pause stops every run and every model call until Resume. The caller has checked the person's permission. Pausing
// while paused, and resuming while not paused, change nothing and return ErrNotDue.
func (w *Workflow) Pause(ctx context.Context, who approvers.PersonID, reason string) error {
	return w.setPause(ctx, "pause", Pause{On: true, By: who, Reason: reason})
}

// Resume ends a pause.
func (w *Workflow) Resume(ctx context.Context, who approvers.PersonID, reason string) error {
	return w.setPause(ctx, "resume", Pause{By: who, Reason: reason})
}

func (w *Workflow) setPause(ctx context.Context, what string, p Pause) error {
	return w.update(ctx, what, func(t *tx) error {
		before, _, err := paused(t)
		if err != nil {
			return err
		}
		if before.On == p.On {
			return ErrNotDue
		}
		return t.setPause(p)
	})
}

// PauseBy is Pause for a person in Slack, if the policy allows it.
func (w *Workflow) PauseBy(ctx context.Context, c Click) error {
	return w.clickPause(ctx, "pause", c, Pause{On: true, By: c.Who.ID, Reason: c.Reason})
}

// ResumeBy is Resume for a person in Slack, if the policy allows it.
func (w *Workflow) ResumeBy(ctx context.Context, c Click) error {
	return w.clickPause(ctx, "resume", c, Pause{By: c.Who.ID, Reason: c.Reason})
}

func (w *Workflow) clickPause(ctx context.Context, what string, c Click, p Pause) error {
	return w.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		if denied := t.policy.MayPause(c.Who); denied != nil {
			return denied, t.auditDenied(approvers.InstallationChain, what, c, denied)
		}
		before, _, err := paused(t)
		if err != nil {
			return nil, err
		}
		if before.On == p.On {
			code := approvers.DeniedNotPaused
			if p.On {
				code = approvers.DeniedPaused
			}
			return &approvers.Denied{Code: code, By: before.By, At: before.At}, nil
		}
		return nil, t.setPause(p)
	})
}

// setPause stores a pause, or its end, and shows it to everybody concerned.
func (t *tx) setPause(p Pause) error {
	before, s, err := paused(t)
	if err != nil {
		return err
	}
	if before.By == approvers.Operator(damagedPause) {
		if err := t.moveAside("settings", store.SettingPause); err != nil {
			return err
		}
	}
	p.At, p.Round = t.now, before.Round+1
	if s.Value, err = json.Marshal(p); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	if err := t.PutSetting(s); err != nil {
		return err
	}
	kind := approvers.AuditResumed
	if p.On {
		kind = approvers.AuditPaused
	}
	if err := t.audit(approvers.InstallationChain, kind, p.By, map[string]string{"round": strconv.Itoa(p.Round)}, map[string]string{"reason": p.Reason}); err != nil {
		return err
	}
	if t.halts = p.On; !p.On {
		t.wakes[store.TimerThink], t.wakes[store.TimerRun], t.wakes[store.TimerPreview] = true, true, true
	}
	if p.On {
		if err := t.cancelAll(whyPaused); err != nil {
			return err
		}
	}
	if err := t.tellPausers(p); err != nil {
		return err
	}
	return t.SetTimer(store.Timer{Kind: store.TimerPause, Ref: store.SettingPause, Due: t.now})
}

// ifPaused returns ErrPaused while everything is paused.
func ifPaused(r store.Reader) error {
	p, _, err := paused(r)
	if err == nil && p.On {
		err = ErrPaused
	}
	return err
}

// awake removes the timers that rest while everything is paused. All timers are of one kind.
func awake(r store.Reader, timers []store.Timer) ([]store.Timer, error) {
	if len(timers) == 0 || !halted[timers[0].Kind] {
		return timers, nil
	}
	p, _, err := paused(r)
	if err != nil || !p.On {
		return timers, err
	}
	var out []store.Timer
	for _, timer := range timers {
		resting, err := rests(r, timer)
		if err != nil {
			return nil, err
		}
		if !resting {
			out = append(out, timer)
		}
	}
	return out, nil
}

// rests reports whether a timer rests while everything is paused.
func rests(r store.Reader, timer store.Timer) (bool, error) {
	switch timer.Kind {
	case store.TimerThink, store.TimerPreview:
		return true, nil
	case store.TimerRun:
		e, err := r.Execution(timer.Ref)
		return err == nil && pausable(e), ignoreNotFound(err)
	}
	return false, nil
}

// pausable reports whether claiming an execution could start its tool. An interrupted, non-repeatable run is not
// started: people are asked about it at once, even while everything is paused.
func pausable(e approvers.Execution) bool {
	return e.State == approvers.ExecutionNone || e.State == approvers.ExecutionExecuting && repeatable(e)
}
