package workflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
	"countersign/store/jobs"
)

// soon has the kinds of timers that are normally due immediately when they are set. If the clock is set back, these
// timers still run without a delay; see jobs.Options. A transaction that sets such a timer for later must set the field
// PutOff to the current time. Otherwise the runner could assume that the timer was set before the clock was set back.
// Timers of all other kinds are deadlines. If the clock is set back, a deadline waits until the clock reaches its time.
// The start and the end of an absence (TimerAway) are deadlines, because a person counts as away only between them.
var soon = map[store.TimerKind]bool{
	store.TimerInbox: true, store.TimerThink: true, store.TimerRun: true, store.TimerPreview: true, store.TimerShowFirst: true, store.TimerShow: true,
	store.TimerShowAnswer: true, store.TimerShowLast: true, store.TimerAvailability: true, store.TimerPause: true, store.TimerChannel: true,
	store.TimerHomes: true, store.TimerCatchUp: true, store.TimerWebhook: true,
}

// deadlineWorkers is the number of expiries, of escalations, or of callers' deadlines that are handled concurrently.
// The number is high, because each of them takes one short transaction, and concurrent transactions share a commit.
const deadlineWorkers = 64

// newRunner returns the runner of the workflow's timers.
func (w *core) newRunner() *jobs.Runner {
	return jobs.New(jobs.Options{
		Store: w.Store, Log: w.Log, Now: w.Now, Kinds: store.TimerKinds, Soon: soon,
		Update: func(ctx context.Context, what string, fn func(store.Tx, time.Time) error) error {
			return w.update(ctx, what, func(t *tx) error { return fn(t, t.now) })
		},
		Awake:   awake,
		Ready:   func() bool { return !w.file.away() && (w.PolicySource == nil || w.PolicySource.Usable()) },
		Replica: w.Replica,
		Gained:  w.gained,
		Hear:    w.hear,
		Around:  w.handle,
		GiveUp:  w.giveUp,
	})
}

// gained takes over the unfinished work in the shares that this process has just got.
func (w *core) gained(ctx context.Context, shares store.Shares) error {
	if err := (&Outbox{w}).inherit(ctx, shares); err != nil {
		return err
	}
	return (&Runs{w}).Recover(ctx, shares)
}

// Workers returns the workers for the timer kinds that the workflow handles itself.
func (w *Workflow) Workers() map[store.TimerKind]jobs.Worker {
	return map[store.TimerKind]jobs.Worker{
		store.TimerExpire:        {Handle: w.Requests.Expire, Concurrency: deadlineWorkers},
		store.TimerEscalate:      {Handle: w.Requests.Escalate, Concurrency: deadlineWorkers},
		store.TimerLeave:         {Handle: w.Runs.LeaveUnknown, Concurrency: 1},
		store.TimerModelQuestion: {Handle: w.Questions.Expire, Concurrency: 1},
		store.TimerElicit:        {Handle: w.Questions.Lapse, Concurrency: 1},
		store.TimerOutcome:       {Handle: w.Callers.Overdue, Concurrency: deadlineWorkers},
		store.TimerGrant:         {Handle: w.Grants.Lapse, Concurrency: 1},
		store.TimerPause:         {Handle: w.Pauses.Show, Concurrency: 1},
		store.TimerRepost:        {Handle: w.Outbox.Repost, Concurrency: 1},
		store.TimerChannel:       {Handle: w.Intake.LeaveChannel, Concurrency: 1},
		store.TimerHome:          {Handle: w.Homes.Idle, Concurrency: 1},
		store.TimerHomes:         {Handle: w.Homes.Refresh, Concurrency: 1},
	}
}

// Work handles due timers until ctx ends, and then waits for the running handlers. workers has the workers for all
// timer kinds that [Workflow.Workers] does not handle. A test may omit some of these kinds. A test may also replace
// workers of Workflow.Workers.
func (w *Workflow) Work(ctx context.Context, workers map[store.TimerKind]jobs.Worker) error {
	w.began = time.Now()
	all := w.Workers()
	maps.Copy(all, workers)
	return w.jobs.Run(ctx, all, w.WatchPlace, w.watchOthers)
}

// handle calls a timer's handler with a context that a pause or a stop can cancel. If the handler fails because it read
// a damaged record, handle calls closeDamaged, and then the handler again. When a message is in Slack, nobody waits for
// the transaction that records this, so the transactions of deliveries have a low priority.
func (w *core) handle(ctx context.Context, t store.Timer, handler jobs.Handler) error {
	inner, leave := w.running.enter(ctx, t)
	defer leave()
	if slices.Contains(store.ShowTimers, t.Kind) {
		inner = store.WithLowPriority(inner)
	}
	err := w.survive(inner, t, handler)
	var row *store.DamagedError
	if errors.As(err, &row) && w.closeDamaged(inner, row.Damage, salvaged{}) {
		err = w.survive(inner, t, handler)
	}
	switch {
	case inner.Err() != nil && err != nil, errors.Is(err, ErrPaused):
		return jobs.ErrKeep // the next process handles the timer, or this process after the pause
	case errors.Is(err, ErrNotDue) && !store.Refused(err):
		return nil
	}
	return err
}

// giveUp clears a timer that can't be handled, and records the failure. If the timer is for a model call, giveUp stops
// the turn, and the bot notifies the turn's requesters. If the timer belongs to a delivery, giveUp closes the
// delivery's inbox row.
func (w *core) giveUp(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "give up", func(t *tx) error {
		facts := map[string]string{"bucket": "timers", "key": string(timer.Kind) + " " + timer.Ref, "why": "handling it failed again and again"}
		if err := t.audit(approvers.InstallationChain, approvers.AuditDamaged, "", facts, nil); err != nil {
			return err
		}
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
		switch timer.Kind {
		case store.TimerInbox: // the row must be closed, because an unhandled click delays the deadlines of all requests
			err := t.settle(timer.Ref, facts["why"])
			if errors.Is(err, ErrHandled) || errors.Is(err, store.ErrDamaged) {
				return nil
			}
			return store.IgnoreNotFound(err)
		case store.TimerThink:
		default:
			return nil
		}
		turn, conv, due, err := t.turns.thinking(timer.Ref)
		if err != nil || !due {
			return err
		}
		return t.turns.stop(turn, conv, "An internal error stopped my work on this. The operator of this bot was told.", true)
	})
}

// Wake makes all workers look for due timers immediately. The bot calls Wake after an outage of Slack, and tests call
// Wake after they set the clock forward. Without Wake, workers notice due timers within a second.
func (w *Workflow) Wake() { w.jobs.Wake() }

// NextDue returns the time at which the next timer is due. If there is no timer, the time is zero. NextDue ignores
// timers that wait for the end of a pause.
func (w *Workflow) NextDue(ctx context.Context) (time.Time, error) { return w.jobs.NextDue(ctx) }

// Idle reports whether all due timers have been handled. See jobs.Runner.
func (w *Workflow) Idle(ctx context.Context) (bool, error) { return w.jobs.Idle(ctx) }

// Full returns the time of the first failed write if the store's disk is full, and zero if the disk has space.
func (w *Workflow) Full() time.Time { return w.jobs.Full() }

// Work on a turn or a delivery can crash the process. For example, the process runs out of memory. The next process
// would do the same work and crash too. So the bot records the work in progress. If the work on a turn has crashed
// turnCrashes processes, the bot stops the turn, and shows the button Try again. If a delivery has crashed
// deliveryCrashes processes, the bot does not handle the delivery. In both cases, the bot notifies the people
// concerned.
//
// The bot can't know whether a delivery caused a crash. If processes crash soon after their start for another reason, a
// delivery that is handled at the start would reach deliveryCrashes within seconds. Therefore, from the second crash
// on, a new process waits before it tries the delivery again (untilRetry).
const (
	turnCrashes     = 2
	deliveryCrashes = 5 // higher than turnCrashes, because a few crashes must not make the bot drop a decision that it has acknowledged
)

// crashable has the timer kinds whose work in progress is recorded. Tool runs are not recorded here, because maxTries
// limits the tries of a run.
var crashable = map[store.TimerKind]bool{store.TimerThink: true, store.TimerInbox: true}

type noCrashes struct{}

func (noCrashes) Begin(string, string)     {}
func (noCrashes) End(string, string)       {}
func (noCrashes) Count(string, string) int { return 0 }
func (noCrashes) Forget(string, string)    {}

// afterCrashesError postpones the next try of a delivery, because earlier processes crashed while they handled it.
type afterCrashesError struct{ wait time.Duration }

func (e afterCrashesError) Error() string {
	return "processes crashed during this work, so this process first does other work"
}

// After returns the delay before the next try. The scheduler calls After.
func (e afterCrashesError) After() time.Duration { return e.wait }

// Untried tells the scheduler that the wait does not count as a try. Some deliveries have only a few tries.
func (e afterCrashesError) Untried() {}

// untilRetry returns how long a delivery must wait. After two crashes, a delivery is handled when the process has
// worked for one second. The time doubles with each further crash. A delivery that has reached deliveryCrashes does not
// wait, because the bot does not handle it any more.
func (w *core) untilRetry(t store.Timer) time.Duration {
	n := w.Crashes.Count(string(t.Kind), t.Ref)
	if t.Kind != store.TimerInbox || n < 2 || n >= deliveryCrashes {
		return 0
	}
	return time.Second<<(n-2) - time.Since(w.began)
}

// survive calls a handler. While the handler runs, survive records that the work is in progress.
func (w *core) survive(ctx context.Context, t store.Timer, handle jobs.Handler) error {
	if wait := w.untilRetry(t); wait > 0 {
		return afterCrashesError{wait}
	}
	if crashable[t.Kind] {
		w.Crashes.Begin(string(t.Kind), t.Ref)
		defer w.Crashes.End(string(t.Kind), t.Ref)
	}
	err := handle(ctx, t)
	if err == nil && t.Kind == store.TimerInbox {
		w.Crashes.Forget(string(t.Kind), t.Ref) // a handled delivery is over; a turn continues
	}
	return err
}

// stopDeadly stops a turn whose model calls have crashed too many processes. stopDeadly reports whether it has stopped
// the turn.
func (t turnsTx) stopDeadly(turn approvers.Turn, conv store.Conversation) (bool, error) {
	n := t.w.Crashes.Count(string(store.TimerThink), turn.ID)
	if n < turnCrashes {
		return false, nil
	}
	t.note(slog.LevelError, "the process died again while it worked on a turn; the turn was stopped", "turn", turn.ID, "conversation", conv.ID, "deaths", n)
	return true, t.stop(turn, conv, "The bot's process ended twice while it worked on this, so I stopped here. Waiting and running calls are not affected. The operator of this bot finds the reason in the log.", true)
}

// Deadly returns how many processes crashed during the handling of a delivery. If the delivery may be tried again,
// Deadly returns 0.
func (w *Intake) Deadly(inbox string) int {
	if n := w.Crashes.Count(string(store.TimerInbox), inbox); n >= deliveryCrashes {
		return n
	}
	return 0
}

// GiveUp closes a delivery that the bot could not handle, and tells the operators. The parameter note is the reason.
func (w *Intake) GiveUp(ctx context.Context, inbox, note string) error {
	return w.update(ctx, "give up", func(t *tx) error {
		return errors.Join(t.settle(inbox, note), t.operators.happened(settings.ProblemDelivery, inbox, note))
	})
}

// Abandon closes a delivery that has crashed too many processes. The audit record has the id of the user who sent the
// delivery.
func (w *Intake) Abandon(ctx context.Context, inbox, user string) error {
	n := w.Crashes.Count(string(store.TimerInbox), inbox)
	err := w.update(ctx, "abandon", func(t *tx) error {
		if err := t.settle(inbox, fmt.Sprintf("%d processes ended while they worked on it", n)); err != nil {
			return err
		}
		if err := t.operators.happened(settings.ProblemDelivery, inbox, fmt.Sprintf("the process ended %d times while it worked on it", n)); err != nil {
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
