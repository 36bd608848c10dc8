package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// ErrPaused means that everything is paused. The bot starts no tool and calls no model until a person ends the pause.
// When a pause begins, the contexts of running handlers are cancelled with the cause ErrPaused.
var ErrPaused = errors.New("workflow: everything is paused")

// Pause stops all runs and model calls until Resume is called. The function that calls Pause must check the person's
// permission. If everything is paused already, Pause changes nothing and returns ErrNotDue.
func (w *Pauses) Pause(ctx context.Context, who approvers.PersonID, reason string) error {
	return w.setPause(ctx, "pause", settings.Pause{On: true, By: who, Reason: reason})
}

// Resume ends a pause. If nothing is paused, Resume returns ErrNotDue.
func (w *Pauses) Resume(ctx context.Context, who approvers.PersonID, reason string) error {
	return w.setPause(ctx, "resume", settings.Pause{By: who, Reason: reason})
}

func (w *Pauses) setPause(ctx context.Context, what string, p settings.Pause) error {
	return w.record(ctx, what, func(t *tx) error {
		before, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		if before.On == p.On {
			return ErrNotDue
		}
		return t.pauses.setPause(p)
	})
}

// PauseBy begins a pause for a person in Slack. The policy must allow this person to pause.
func (w *Pauses) PauseBy(ctx context.Context, c Click) error {
	return w.clickPause(ctx, "pause", c, settings.Pause{On: true, By: c.Who.ID, Reason: c.Reason})
}

// ResumeBy ends a pause for a person in Slack. The policy must allow this person to resume.
func (w *Pauses) ResumeBy(ctx context.Context, c Click) error {
	return w.clickPause(ctx, "resume", c, settings.Pause{By: c.Who.ID, Reason: c.Reason})
}

func (w *Pauses) clickPause(ctx context.Context, what string, c Click, p settings.Pause) error {
	return w.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		if denied := t.policy.MayPause(c.Who); denied != nil {
			return denied, t.auditDenied(approvers.InstallationChain, what, c, denied)
		}
		before, _, err := settings.ReadPause(t)
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
		return nil, t.pauses.setPause(p)
	})
}

// setPause stores a pause, or the end of a pause. setPause also notifies all people concerned.
func (t pausesTx) setPause(p settings.Pause) error {
	before, s, err := settings.ReadPause(t)
	if err != nil {
		return err
	}
	if before.Damaged() {
		if _, _, err := t.damage.setAside("settings", store.SettingPause); err != nil {
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
	if t.pausesAll = p.On; !p.On {
		for kind := range pausedKinds {
			t.wakes[kind] = store.AllShares
		}
	}
	if p.On {
		if err := t.questions.cancelAll(whyPaused); err != nil {
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
	p, _, err := settings.ReadPause(r)
	if err == nil && p.On {
		err = ErrPaused
	}
	return err
}

// awake returns the timers that may be handled now. awake leaves out timers that must wait for the end of a pause. All
// timers must be of the same kind.
func awake(r store.Reader, timers []store.Timer) ([]store.Timer, error) {
	if len(timers) == 0 || !pausedKinds[timers[0].Kind] {
		return timers, nil
	}
	p, _, err := settings.ReadPause(r)
	if err != nil || !p.On {
		return timers, err
	}
	var out []store.Timer
	for _, timer := range timers {
		resting, err := awaitsPauseEnd(r, timer)
		if err != nil {
			return nil, err
		}
		if !resting {
			out = append(out, timer)
		}
	}
	return out, nil
}

// awaitsPauseEnd reports whether a timer must wait for the end of a pause.
func awaitsPauseEnd(r store.Reader, timer store.Timer) (bool, error) {
	switch timer.Kind {
	case store.TimerThink, store.TimerPreview:
		return true, nil
	case store.TimerRun:
		e, err := r.Execution(timer.Ref)
		if err != nil {
			return false, store.IgnoreNotFound(err)
		}
		return pausable(r, e)
	}
	return false, nil
}

// pausable reports whether the claim of an execution could start its tool. A pause must prevent a claim that could
// start a tool. For an interrupted run that can't be repeated, or whose turn was stopped, pausable returns false, because
// the claim only ends the run. If its outcome is unknown, the claim asks people, which is allowed during a pause.
func pausable(r store.Reader, e approvers.Execution) (bool, error) {
	if e.State != approvers.ExecutionExecuting || !repeatable(e) {
		return e.State == approvers.ExecutionNone, nil
	}
	stopped, err := isStopped(r, e)
	return !stopped, err
}

// tellPausers notifies all people who may end a pause. At the beginning of a pause, the message has a button that ends
// the pause. At the end, the message says that the pause is over.
func (t pausesTx) tellPausers(p settings.Pause) error {
	if !p.On {
		return t.outbox.changedRef(settings.Pause{Round: p.Round - 1}.Ref())
	}
	for _, role := range t.policy.PausedBy {
		if err := t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxPause, Ref: p.Ref(), To: store.ToRole + role}); err != nil {
			return err
		}
	}
	return nil
}

// Show schedules an update of the messages that change at the beginning or the end of a pause. These are waiting cards,
// steps, and messages that explain the delay of a turn. Show uses one transaction for each page of records, so clicks
// can be handled between two pages. Show clears the timer after the last page.
func (w *Pauses) Show(ctx context.Context, timer store.Timer) error {
	var p settings.Pause
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		p, _, err = settings.ReadPause(r)
		return err
	})
	if err != nil {
		return err
	}
	err = w.openRequests(ctx, "show pause", func(t *tx, r approvers.Request) error { return t.pauses.showAgain(r) })
	if err != nil {
		return err
	}
	for _, kind := range []store.TimerKind{store.TimerThink, store.TimerRun} {
		if err := w.showHeldUp(ctx, kind); err != nil {
			return err
		}
	}
	return w.update(ctx, "show pause", func(t *tx) error {
		now, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		if now.Round != p.Round { // somebody resumed or paused during the update, so some messages may show the old state
			timer.Due = t.now
			return t.SetTimer(timer)
		}
		return t.ClearTimer(timer.Kind, timer.Ref)
	})
}

// showAgain schedules an update of every message that shows a request.
func (t pausesTx) showAgain(r approvers.Request) error {
	if err := t.outbox.changedRef(r.ID); err != nil {
		return err
	}
	if err := t.cards.changedBundle(r); err != nil {
		return err
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.outbox.changedTurn(r.Turn, store.OutboxStep, call.Step)
}

// mostHeldUp is the maximum number of delayed runs or delayed model calls that showHeldUp reads. showHeldUp does not
// need to read work that is scheduled during the pause, because people are told about the pause when the work is
// scheduled.
const mostHeldUp = 10_000

// showHeldUp schedules an update of the messages about delayed runs or turns, after the beginning or the end of a
// pause.
func (w *Pauses) showHeldUp(ctx context.Context, kind store.TimerKind) error {
	var timers []store.Timer
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		timers, err = r.Timers(kind, mostHeldUp)
		return err
	})
	for len(timers) > 0 && err == nil {
		page := timers[:min(len(timers), pageOfRequests)]
		timers = timers[len(page):]
		err = w.update(ctx, "show pause", func(t *tx) error {
			for _, timer := range page {
				if err := t.pauses.showHeldUp(timer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}

func (t pausesTx) showHeldUp(timer store.Timer) error {
	if _, err := t.Timer(timer.Kind, timer.Ref); err != nil {
		return store.IgnoreNotFound(err) // the work was done after the timers were read
	}
	if timer.Kind == store.TimerRun {
		e, err := t.Execution(timer.Ref)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		return t.runs.changedStep(e)
	}
	turn, err := t.Turn(timer.Ref)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	p, _, err := settings.ReadPause(t)
	if err != nil {
		return err
	}
	if p.On {
		return t.standStill(turn)
	}
	return t.outbox.changedTurn(turn.ID, store.OutboxStandstill, 0)
}

// standStill posts a message in a turn's conversation. The message says that a pause delays the turn.
func (t pausesTx) standStill(turn approvers.Turn) error {
	if err := t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxStandstill, Ref: turn.ID, To: store.ToConversation + turn.Conversation}); err != nil {
		return err
	}
	return t.outbox.changedTurn(turn.ID, store.OutboxStandstill, 0)
}
