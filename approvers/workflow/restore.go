package workflow

import (
	"context"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Restoration is that a store was put back from a backup.
type Restoration struct {
	Who    approvers.PersonID // who did it
	Backup string             // the file's name, for the record
	Hash   string             // of the file, SHA-256 in hex
	Taken  time.Time          // when the backup was made: what is in the store is what was known then
	Loss   *Loss              // nil: it was put back from a backup. Otherwise it was found to be older than its signed heads
}

// Loss is what an operator has accepted to be lost.
type Loss struct {
	Head    uint64    // the number of the newest signed head, which the store lacks
	Records uint64    // that it covers
	At      time.Time // when it was signed
	Hash    string    // over the head, SHA-256 in hex
	Reason  string
}

// Restored closes everything in a store that could act, as nobody knows what became of it after the backup was made:
// requests and calls that have not run are voided, runs under way count as unknown, turns stop, deliveries are set
// aside, grants end. At last it is recorded. It is called before anything else runs on the store; a process that
// stopped meanwhile begins again.
func (w *Workflow) Restored(ctx context.Context, x Restoration) error {
	closed := map[string]int{}
	for _, part := range []struct {
		name  string
		close func(*tx, Restoration) (int, error)
	}{
		{"requests", (*tx).loseRequests}, {"runs", (*tx).loseRuns}, {"questions", (*tx).loseModelQuestions}, {"unknown", (*tx).leaveUnknown},
		{"deliveries", (*tx).setAside}, {"grants", (*tx).loseGrants}, {"turns", (*tx).stopTurns},
	} {
		for n := 1; n > 0; {
			err := w.update(ctx, "restore", func(t *tx) (err error) {
				n, err = part.close(t, x)
				return err
			})
			if err != nil {
				return err
			}
			closed[part.name] += n
		}
	}
	return w.update(ctx, "restore", func(t *tx) error {
		for _, agent := range t.policy.Agents {
			for _, tool := range t.policy.Tools {
				if err := t.resetStreak(agent.Name, tool.Name); err != nil {
					return err
				}
			}
		}
		facts := map[string]string{"taken": x.Taken.UTC().Format(time.RFC3339Nano)}
		var body any
		if l := x.Loss; l != nil {
			facts["head"], facts["records"] = strconv.FormatUint(l.Head, 10), strconv.FormatUint(l.Records, 10)
			facts["signed"], facts["head_sha256"] = l.At.UTC().Format(time.RFC3339), l.Hash
			body = map[string]string{"reason": l.Reason}
		} else {
			facts["backup"], facts["sha256"] = x.Backup, x.Hash
		}
		for name, n := range closed {
			facts[name] = strconv.Itoa(n)
		}
		return t.audit(approvers.InstallationChain, approvers.AuditRestored, x.Who, facts, body)
	})
}

// Unseen lists the runs that Restored leaves for people to find out about: those under way, and those that were asked
// about already.
func (w *Workflow) Unseen(ctx context.Context) (runs []approvers.Execution, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		runs = nil
		for _, kind := range []store.TimerKind{store.TimerRun, store.TimerLeave} {
			timers, err := r.Timers(kind, mostRuns)
			if err != nil {
				return err
			}
			for _, timer := range timers {
				e, err := r.Execution(timer.Ref)
				if ignoreNotFound(err) != nil {
					return err
				}
				if err == nil && (e.State == approvers.ExecutionUnknown || e.State == approvers.ExecutionExecuting && e.Effect != approvers.ReadOnly) {
					runs = append(runs, e)
				}
			}
		}
		return nil
	})
	return runs, err
}

// lostBatch is how many things one transaction closes.
const lostBatch = 50

// loseRequests voids what waits or was approved.
func (t *tx) loseRequests(x Restoration) (int, error) {
	open, err := t.OpenRequests(store.RequestCursor{}, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, r := range open {
		lost, events, denied := r.Lose(t.deciding(), x.Taken)
		if denied != nil {
			return 0, denied // an open request is never over
		}
		if err := t.ClearTimer(store.TimerRun, r.Execution); err != nil {
			return 0, err
		}
		if err := t.apply(lost, events); err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

// loseRuns voids calls that were to run without asking, and counts runs under way as unknown, whatever their tool: one
// that remembers its keys may have forgotten them since. What only reads has failed.
func (t *tx) loseRuns(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerRun, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		e, err := t.Execution(timer.Ref)
		if ignoreNotFound(err) != nil {
			return 0, err
		}
		switch {
		case err != nil:
			err = t.ClearTimer(store.TimerRun, timer.Ref)
		case e.State == approvers.ExecutionExecuting && e.Effect == approvers.ReadOnly:
			if e, err = e.Finish(false, approvers.LostTrack(x.Taken), t.now); err == nil {
				err = t.finished(e)
			}
		case e.State == approvers.ExecutionExecuting:
			err = t.markUnknown(e, approvers.LossRestored)
		default:
			err = t.loseCall(e, x)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// loseCall gives a call that has not started its result.
func (t *tx) loseCall(e approvers.Execution, x Restoration) error {
	if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
		return err
	}
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	if err := t.giveResult(call, approvers.OutcomeVoided, approvers.LostResult(call.Tool, x.Taken).Text()); err != nil {
		return err
	}
	return t.changedStep(e)
}

// loseModelQuestions ends the model's questions to people.
func (t *tx) loseModelQuestions(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerModelQuestion, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		call, err := t.Call(timer.Ref)
		if err == nil && call.Outcome == "" {
			err = t.closeModelQuestion(call, approvers.OutcomeVoided, approvers.LostTrack(x.Taken))
		}
		if err := errors.Join(ignoreNotFound(err), t.ClearTimer(store.TimerModelQuestion, timer.Ref)); err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// leaveUnknown tells the model of outcomes that nobody has reported on, so that nothing waits for them. People can
// report all the same.
func (t *tx) leaveUnknown(Restoration) (int, error) {
	timers, err := t.Timers(store.TimerLeave, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		e, err := t.Execution(timer.Ref)
		if err == nil && e.State == approvers.ExecutionUnknown {
			err = t.leave(e)
		}
		if err := errors.Join(ignoreNotFound(err), t.ClearTimer(store.TimerLeave, timer.Ref)); err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// setAside closes deliveries that were not handled when the backup was made: they were since.
func (t *tx) setAside(Restoration) (int, error) {
	timers, err := t.Timers(store.TimerInbox, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		err := t.settle(timer.Ref, "set aside: the store was put back from a backup")
		if errors.Is(err, ErrHandled) || errors.Is(err, store.ErrNotFound) {
			err = t.ClearTimer(store.TimerInbox, timer.Ref)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// loseGrants ends grants and offers.
func (t *tx) loseGrants(x Restoration) (int, error) {
	open, err := t.OpenGrants("")
	if err != nil {
		return 0, err
	}
	n := min(len(open), lostBatch)
	for _, g := range open[:n] {
		if err := t.applyGrant(g.Lose(approvers.Operates(x.Who), t.now), "lost", x.Who, nil); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// stopTurns stops the model. People can try again when they know what happened.
func (t *tx) stopTurns(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerThink, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		turn, err := t.Turn(timer.Ref)
		if ignoreNotFound(err) != nil {
			return 0, err
		}
		if err != nil || turn.Ended() {
			if err := t.ClearTimer(store.TimerThink, timer.Ref); err != nil {
				return 0, err
			}
			continue
		}
		conv, err := t.Conversation(turn.Conversation)
		if err != nil {
			return 0, err
		}
		problem := "My data was put back from a backup of " + x.Taken.UTC().Format("2006-01-02 15:04:05 UTC") +
			". I don't know what was said, decided and done after that: look through the conversation before you have me try again."
		if err := t.stop(turn, conv, problem, true); err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}
