package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
)

// running is a clock that runs like a real clock. A test can set the clock forward and back.
type running struct {
	mu      sync.Mutex
	base    time.Time // the clock's time when it was started
	started time.Time
	set     time.Time // the clock's time when it was set last
	looks   int       // how often it was read since then
}

func (c *running) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return c.base.Add(time.Since(c.started))
}

func (c *running) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = c.base.Add(d)
	c.set = c.base.Add(time.Since(c.started))
	c.looks = 0
}

// c.looked reports whether the clock was read at least the given number of times since it was set.
func (c *running) looked(times int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks >= times
}

// c.late returns the time that has passed since a due time. If the clock was set forward past the due time, late
// returns the time since the clock was set.
func (c *running) late(due time.Time) time.Duration {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if due.Before(c.set) {
		due = c.set
	}
	return now.Sub(due)
}

// lateness collects how late the transition of each request was committed. The keys are request ids.
type lateness struct {
	mu  sync.Mutex
	all map[string]time.Duration
}

// l.timed returns a handler that calls handle and measures the time from the timer's due time to the commit. After the
// clock was set back, the handler may get a timer that is not due by the new clock. This timer is handled a second
// time, so the last measurement counts.
func (l *lateness) timed(c *running, handle jobs.Handler) jobs.Handler {
	return func(ctx context.Context, t store.Timer) error {
		if err := handle(ctx, t); err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all[t.Ref] = c.late(t.Due)
		return nil
	}
}

// l.count returns the number of requests whose transitions have been measured.
func (l *lateness) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

func (l *lateness) percentile(p int) time.Duration {
	all := slices.Sorted(maps.Values(l.all))
	return all[(len(all)-1)*p/100].Round(10 * time.Microsecond)
}

// Many expiries and escalations are due in each second. In the middle of the test, the clock is set back by an hour.
// Later, the clock is set forward by an hour. Each expiry and escalation must happen once, and never before its time.
// COUNTERSIGN_RATE and COUNTERSIGN_SECONDS select the long form of the test. The requests are opened while the
// clock runs, so the rows in the file are in about the order of their deadlines, as in a real store.
func TestDeadlinesAtRate(t *testing.T) {
	rate := testkit.Size(t, "COUNTERSIGN_RATE", 400)
	n := rate * testkit.Size(t, "COUNTERSIGN_SECONDS", 2)
	s, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	p := policy("policy-1")
	earlier := &running{base: start, started: time.Now()}
	wf := workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return p }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler), Now: earlier.Now})
	requests := crowd(t, wf, s, n)
	first := start.Add(escalateAfter)
	apart := time.Second / time.Duration(rate)
	spread(t, s, requests, first, apart)

	c := &running{base: first.Add(-200 * time.Millisecond), started: time.Now()}
	wf = workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return p }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler), Now: c.Now})
	late := lateness{all: map[string]time.Duration{}}
	ctx, stop := context.WithCancel(t.Context())
	working := new(errgroup.Group)
	working.Go(func() error {
		return wf.Work(ctx, map[store.TimerKind]jobs.Worker{
			store.TimerExpire:   {Handle: late.timed(c, wf.Requests.Expire), Concurrency: workflow.DeadlineWorkers},
			store.TimerEscalate: {Handle: late.timed(c, wf.Requests.Escalate), Concurrency: workflow.DeadlineWorkers},
		})
	})
	until := func(what string, true func() bool) {
		for end := time.Now().Add(10 * time.Minute); !true(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("timed out waiting until %s", what)
			}
		}
	}
	due := func(most int) (n int) {
		for _, kind := range []store.TimerKind{store.TimerExpire, store.TimerEscalate} {
			err := s.View(ctx, func(r store.Reader) error {
				// The next minute includes postponed timers. A timer that follows an escalation is due later.
				due, err := r.TimersIn(store.AllShares, kind, c.Now().Add(time.Minute), most)
				n += len(due)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	until("half of the transitions are done", func() bool { return late.count() >= n/2 })
	c.jump(-time.Hour)
	until("the workers have looked at the clock that was set back", func() bool { wf.Wake(); return c.looked(100) }) // the audit shows whether they have handled a deadline too early
	c.jump(time.Hour)
	wf.Wake()
	until("all transitions are done", func() bool { return late.count() == n && due(1) == 0 })
	stop()
	if err := working.Wait(); err != nil {
		t.Fatal(err)
	}
	early, double := 0, 0
	for i, r := range requests {
		e, d := once(t, s, r, first.Add(time.Duration(i)*apart).Truncate(time.Microsecond), i%2 == 0)
		early, double = early+e, double+d
	}
	t.Logf("rate=%d/s transitions=%d early=%d double=%d late p50=%s p99=%s max=%s", rate, len(late.all), early, double,
		late.percentile(50), late.percentile(99), late.percentile(100))
	if early > 0 || double > 0 || len(late.all) != n {
		t.Errorf("%d early, %d double, %d of %d", early, double, len(late.all), n)
	}
}

// crowd opens n requests, each in its own thread. Every second request only expires. The other requests escalate before
// they expire.
func crowd(t *testing.T, wf *workflow.Workflow, s store.Store, n int) []string {
	t.Helper()
	requests := make([]string, n)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error {
			heard, err := wf.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{Team: "T0001", Thread: fmt.Sprint(i), TS: fmt.Sprint(i), Who: alice, Text: "please", Start: true,
				Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"}})
			if err != nil {
				return err
			}
			spec := "cancel_account {}" // its role has no lead
			if i%2 == 1 {
				spec = `issue_refund {"amount":5}`
			}
			if err := wf.Turns.Propose(ctx, workflow.Proposal{Turn: heard.Turn, Calls: calls(spec), Authors: []approvers.PersonID{alice.ID}}); err != nil {
				return err
			}
			return s.View(ctx, func(r store.Reader) error {
				calls, err := r.Calls(heard.Turn)
				if err == nil {
					requests[i] = calls[0].Request
				}
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return requests
}

// spread sets the due times of the requests. The parameter first is the due time of the first request. The parameter
// apart is the duration between the due times of two requests.
func spread(t *testing.T, s store.Store, requests []string, first time.Time, apart time.Duration) {
	t.Helper()
	for from := 0; from < len(requests); from += 500 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			for i, id := range requests[from:min(from+500, len(requests))] {
				r, err := tx.Request(id)
				if err != nil {
					return err
				}
				due := first.Add(time.Duration(from+i) * apart).Truncate(time.Microsecond)
				timer := store.Timer{Kind: store.TimerEscalate, Ref: id, Due: due}
				if r.EscalateAt.IsZero() {
					timer.Kind, r.ExpiresAt = store.TimerExpire, due
				} else {
					r.EscalateAt = due
				}
				if err := tx.PutRequest(r); err != nil {
					return err
				}
				if err := tx.SetTimer(timer); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The function once counts a request's expiries or escalations. The first result is the number of expiries or
// escalations before the due time. The second result is the number of repetitions.
func once(t *testing.T, s store.Store, id string, due time.Time, expires bool) (early, double int) {
	t.Helper()
	var r approvers.Request
	var records []approvers.AuditRecord
	err := s.View(t.Context(), func(v store.Reader) (err error) {
		if r, err = v.Request(id); err != nil {
			return err
		}
		records, err = v.Audit(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	kind := approvers.AuditEscalated
	if expires {
		kind = approvers.AuditClosed
	}
	if expires && r.State != approvers.Expired || !expires && len(r.Joined) != 1 {
		t.Errorf("%s is %s, with %v", id, r.State, r.Joined)
	}
	n := 0
	for _, a := range records {
		if a.Kind != kind {
			continue
		}
		if n++; a.At.Before(due) {
			early++
		}
	}
	return early, max(0, n-1)
}
