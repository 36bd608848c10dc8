package workflow

import (
	"context"
	"fmt"
	"log/slog"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/jobs"
)

// Work can crash a process: memory runs out, or a library has a fatal defect. The next process would take up the same
// work and crash again. So the work in progress is noted, and work that crashed too many processes is ended instead of
// tried again: a turn stops, with Try again, and a delivery is set aside. The people concerned are notified.
const (
	turnCrashes     = 2
	deliveryCrashes = 5 // higher, because an acknowledged decision must not be given up after a few crashes
)

// crashable are the kinds of timer whose work is noted. Runs have their own rule: see maxTries.
var crashable = map[store.TimerKind]bool{store.TimerThink: true, store.TimerInbox: true}

type noCrashes struct{}

func (noCrashes) Begin(string, string)     {}
func (noCrashes) End(string, string)       {}
func (noCrashes) Count(string, string) int { return 0 }
func (noCrashes) Forget(string, string)    {}

// survive calls a handler and notes its work while it runs.
func (w *core) survive(ctx context.Context, t store.Timer, handle jobs.Handler) error {
	if crashable[t.Kind] {
		w.Crashes.Begin(string(t.Kind), t.Ref)
		defer w.Crashes.End(string(t.Kind), t.Ref)
	}
	err := handle(ctx, t)
	if err == nil && t.Kind == store.TimerInbox {
		w.Crashes.Forget(string(t.Kind), t.Ref) // it is handled; a turn goes on
	}
	return err
}

// stopDeadly stops a turn whose model calls crashed too many processes. It reports whether it did.
func (t turnsTx) stopDeadly(turn approvers.Turn, conv store.Conversation) (bool, error) {
	n := t.w.Crashes.Count(string(store.TimerThink), turn.ID)
	if n < turnCrashes {
		return false, nil
	}
	t.note(slog.LevelError, "the process died again while it worked on a turn; the turn was stopped", "turn", turn.ID, "conversation", conv.ID, "deaths", n)
	return true, t.stop(turn, conv, "The bot's process ended twice while it worked on this, so I stopped here. What waits or runs is not touched by it. Whoever runs the bot finds the reason in its log.", true)
}

// Deadly returns how many processes crashed while handling a delivery, if these are too many for another try; otherwise
// 0.
func (w *Intake) Deadly(inbox string) int {
	if n := w.Crashes.Count(string(store.TimerInbox), inbox); n >= deliveryCrashes {
		return n
	}
	return 0
}

// Abandon sets aside a delivery that crashed processes, and records whose it was.
func (w *Intake) Abandon(ctx context.Context, inbox, user string) error {
	n := w.Crashes.Count(string(store.TimerInbox), inbox)
	err := w.update(ctx, "abandon", func(t *tx) error {
		if err := t.settle(inbox, fmt.Sprintf("%d processes ended while they worked on it", n)); err != nil {
			return err
		}
		facts := map[string]string{"kind": "delivery", "code": string(approvers.DeniedAbandoned), "delivery": inbox, "user": user, "deaths": fmt.Sprint(n)}
		return t.audit(approvers.InstallationChain, approvers.AuditDenied, "", facts, nil)
	})
	if err == nil {
		w.Crashes.Forget(string(store.TimerInbox), inbox)
	}
	return err
}
