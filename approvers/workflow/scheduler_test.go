package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
)

// inFakedTime runs a test in faked time, while Work handles the workflow's timers.
func inFakedTime(t *testing.T, fn func(*testing.T, *workingHarness)) {
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &workingHarness{harness: &harness{t: t, tools: newToolbox(), clock: &clock{now: time.Now()}, store: s}, after: func() {}}
		w.policy.Store(policy("policy-1"))
		w.Workflow = workflow.New(workflow.Config{Store: &hooked{Store: s, w: w}, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler)})
		fn(t, w)
		if err := w.stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// workingHarness is a harness whose workflow handles its timers with Work.
type workingHarness struct {
	*harness
	cancel context.CancelFunc
	done   chan error
	mu     sync.Mutex
	after  func() // called after each read of the store
}

type hooked struct {
	store.Store
	w *workingHarness
}

func (h *hooked) View(ctx context.Context, fn func(store.Reader) error) error {
	err := h.Store.View(ctx, fn)
	h.w.mu.Lock()
	after := h.w.after
	h.w.mu.Unlock()
	after()
	return err
}

func (w *workingHarness) hook(after func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = after
}

func (w *workingHarness) work(workers map[store.TimerKind]jobs.Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.done = cancel, make(chan error, 1)
	go func() { w.done <- w.Work(ctx, workers) }()
}

// w.stop ends Work and returns its error.
func (w *workingHarness) stop() error {
	if w.cancel == nil {
		return nil
	}
	w.cancel()
	w.cancel = nil
	return <-w.done
}

// pass advances the faked time. All work that becomes due is done.
func (w *workingHarness) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
	w.clock.mu.Lock()
	w.clock.now = time.Now()
	w.clock.mu.Unlock()
}

// put stores inbox rows, as examples of rows with a timer. The timers are due immediately, in the given order.
func (w *workingHarness) put(rows ...string) {
	w.t.Helper()
	for i, row := range rows {
		id, lane, _ := strings.Cut(row, "@")
		_, err := w.Intake.Receive(context.Background(), store.Inbox{ID: id, Kind: store.InboxEvent, ReceivedAt: time.Now().Add(time.Duration(i-len(rows)) * time.Microsecond)}, lane)
		w.ok(err)
	}
}

// log records the actions of handlers, in order.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, " ")
}

func TestWorkEscalatesAndExpires(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		r := w.ask(`apply_discount {}`)
		w.work(nil)
		w.pass(escalateAfter - time.Second)
		if got := w.request(r.ID); len(got.Joined) != 0 {
			t.Errorf("joined by %v too early", got.Joined)
		}
		w.pass(2 * time.Second)
		if got := w.request(r.ID); len(got.Joined) != 1 {
			t.Errorf("joined by %v; want the lead", got.Joined)
		}
		w.pass(expiresAfter)
		w.wantState(r.ID, approvers.Expired)
		w.wantKinds(r.ID, "proposed escalated escalated closed returned")
		if err := w.stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
		w.invariants()
	})
}

// TestWorkWakesForWhatIsNew checks that a new timer that is due is handled immediately, without waiting for the next
// poll.
func TestWorkWakesForWhatIsNew(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var l log
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 2, Handle: func(ctx context.Context, t store.Timer) error {
			l.add("%s", t.Ref)
			return w.Intake.Done(ctx, t.Ref, "")
		}}})
		w.pass(time.Hour)
		began := time.Now()
		w.put("a", "b")
		synctest.Wait()
		if l.String() == "" || time.Since(began) != 0 {
			t.Errorf("handled %q after %s", l.String(), time.Since(began))
		}
	})
}

func TestLanesAndWorkers(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var mu sync.Mutex
		running, most := map[string]int{}, 0
		var l log
		handle := func(ctx context.Context, timer store.Timer) error {
			mu.Lock()
			if running[timer.Ref]++; running[timer.Ref] > 1 {
				t.Errorf("%s is handled twice simultaneously", timer.Ref)
			}
			if timer.Lane != "" && running["lane "+timer.Lane] > 0 {
				t.Errorf("two timers of lane %s are handled simultaneously", timer.Lane)
			}
			running["lane "+timer.Lane]++
			running["all"]++
			most = max(most, running["all"])
			mu.Unlock()
			<-time.After(time.Second)
			l.add("%s", timer.Ref)
			err := w.Intake.Done(ctx, timer.Ref, "")
			mu.Lock()
			running[timer.Ref]--
			running["lane "+timer.Lane]--
			running["all"]--
			mu.Unlock()
			return err
		}
		w.put("a1@a", "a2@a", "a3@a", "b1@b", "b2@b", "c1", "c2", "c3")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 3, Handle: handle}})
		w.pass(time.Minute)
		got := strings.Fields(l.String())
		if len(got) != 8 || most != 3 {
			t.Errorf("handled %v, at most %d simultaneously; want all 8, 3 simultaneously", got, most)
		}
		for _, lane := range []string{"a", "b"} {
			var order []string
			for _, ref := range got {
				if strings.HasPrefix(ref, lane) {
					order = append(order, ref)
				}
			}
			if !slices.IsSorted(order) {
				t.Errorf("lane %s was handled as %v", lane, order)
			}
		}
	})
}

// later is an error that asks for a delay.
type later time.Duration

func (l later) Error() string        { return "rate limited" }
func (l later) After() time.Duration { return time.Duration(l) }

func TestFailuresAreTriedAgainLater(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var l log
		began := time.Now()
		n := 0
		handle := func(ctx context.Context, timer store.Timer) error {
			l.add("%s", time.Since(began).Round(time.Millisecond))
			switch n++; {
			case n == 3:
				return fmt.Errorf("wrapped: %w", later(20*time.Second))
			case n == 5:
				return nil // the handler forgets to clear its timer, which must not lead to a busy loop
			case n < 7:
				return errors.New("no")
			}
			return w.Intake.Done(ctx, timer.Ref, "")
		}
		w.put("a")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 1, Handle: handle}})
		w.pass(time.Hour)
		if got, want := l.String(), "0s 100ms 300ms 20.3s 21.1s 22.7s 25.9s"; got != want {
			t.Errorf("handled at %s; want %s", got, want)
		}
	})
}

// deaths is how many processes crashed while they handled each delivery.
type deaths map[string]int

func (deaths) Begin(string, string)      {}
func (deaths) End(string, string)        {}
func (deaths) Forget(string, string)     {}
func (d deaths) Count(_, ref string) int { return d[ref] }

// TestDeliveryWaitsAfterCrashes checks deliveries that were being handled when earlier processes crashed. The new
// process waits before it handles these deliveries. So if the process crashes soon after its start for another reason,
// the crash is not counted for these deliveries. Later deliveries of the same thread keep their order, and other
// threads do not wait. A delivery that has crashed too many processes does not wait, because the bot will not handle
// it.
func TestDeliveryWaitsAfterCrashes(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		w.Crashes = deaths{"b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 4}
		var l log
		began := time.Now()
		w.put("a", "b", "c@thread", "c2@thread", "d", "e", "f")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
			l.add("%s:%s", timer.Ref, time.Since(began))
			if timer.Tries > 0 {
				t.Errorf("%s: the wait counts as %d tries", timer.Ref, timer.Tries)
			}
			return w.Intake.Done(ctx, timer.Ref, "")
		}}})
		w.pass(time.Minute)
		if got, want := l.String(), "a:0s b:0s f:0s c:1s c2:1s d:2s e:4s"; got != want {
			t.Errorf("handled at %s; want %s", got, want)
		}
		w.put("g") // the process has run for long
		w.pass(0)
		if got := l.String(); !strings.HasSuffix(got, " g:1m0s") {
			t.Errorf("handled at %s; want g without a wait", got)
		}
	})
}

func TestBackoffEndsAtHalfAMinute(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var n atomic.Int64
		w.put("a")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 1, Handle: func(context.Context, store.Timer) error {
			n.Add(1)
			return errors.New("no")
		}}})
		w.pass(time.Minute) // the tries begin after 0, .1, .3, .7, 1.5, 3.1, 6.3, 12.7, 25.5 and 51.1 seconds
		if got := n.Load(); got != 10 {
			t.Errorf("%d tries in the first minute; want 10", got)
		}
		w.pass(time.Hour)
		if got := n.Load() - 10; got < 119 || got > 121 {
			t.Errorf("%d tries in the hour after; want one every half minute", got)
		}
	})
}

// TestALaneKeepsItsOrderThroughAFailure checks a message whose handler fails. The messages of a thread have the same
// lane, which is a queue of timers that are handled in order. The next message of the thread waits until the failed
// message is handled or given up. Other lanes are handled as usual.
func TestALaneKeepsItsOrderThroughAFailure(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var l log
		fails := map[string]int{"a1": 3, "b1": 1_000_000}
		var mu sync.Mutex
		handle := func(ctx context.Context, timer store.Timer) error {
			mu.Lock()
			defer mu.Unlock()
			if fails[timer.Ref] > 0 {
				fails[timer.Ref]--
				return errors.New("Slack is down")
			}
			l.add("%s", timer.Ref)
			return w.Intake.Done(ctx, timer.Ref, "")
		}
		w.put("a1@a", "a2@a", "b1@b", "b2@b", "c1@c")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 4, Handle: handle}})
		w.pass(50 * time.Millisecond)
		if got := l.String(); got != "c1" {
			t.Errorf("at first %q was handled; want the lane without a failure", got)
		}
		w.pass(time.Second) // longer than the delays of 100, 200 and 400 ms
		if got := l.String(); got != "c1 a1 a2" {
			t.Errorf("then %q; want the lane in its order", got)
		}
		w.pass(5 * time.Minute)
		if got := l.String(); got != "c1 a1 a2 b2" {
			t.Errorf("in the end %q; want the lane behind the failing timer to continue", got)
		}
	})
}

// TestALaneGoesOnWhenItsFirstIsGone checks a lane, which is a queue of timers that are handled in order. If a use case
// clears the first timer of the lane, the next timer is handled.
func TestALaneGoesOnWhenItsFirstIsGone(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var l log
		w.put("a1@a", "a2@a")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
			if timer.Ref == "a1" {
				return later(time.Hour)
			}
			l.add("%s", timer.Ref)
			return w.Intake.Done(ctx, timer.Ref, "")
		}}})
		w.pass(time.Minute)
		if got := l.String(); got != "" {
			t.Errorf("%q overtook the lane's first timer", got)
		}
		w.ok(w.Intake.Done(context.Background(), "a1", "settled elsewhere"))
		w.pass(5 * time.Second)
		if got := l.String(); got != "a2" {
			t.Errorf("handled %q; want the lane to continue", got)
		}
	})
}

// TestAStaleTimerIsNotHandled checks a timer that is postponed after the scheduler has read the timer as due. The
// scheduler does not handle the timer.
func TestAStaleTimerIsNotHandled(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var l log
		release, reading, read := make(chan bool), make(chan bool), make(chan bool)
		handle := func(ctx context.Context, timer store.Timer) error {
			l.add("%s", timer.Ref)
			if timer.Ref != "a" {
				return w.Intake.Done(ctx, timer.Ref, "")
			}
			if l.String() == "a" {
				<-release
			}
			return later(time.Hour)
		}
		w.put("a")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 4, Handle: handle}})
		synctest.Wait() // a is being handled
		first := true
		w.hook(func() {
			w.mu.Lock()
			mine := first
			first = false
			w.mu.Unlock()
			if mine { // the scheduler has read that a and b are due, and takes them up in a moment
				reading <- true
				<-read
			}
		})
		w.put("b")
		<-reading
		release <- true
		synctest.Wait() // a was put off
		read <- true
		w.pass(time.Minute)
		if got := l.String(); got != "a b" {
			t.Errorf("handled %q; want a once", got)
		}
	})
}

func TestACommitInDoubtStopsTheWork(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		w.put("a", "b")
		begun := make(chan bool)
		var stopped atomic.Bool
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
			if timer.Ref == "a" {
				<-begun
				return fmt.Errorf("decide: %w", store.ErrCommitUnknown)
			}
			close(begun)
			<-ctx.Done()
			<-time.After(time.Second)
			stopped.Store(true)
			return ctx.Err()
		}}})
		w.pass(time.Minute)
		if !stopped.Load() {
			t.Error("the other handlers were not stopped")
		}
		err := w.stop()
		if !errors.Is(err, store.ErrCommitUnknown) {
			t.Errorf("stopped with %v; want ErrCommitUnknown", err)
		}
		if n := len(w.timers(store.TimerInbox)); n != 2 {
			t.Errorf("%d deliveries are left to the next process; want both", n)
		}
	})
}

func TestStoppingWaitsForHandlers(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var done atomic.Bool
		w.put("a")
		w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
			<-ctx.Done()
			<-time.After(time.Second)
			done.Store(true)
			return ctx.Err()
		}}})
		synctest.Wait()
		if err := w.stop(); err != nil || !done.Load() {
			t.Errorf("stopped with %v, handler done %t", err, done.Load())
		}
		if got := w.timers(store.TimerInbox)["a"]; got.Tries != 0 {
			t.Errorf("being stopped counts as %d failed tries", got.Tries)
		}
	})
}
