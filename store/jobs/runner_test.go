package jobs_test

import (
	"bytes"
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

	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
)

// fixture is a runner over a real store, in the fake time of synctest. fixture records which timers were handled, and
// when.
type fixture struct {
	*jobs.Runner
	t       *testing.T
	store   store.Store
	start   time.Time
	over    func(store.Store) store.Store // wraps the store for the runner; nil: no wrapper
	flow    func(store.Reader, store.Timer) (string, error)
	mu      sync.Mutex
	handled []string // "ref@seconds"
}

// run sets timers, and lets the runner run for some time.
func run(t *testing.T, o jobs.Options, handle func(store.Timer) error, lasting time.Duration, timers ...store.Timer) *fixture {
	t.Helper()
	return new(fixture).run(t, o, handle, lasting, timers...)
}

func (f *fixture) run(t *testing.T, o jobs.Options, handle func(store.Timer) error, lasting time.Duration, timers ...store.Timer) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	f.t = t
	synctest.Test(t, func(t *testing.T) {
		s, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f.store, f.start = s, time.Now()
		o.Store, o.Kinds = s, []store.TimerKind{store.TimerRun}
		if o.Log == nil {
			o.Log = slog.New(slog.DiscardHandler)
		}
		o.Now = func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
		o.Update = func(ctx context.Context, _ string, fn func(store.Tx, time.Time) error) error {
			return s.Update(ctx, func(tx store.Tx) error { return fn(tx, o.Now()) })
		}
		if f.over != nil {
			o.Store = f.over(s)
		}
		f.Runner = jobs.New(o)
		f.set(timers...)
		ctx, stop := context.WithTimeout(t.Context(), lasting)
		defer stop()
		err = f.Run(ctx, map[store.TimerKind]jobs.Worker{store.TimerRun: {Concurrency: 4, Flow: f.flow, Handle: func(ctx context.Context, timer store.Timer) error {
			f.note(timer.Ref)
			if err := handle(timer); err != nil {
				return err
			}
			return f.clear(ctx, timer)
		}}})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) note(ref string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled = append(f.handled, fmt.Sprintf("%s@%.1f", ref, time.Since(f.start).Seconds()))
}

// refs returns the timers that were handled, in order.
func (f *fixture) refs() (refs []string) {
	for _, h := range f.handled {
		ref, _, _ := strings.Cut(h, "@")
		refs = append(refs, ref)
	}
	return refs
}

// set sets timers. The Due of a timer is relative: the zero time is the start.
func (f *fixture) set(timers ...store.Timer) {
	f.t.Helper()
	err := f.store.Update(context.Background(), func(tx store.Tx) error {
		for _, timer := range timers {
			timer.Kind, timer.Due = store.TimerRun, f.start.UTC().Truncate(time.Microsecond).Add(timer.Due.Sub(time.Time{}))
			if err := tx.SetTimer(timer); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) clear(ctx context.Context, timer store.Timer) error {
	return f.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(timer.Kind, timer.Ref) })
}

func (f *fixture) want(handled ...string) {
	f.t.Helper()
	if !slices.Equal(f.handled, handled) {
		f.t.Errorf("handled %v; want %v", f.handled, handled)
	}
}

func at(ref, lane string, after time.Duration) store.Timer {
	return store.Timer{Ref: ref, Lane: lane, Due: time.Time{}.Add(after)}
}

func succeeds(store.Timer) error { return nil }

// TestRun checks that each timer is handled once, when it is due.
func TestRun(t *testing.T) {
	run(t, jobs.Options{}, succeeds, time.Minute, at("later", "", 5*time.Second), at("now", "", 0)).want("now@0.0", "later@5.0")
}

// TestRetries checks that a timer is retried with back-off after its handler fails. The other timers of the same lane
// wait.
func TestRetries(t *testing.T) {
	fails := func(timer store.Timer) error {
		if timer.Ref == "a" && timer.Tries < 2 {
			return errors.New("not yet")
		}
		return nil
	}
	run(t, jobs.Options{}, fails, time.Minute, at("a", "lane", 0), at("b", "lane", time.Millisecond)).want("a@0.0", "a@0.1", "a@0.3", "b@0.3")
}

// slowRead is a store with one slow read. The slow read begins 5 ms after the start of the test, and takes 50 ms.
type slowRead struct {
	store.Store
	start time.Time
}

func (s slowRead) View(ctx context.Context, fn func(store.Reader) error) error {
	slow := time.Since(s.start) == 5*time.Millisecond
	return s.Store.View(ctx, func(r store.Reader) error {
		if slow {
			time.Sleep(50 * time.Millisecond)
		}
		return fn(r)
	})
}

// TestReadDuringAFailure checks a read of the store that begins before a timer is put off, and ends after the timer was
// put off. The other timers of the lane must wait.
func TestReadDuringAFailure(t *testing.T) {
	f := &fixture{}
	f.over = func(s store.Store) store.Store { return slowRead{s, time.Now()} }
	f.run(t, jobs.Options{}, func(timer store.Timer) error {
		if timer.Ref != "a" || timer.Tries > 0 {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
		f.Wake()
		time.Sleep(5 * time.Millisecond)
		return errors.New("not yet")
	}, time.Minute, at("a", "lane", 0), at("b", "lane", time.Millisecond))
	f.want("a@0.0", "a@0.1", "b@0.1")
}

// TestInterruptedLaneKeepsItsOrder checks a lane with two due timers. The handler of the first timer is interrupted, so
// the first timer stays due. The runner has already read the second timer. The second timer must wait until the runner
// reads the timers again, because the first timer comes before it.
func TestInterruptedLaneKeepsItsOrder(t *testing.T) {
	for _, why := range []error{jobs.ErrKeep, store.ErrUnavailable, store.ErrFenced} {
		var tries atomic.Int64
		f := run(t, jobs.Options{}, func(timer store.Timer) error {
			if timer.Ref == "a" && tries.Add(1) == 1 {
				return why
			}
			return nil
		}, time.Minute, at("a", "lane", 0), at("b", "lane", 0))
		if got := fmt.Sprint(f.refs()); got != "[a a b]" {
			t.Errorf("%v: handled %s", why, got)
		}
	}
}

// TestShareThatCameBack checks a replica that lost a share and got it back between two reads. In the meantime, another
// replica put off the first timer of a lane. The lane's other timer must wait for the first timer.
func TestShareThatCameBack(t *testing.T) {
	f := &fixture{}
	var tries atomic.Int64
	f.run(t, jobs.Options{Replica: gaining{began: sync.OnceValue(func() time.Time { return time.Now().Add(-time.Hour) })}}, func(timer store.Timer) error {
		if timer.Ref != "a" || tries.Add(1) > 1 {
			return nil
		}
		put := at("a", "lane", 5*time.Second)
		put.Tries, put.PutOff = 1, f.start
		f.set(put)
		return store.ErrFenced
	}, time.Minute, at("a", "lane", 0), at("b", "lane", 0))
	f.want("a@0.0", "a@5.0", "b@5.0")
}

// later is an error that asks for a delay.
type later time.Duration

func (l later) Error() string        { return "later" }
func (l later) After() time.Duration { return time.Duration(l) }

// TestRequestedDelay checks a lane whose first timer's handler asks for delays. The lane's other timers wait during
// these delays, even if another process takes over. The timers of other lanes are handled.
func TestRequestedDelay(t *testing.T) {
	waits := func(timer store.Timer) error {
		if timer.Ref == "a" && timer.Tries < 10 {
			return later(time.Second)
		}
		return nil
	}
	began := time.Time{}.Add(-time.Minute)
	put := at("a", "lane", 3*time.Second) // a timer that an earlier process put off
	put.Tries, put.PutOff = 8, began
	run(t, jobs.Options{}, waits, time.Minute, put, at("b", "lane", 0), at("c", "other", time.Second)).want("c@1.0", "a@3.0", "a@4.0", "a@5.0", "b@5.0")
}

// gaining is a replica that gets all shares two seconds after its start.
type gaining struct {
	store.Alone
	began func() time.Time
}

func (g gaining) Shares() store.Shares {
	if time.Since(g.began()) < 2*time.Second {
		return 0
	}
	return store.AllShares
}

// TestHeldLaneOfAnotherReplica checks that a held lane stays held when another replica gets the lane's share.
func TestHeldLaneOfAnotherReplica(t *testing.T) {
	put := at("a", "lane", 5*time.Second)
	put.Tries, put.PutOff = 1, time.Time{}.Add(time.Second)
	o := jobs.Options{Replica: gaining{began: sync.OnceValue(time.Now)}}
	run(t, o, succeeds, time.Minute, put, at("b", "lane", 0)).want("a@5.0", "b@5.0")
}

// TestHeldTimersLeaveRoom checks that timers of other lanes are handled, even if thousands of timers wait in a held
// lane.
func TestHeldTimersLeaveRoom(t *testing.T) {
	timers := []store.Timer{at("a", "lane", 0)}
	for i := range 3000 {
		timers = append(timers, at(fmt.Sprint("b", i), "lane", time.Millisecond))
	}
	f := run(t, jobs.Options{}, func(timer store.Timer) error {
		if timer.Ref == "a" {
			return later(time.Hour)
		}
		return nil
	}, time.Minute, append(timers, at("c", "other", 2*time.Millisecond))...)
	if len(f.handled) != 2 || !strings.HasPrefix(f.handled[1], "c@") {
		t.Errorf("handled %v", f.handled)
	}
}

// TestFlows checks that the flows of a lane take turns, and that each flow keeps its order. A timer of a new flow is
// handled next. Lanes do not affect each other.
func TestFlows(t *testing.T) {
	var timers []store.Timer
	for i := range 30 {
		timers = append(timers, at(fmt.Sprint("a", i), "lane", time.Duration(i)*time.Millisecond))
	}
	for i := range 3 {
		timers = append(timers, at(fmt.Sprint("b", i), "lane", 40*time.Millisecond+time.Duration(i)*time.Millisecond))
	}
	timers = append(timers, at("c0", "lane", 4500*time.Millisecond), at("d0", "other", 100*time.Millisecond), at("a", "other", 50*time.Millisecond), at("e0", "", 0))
	f := &fixture{flow: func(_ store.Reader, timer store.Timer) (string, error) { return timer.Ref[:1], nil }}
	f.run(t, jobs.Options{}, func(store.Timer) error { time.Sleep(time.Second); return nil }, time.Hour, timers...)
	var order []string
	for _, h := range f.handled {
		ref, _, _ := strings.Cut(h, "@")
		order = append(order, ref)
	}
	if len(order) != 37 || !slices.Contains(f.handled, "a@1.0") || !slices.Contains(f.handled, "d0@2.0") {
		t.Errorf("handled %v", f.handled)
	}
	order = slices.DeleteFunc(order, func(ref string) bool { return ref == "a" || ref == "d0" || ref == "e0" })
	for ref, most := range map[string]int{"b0": 2, "b1": 4, "c0": 6, "b2": 7} { // when only one timer of a lane is due, its handling does not count as a turn of its flow
		if at := slices.Index(order, ref); at < 0 || at > most {
			t.Errorf("the lane was handled as %v; %s comes at the place %d, want %d at most", order, ref, at, most)
		}
	}
	if as := slices.DeleteFunc(order, func(ref string) bool { return ref[0] != 'a' }); as[29] != "a29" || as[15] != "a15" {
		t.Errorf("the flow was handled as %v", as)
	}
}

// slowReads is a store whose reads take 2 ms.
type slowReads struct {
	store.Store
	n atomic.Int64
}

func (s *slowReads) View(ctx context.Context, fn func(store.Reader) error) error {
	s.n.Add(1)
	time.Sleep(2 * time.Millisecond)
	return s.Store.View(ctx, fn)
}

// TestManyDue checks that the runner does not read all of many due timers after each wake-up.
func TestManyDue(t *testing.T) {
	testkit.SkipIfShort(t)
	for many, want := range map[int][2]int64{200: {600, 1100}, 100: {5000, 20_000}} {
		var timers []store.Timer
		for i := range many {
			timers = append(timers, at(fmt.Sprintf("a%03d", i), "lane", 0))
		}
		reads := &slowReads{}
		f := &fixture{over: func(s store.Store) store.Store { reads.Store = s; return reads }}
		f.run(t, jobs.Options{}, func(store.Timer) error {
			for range 1000 {
				time.Sleep(time.Millisecond)
				f.Wake()
			}
			return nil
		}, 20*time.Second, timers...)
		if n := reads.n.Load(); n < want[0] || n > want[1] || len(f.handled) < 19 {
			t.Errorf("with %d due timers, the runner read %d times and handled %v", many, n, f.handled)
		}
	}
}

// TestKeep checks a handler that returns ErrKeep: the timer stays unchanged, and the call does not count as a failure.
func TestKeep(t *testing.T) {
	kept := 0
	f := run(t, jobs.Options{Around: func(ctx context.Context, timer store.Timer, handle jobs.Handler) error {
		if kept++; kept == 1 {
			return jobs.ErrKeep
		}
		if timer.Tries != 0 {
			t.Errorf("%d tries", timer.Tries)
		}
		return handle(ctx, timer)
	}}, succeeds, time.Minute, at("a", "", 0))
	if len(f.handled) != 1 || kept != 2 {
		t.Errorf("handled %v, after it was kept %d times", f.handled, kept-1)
	}
}

// TestAwake checks that the runner handles only the timers that Awake returns.
func TestAwake(t *testing.T) {
	f := run(t, jobs.Options{Awake: func(_ store.Reader, timers []store.Timer) ([]store.Timer, error) {
		return slices.DeleteFunc(timers, func(timer store.Timer) bool { return timer.Ref == "rests" }), nil
	}}, succeeds, time.Minute, at("rests", "", 0), at("a", "", 0))
	f.want("a@0.0")
}

// TestGiveUp checks that the runner gives up a timer whose handler always panics. Other timers are handled.
func TestGiveUp(t *testing.T) {
	var given []string
	o := jobs.Options{}
	f := &fixture{}
	o.GiveUp = func(ctx context.Context, timer store.Timer) error {
		given = append(given, timer.Ref)
		return f.clear(ctx, timer)
	}
	f.run(t, o, func(timer store.Timer) error {
		if timer.Ref == "a" {
			panic("a defect")
		}
		return nil
	}, time.Minute, at("a", "lane", 0), at("b", "lane", time.Millisecond))
	f.want("a@0.0", "a@0.1", "a@0.3", "b@0.3")
	if !slices.Equal(given, []string{"a"}) {
		t.Errorf("gave up %v", given)
	}
}

// TestNotReady checks that no handler starts while the store is not ready.
func TestNotReady(t *testing.T) {
	run(t, jobs.Options{Ready: func() bool { return false }}, succeeds, time.Minute, at("a", "", 0)).want()
}

// TestUnknownKind checks that Run refuses a worker whose kind is not in Options.Kinds. This worker would never be
// woken.
func TestUnknownKind(t *testing.T) {
	r := jobs.New(jobs.Options{Kinds: []store.TimerKind{store.TimerRun}})
	err := r.Run(t.Context(), map[store.TimerKind]jobs.Worker{store.TimerRun: {}, store.TimerThink: {}})
	if err == nil || !strings.Contains(err.Error(), `"think"`) {
		t.Errorf("got %v", err)
	}
}

// away is a store whose database does not answer before a given time.
type away struct {
	store.Store
	until time.Time
}

func (a away) View(ctx context.Context, fn func(store.Reader) error) error {
	if time.Now().Before(a.until) {
		return fmt.Errorf("%w: nobody listens", store.ErrUnavailable)
	}
	return a.Store.View(ctx, fn)
}

// While the database does not answer, timers wait, and Run does not return.
func TestUnavailable(t *testing.T) {
	f := &fixture{}
	f.over = func(s store.Store) store.Store { return away{s, time.Now().Add(20 * time.Second)} }
	f.run(t, jobs.Options{}, succeeds, time.Minute, at("a", "", 0)).want("a@20.0")
}

// fickle is a store whose database answers only every second read.
type fickle struct {
	store.Store
	reads *atomic.Int64
}

func (s fickle) View(ctx context.Context, fn func(store.Reader) error) error {
	if s.reads.Add(1)%2 == 1 {
		return fmt.Errorf("%w: no connection is left", store.ErrUnavailable)
	}
	return s.Store.View(ctx, fn)
}

// If the database answers some reads and refuses others, the log has at most one pair of messages in half a minute.
func TestFickleDatabase(t *testing.T) {
	var log bytes.Buffer
	f, reads := &fixture{}, atomic.Int64{}
	f.over = func(s store.Store) store.Store { return fickle{s, &reads} }
	f.run(t, jobs.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, succeeds, 5*time.Minute)
	away, back := strings.Count(log.String(), "does not answer"), strings.Count(log.String(), "answers again")
	if reads.Load() < 40 || away < 2 || away > 10 || back < away-1 || back > away {
		t.Errorf("%d reads: %d and %d messages", reads.Load(), away, back)
	}
}

// other is a replica that gets notices. The runner's call of Notices makes the channel, because a channel from outside
// of the bubble would stop the fake time.
type other struct {
	store.Alone
	notices func() chan store.Notice
}

func (o other) Notices() <-chan store.Notice { return o.notices() }

// The runner passes the news of a notice to Hear before the notice wakes a worker, because the news may make a cached
// value invalid.
func TestNewsBeforeWakeUp(t *testing.T) {
	t.Parallel()
	var f fixture
	from := other{notices: sync.OnceValue(func() chan store.Notice { return make(chan store.Notice) })}
	var heard []string
	o := jobs.Options{Replica: from, Hear: func(news []string) {
		synctest.Wait() // if the worker were awake, it would handle the timer now
		f.mu.Lock()
		defer f.mu.Unlock()
		heard = append(slices.Clone(f.handled), news...)
	}}
	f.run(t, o, func(timer store.Timer) error {
		if timer.Ref == "first" {
			time.AfterFunc(time.Second/2, func() { // earlier than the worker would read the store by itself
				f.set(at("second", "", 0))
				from.notices() <- store.Notice{Timers: map[store.TimerKind]store.Shares{store.TimerRun: store.AllShares}, News: []string{"news"}}
			})
		}
		return nil
	}, time.Second, at("first", "", 0))
	if want := []string{"first@0.0", "news"}; !slices.Equal(heard, want) {
		t.Errorf("up to the news: %q, want %q", heard, want)
	}
	f.want("first@0.0", "second@0.5")
}

// Another replica sets a timer, and its notice is lost. The runner finds the timer within a second. While no timer is
// due, only the runner's common read of all kinds comes each second.
func TestLostNotice(t *testing.T) {
	t.Parallel()
	reads := &slowReads{}
	f := &fixture{over: func(s store.Store) store.Store { reads.Store = s; return reads }}
	from := other{notices: sync.OnceValue(func() chan store.Notice { return make(chan store.Notice) })}
	f.run(t, jobs.Options{Replica: from}, func(timer store.Timer) error {
		if timer.Ref == "first" {
			time.AfterFunc(1500*time.Millisecond, func() { f.set(at("second", "", 0)) })
		}
		return nil
	}, time.Minute, at("first", "", 0))
	f.want("first@0.0", "second@2.0")
	if n := reads.n.Load(); n > 60+20 {
		t.Errorf("the runner read the store %d times in a minute", n)
	}
}

// Another replica, whose clock is 30 s ahead, sets timers, and its notices are lost. The runner finds the timers within
// a second, although they are not due by its clock. Timers that are put off cost at most one more read each second.
func TestReplicaAhead(t *testing.T) {
	t.Parallel()
	reads := &slowReads{}
	f := &fixture{over: func(s store.Store) store.Store { reads.Store = s; return reads }}
	from := other{notices: sync.OnceValue(func() chan store.Notice { return make(chan store.Notice) })}
	retried := at("retried", "", 50*time.Second)
	retried.PutOff = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	o := jobs.Options{Replica: from, Soon: map[store.TimerKind]bool{store.TimerRun: true}}
	f.run(t, o, func(timer store.Timer) error {
		if timer.Ref == "first" {
			for _, after := range []time.Duration{20_500 * time.Millisecond, 55_500 * time.Millisecond} {
				time.AfterFunc(after, func() { f.set(at("ahead", "", after+30*time.Second)) })
			}
		}
		return nil
	}, time.Minute, at("first", "", 0), retried)
	f.want("first@0.0", "ahead@21.0", "retried@50.0", "ahead@56.0")
	if n := reads.n.Load(); n > 2*60+20 {
		t.Errorf("the runner read the store %d times in a minute", n)
	}
}
