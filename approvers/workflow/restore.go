package workflow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Restoration describes why a store lacks its latest changes.
type Restoration struct {
	Who    approvers.PersonID // the operator
	Backup string             // name of the backup file, or address of the restored database, for the record
	Hash   string             // SHA-256 of the file in hex; empty for a database
	Taken  time.Time          // when the backup was made
	Loss   *Loss              // set if the operator accepted that the store is older than its signed heads; nil: the store was restored from a backup, or salvaged
	Faults bool               // the store or its history has faults, and the operator accepted them

	older bool // the file was damaged: rows may have an old state, and audit records may be missing
}

// Loss describes the records that an operator has accepted as lost.
type Loss struct {
	Head    uint64    // the number of the newest signed head, which the store lacks
	Records uint64    // the number of records that the head covers
	At      time.Time // when the head was signed
	Hash    string    // SHA-256 of the head in hex
	Reason  string
}

// Restored closes all open work in a store that was restored from a backup, because the events after the backup are
// unknown. Restored voids requests and calls that have not run, stops turns, and ends grants. Restored also records
// that the outcomes of interrupted runs are unknown, and closes deliveries. The bot does not read messages that people
// wrote since the backup, because these messages may have been answered before the restoration. Finally, Restored
// records the restoration. Restored must be called before any other work on the store. If the process crashes during
// Restored, Restored must be called again.
func (w *History) Restored(ctx context.Context, x Restoration) error {
	closed := map[string]int{}
	for _, part := range []struct {
		name  string
		close func(restoreTx, Restoration) (int, error)
	}{
		{"requests", restoreTx.loseRequests}, {"runs", restoreTx.loseRuns}, {"callers", restoreTx.loseCallersRuns},
		{"questions", restoreTx.loseModelQuestions}, {"unknown", restoreTx.leaveUnknown},
		{"deliveries", restoreTx.setAside}, {"grants", restoreTx.loseGrants}, {"turns", restoreTx.stopTurns},
	} {
		for n := 1; n > 0; {
			err := w.update(ctx, "restore", func(t *tx) (err error) {
				t.older = x.older
				n, err = part.close(t.restore, x)
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
				if err := t.grants.resetStreak(agent.Name, tool.Name, time.Time{}); err != nil {
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
			facts["backup"] = x.Backup
		}
		if x.Hash != "" {
			facts["sha256"] = x.Hash
		}
		x.noteFaults(facts)
		for name, n := range closed {
			facts[name] = strconv.Itoa(n)
		}
		if err := t.gaps.startAnew(); err != nil {
			return err
		}
		return t.audit(approvers.InstallationChain, approvers.AuditRestored, x.Who, facts, body)
	})
}

// noteFaults adds the fact that the operator accepted faults.
func (x Restoration) noteFaults(facts map[string]string) {
	if x.Faults {
		facts["faults"] = "accepted"
	}
}

// Salvaged makes a salvaged store usable. A salvaged store has the records of a damaged file that could be read. If a
// lost record belongs to a request, run or turn, Salvaged ends the request, run or turn. Salvaged records which audit
// records are lost, and closes open work as Restored does. Salvaged must be called before any other work on the store.
func (w *History) Salvaged(ctx context.Context, x Restoration, lost []store.Damage) error {
	x.older = slices.ContainsFunc(lost, func(d store.Damage) bool { return d.Bucket == "file" })
	// If entries of the journal are lost, nothing shows how many records a chain had.
	s := salvaged{cut: x.older || slices.ContainsFunc(lost, func(d store.Damage) bool { return d.Bucket == "audit_journal" })}
	s.older = x.older
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		s.waiting, err = waitingTurns(r) // read once, because thousands of conversations may be lost
		return err
	})
	if err != nil {
		return err
	}
	for _, bucket := range append(slices.Clone(closingOrder), "") {
		for _, d := range lost {
			ordered := slices.Contains(closingOrder, d.Bucket)
			history := d.Bucket == "audit" || d.Bucket == "audit_payloads"
			if d.ID != "" && !history && (d.Bucket == bucket || bucket == "" && !ordered) {
				w.closeDamaged(ctx, d, s)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	losses := map[string]*approvers.HistoryLoss{}
	for _, d := range lost {
		if d.Bucket != "audit" && d.Bucket != "audit_payloads" {
			continue
		}
		l := losses[d.ID]
		if l == nil {
			l = &approvers.HistoryLoss{Chain: d.ID}
			losses[d.ID] = l
		}
		if d.Bucket == "audit" {
			l.Records = append(l.Records, d.Seq)
		} else {
			l.Payloads = append(l.Payloads, d.Seq)
		}
	}
	err = w.update(ctx, "salvage", func(t *tx) error {
		pause, _, err := settings.ReadPause(t)
		if err == nil && pause.Damaged() { // nobody knows whether everything was paused, so nothing runs until a person decides
			err = t.pauses.setPause(settings.Pause{On: true, By: x.Who, Reason: pause.Reason})
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, chain := range slices.Sorted(maps.Keys(losses)) {
		err := w.update(ctx, "salvage", func(t *tx) error {
			return t.audit(approvers.InstallationChain, approvers.AuditDamaged, x.Who, losses[chain].Facts(), nil)
		})
		if err != nil {
			return err
		}
	}
	if err := w.clearMarks(ctx); err != nil {
		return err
	}
	return w.Restored(ctx, x)
}

// clearMarks deletes damaged records that can't be closed, because the request or run to which they belong is unknown.
func (w *History) clearMarks(ctx context.Context) error {
	in, ok := w.Store.(store.Inspected)
	if !ok {
		return nil
	}
	if err := in.Inspect(ctx); err != nil {
		return err
	}
	damaged, _ := store.DamageOf(w.Store)
	return w.update(ctx, "salvage", func(t *tx) error {
		for _, d := range damaged {
			if d.ID == "" || d.Bucket == "audit" || d.Bucket == "audit_payloads" || d.Bucket == "messages" {
				continue
			}
			if _, _, err := t.damage.setAside(d.Bucket, d.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// NothingLost records an operator's statement about a restored or copied database. The operator states that no bot has
// worked on the original since the copy was made. So NothingLost closes no work.
func (w *History) NothingLost(ctx context.Context, x Restoration, reason string) error {
	return w.update(ctx, "restore", func(t *tx) error {
		facts := map[string]string{"backup": x.Backup, "lost": "nothing"}
		x.noteFaults(facts)
		return t.audit(approvers.InstallationChain, approvers.AuditRestored, x.Who, facts, map[string]string{"reason": reason})
	})
}

// lostBatch is the maximum number of records that one transaction closes.
const lostBatch = 50

// loseRequests voids pending and approved requests.
func (t restoreTx) loseRequests(x Restoration) (int, error) {
	open, err := t.OpenRequests(store.RequestCursor{}, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, r := range open {
		lost, events, denied := r.Lose(t.deciding(), x.Taken)
		if denied != nil {
			return 0, denied // can't happen: Lose denies only requests that have ended
		}
		if err := t.ClearTimer(store.TimerRun, r.Execution); err != nil {
			return 0, err
		}
		if err := t.apply(lost, events); err != nil {
			return 0, err
		}
		if err := t.keepRecorded(r.Execution, x); err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

// loseRuns voids calls whose runs had not begun. For a run that had begun, loseRuns records that the outcome is
// unknown. This includes runs of idempotent tools, because the tool may have deleted the idempotency key. A run of a
// read-only tool is marked as failed.
func (t restoreTx) loseRuns(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerRun, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		e, err := t.Execution(timer.Ref)
		if store.IgnoreNotFound(err) != nil {
			return 0, err
		}
		switch {
		case err != nil:
			err = t.ClearTimer(store.TimerRun, timer.Ref)
		case e.State == approvers.ExecutionExecuting && e.Effect == approvers.ReadOnly:
			if e, err = e.Finish(false, approvers.LostTrack(x.Taken), t.now); err == nil {
				err = t.runs.finished(e)
			}
		case e.State == approvers.ExecutionExecuting:
			err = t.runs.markUnknown(e, approvers.LossRestored)
		default:
			err = t.loseCall(e, x)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// loseCallersRuns is like loseRuns, but for calls that their caller runs.
func (t restoreTx) loseCallersRuns(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerOutcome, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		e, err := t.Execution(timer.Ref)
		switch {
		case errors.Is(err, store.ErrNotFound):
			err = t.ClearTimer(store.TimerOutcome, timer.Ref)
		case err != nil:
		case e.State == approvers.ExecutionExecuting:
			err = t.runs.markUnknown(e, approvers.LossRestored)
		default:
			err = errors.Join(t.ClearTimer(store.TimerOutcome, timer.Ref), t.loseCall(e, x))
		}
		if err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// loseCall ends a call whose run has not begun.
func (t restoreTx) loseCall(e approvers.Execution, x Restoration) error {
	if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
		return err
	}
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	if err := t.turns.giveResult(call, approvers.OutcomeVoided, approvers.LostResult(call.Tool, x.Taken).Text()); err != nil {
		return err
	}
	if e.State == approvers.ExecutionNone {
		e.Loss = approvers.LossRestored
		if err := t.PutExecution(e); err != nil {
			return err
		}
	}
	if err := t.runs.changedStep(e); err != nil {
		return err
	}
	return t.keepRecorded(e.ID, x)
}

// keepRecorded handles a run whose stored state may be out of date. If the stored state says that the run has not
// begun, keepRecorded takes the state from the audit records. The commit that began the run may be lost together with
// its audit record. So if no audit record says how the run ended, the bot asks people about the outcome.
func (t restoreTx) keepRecorded(execution string, x Restoration) error {
	if !x.older {
		return nil
	}
	e, err := t.Execution(execution)
	if err != nil || e.State != approvers.ExecutionNone {
		return store.IgnoreNotFound(err)
	}
	chain, err := t.Audit(e.Chain())
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	after, why := t.damage.recorded(e, chain), approvers.LossRestored
	if after.State == approvers.ExecutionNone {
		why = approvers.LossDamaged
		after.State, after.StartedAt, after.Tries = approvers.ExecutionExecuting, t.now, 1
	}
	if err := t.PutExecution(after); err != nil {
		return err
	}
	after.Version++
	if after.State != approvers.ExecutionExecuting {
		return t.runs.changedStep(after)
	}
	return t.runs.markUnknown(after, why)
}

// loseModelQuestions closes the open questions of the model.
func (t restoreTx) loseModelQuestions(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerModelQuestion, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		call, err := t.Call(timer.Ref)
		if err == nil && call.Outcome == "" {
			err = t.questions.closeModelQuestion(call, approvers.OutcomeVoided, approvers.LostTrack(x.Taken))
		}
		if err := errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerModelQuestion, timer.Ref)); err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// leaveUnknown gives the model the result "unknown" for runs whose outcome nobody has reported, so that no turn waits
// for these runs. People can report the outcomes later.
func (t restoreTx) leaveUnknown(Restoration) (int, error) {
	timers, err := t.Timers(store.TimerLeave, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		e, err := t.Execution(timer.Ref)
		if err == nil && e.State == approvers.ExecutionUnknown {
			err = t.runs.leave(e)
		}
		if err := errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerLeave, timer.Ref)); err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// setAside closes deliveries that were not handled at the time of the backup, because the bot may have handled them
// later.
func (t restoreTx) setAside(Restoration) (int, error) {
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

// loseGrants ends all grants and all offers of grants.
func (t restoreTx) loseGrants(x Restoration) (int, error) {
	open, err := t.OpenGrants("")
	if err != nil {
		return 0, err
	}
	n := min(len(open), lostBatch)
	for _, g := range open[:n] {
		if err := t.grants.applyGrant(g.Lose(approvers.Operates(x.Who), t.now), "lost", x.Who, nil); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// stopTurns stops turns that wait for the model. People can resume a turn when they know what happened. In a salvaged
// store, every turn that has not ended has a timer. If such a turn still waits for calls, stopTurns closes these calls.
func (t restoreTx) stopTurns(x Restoration) (int, error) {
	timers, err := t.Timers(store.TimerThink, lostBatch)
	if err != nil {
		return 0, err
	}
	for _, timer := range timers {
		turn, err := t.Turn(timer.Ref)
		if err == nil && turn.State == approvers.TurnWaiting {
			turn, err = t.damage.closeCalls(turn)
		}
		if store.IgnoreNotFound(err) != nil {
			return 0, err
		}
		if err == nil && !turn.Ended() {
			if err := t.stopTurn(turn, x); err != nil {
				return 0, err
			}
		}
		if err := t.ClearTimer(store.TimerThink, timer.Ref); err != nil {
			return 0, err
		}
	}
	return len(timers), nil
}

// stopTurn stops a turn for stopTurns. A caller's turn ends without a message, because the caller reads its request.
func (t restoreTx) stopTurn(turn approvers.Turn, x Restoration) error {
	if ofCaller(turn.Conversation) {
		return t.callers.end(turn)
	}
	problem := "My data was put back from a backup of " + x.Taken.UTC().Format("2006-01-02 15:04:05 UTC") +
		". I don't know what was said, decided and done after that: look through the conversation before you have me try again."
	return t.turns.stopStored(turn, problem, true)
}
