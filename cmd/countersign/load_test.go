package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

const (
	loadThreads  = 20
	loadDecision = 3 * time.Second  // time from showing a card to the click on it
	loadLate     = 10 * time.Second // maximum p99 of the time from a run's end to its answer
	loadDrains   = 3 * time.Minute  // time after the last request by which everything must be shown
)

// TestLoad requests 60 calls per minute that need approval. In each second, one call comes at a random moment. The
// calls are in 20 threads of one channel. All cards are in another channel. Slack applies its published rate limits. A
// lead approves each card three seconds after it is shown. The answer to every run must be in the thread within ten
// seconds (p99). The backlog of messages must not grow, every step must be shown once, and Slack must refuse no call.
// In the end, no button of a decided request may be left.
//
// COUNTERSIGN_LOAD_MINUTES sets the duration in minutes (1 with CI=true). COUNTERSIGN_LOAD_RATE sets the number of
// requests per minute (60 with CI=true).
func TestLoad(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	minutes, rate := testkit.Size(t, "COUNTERSIGN_LOAD_MINUTES", 1), testkit.Size(t, "COUNTERSIGN_LOAD_RATE", 60)
	seed := testkit.Seed(t)
	inFakedTime(t, func(b *synctestHarness) { b.setup.unlimited = false }, func(b *synctestHarness) {
		b.ws.SetRealRates(true)
		l := &load{synctestHarness: b, random: testkit.Chance(seed, 1), cards: map[string]workspaceclient.Message{}}
		b.note = l.heed
		l.run(rate, minutes)
	})
}

// load is a synctestHarness with many requests.
type load struct {
	*synctestHarness
	random  *rand.Rand
	mu      sync.Mutex
	all     []apiCall
	cards   map[string]workspaceclient.Message // by channel and ts
	clicks  sync.WaitGroup
	backlog []map[string]int
	roots   []string // ts of the threads' roots
}

// heed records a call of the bot. If the call shows a card for the first time, heed approves the card after
// loadDecision.
func (l *load) heed(c apiCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
	ts := c.form.Get("ts")
	if c.method == "chat.postMessage" {
		ts = c.ts
	}
	if !c.done || ts == "" || c.form.Get("blocks") == "" {
		return
	}
	m := workspaceclient.Message{Channel: c.channel, TS: ts, Blocks: json.RawMessage(c.form.Get("blocks"))}
	key := c.channel + " " + ts
	_, known := l.cards[key]
	if _, asks := workspaceclient.Button(m.Blocks, "Approve"); !asks && !known {
		return
	}
	l.cards[key] = m
	if known {
		return
	}
	l.clicks.Go(func() {
		time.Sleep(loadDecision)
		l.mu.Lock()
		m := l.cards[key]
		l.mu.Unlock()
		e, open := workspaceclient.Button(m.Blocks, "Approve")
		if !open {
			return
		}
		if err := l.as("teo").Press(l.ctx, m, e); err != nil {
			l.Errorf("approve: %v", err)
		}
	})
}

// run requests calls at a rate per minute, waits until all calls have ended, and checks the results.
func (l *load) run(rate, minutes int) {
	began := time.Now()
	n := rate * minutes
	var times []time.Duration
	for i := range n {
		every := time.Minute / time.Duration(rate)
		times = append(times, time.Duration(i)*every+time.Duration(l.random.Int64N(int64(every))))
	}
	l.roots = make([]string, loadThreads)
	for i, at := range times {
		time.Sleep(time.Until(began.Add(at)))
		ts, err := l.as("sam").Say(l.ctx, "#support", l.roots[i%loadThreads], fmt.Sprintf("@Countersign plain %d", i))
		l.ok(err)
		if i < loadThreads {
			l.roots[i] = ts
		}
		if i%rate == rate-1 {
			l.backlog = append(l.backlog, l.waiting())
		}
	}
	time.Sleep(time.Until(began.Add(time.Duration(minutes) * time.Minute)))
	ended := time.Now()
	l.pass(30 * time.Second)
	runs, soon := l.answers()
	l.clicks.Wait()
	l.within(2*time.Hour, "everything is shown", l.idle)
	drained := time.Since(ended)
	_, took := l.answers()
	l.Logf("%d requests, %d a minute: %d runs, %d of them without an answer 30 s after the end; from the run to its answer p50 %s, p99 %s, most %s; everything shown %s after the last minute",
		n, rate, len(took), runs-len(soon), quantile(took, 50), quantile(took, 99), quantile(took, 100), drained.Round(time.Second))
	for i, w := range l.backlog {
		l.Logf("after minute %d there wait %v", i+1, w)
		total := 0
		for _, some := range w {
			total += some
		}
		if total > 2*loadThreads {
			l.Errorf("%d messages wait for Slack after minute %d", total, i+1)
		}
	}
	if refused := l.told(began, n); refused > 0 {
		l.Errorf("Slack refused %d calls although its limits are known", refused)
	}
	if late := quantile(took, 99); len(took) != n || late > loadLate {
		l.Errorf("%d of %d answers are there, p99 %s after the run; want all, and %s at most", len(took), n, late, loadLate)
	}
	if drained > loadDrains {
		l.Errorf("it took %s until everything was shown", drained)
	}
	l.eachStepOnce()
	l.noButtons()
	l.books()
}

// eachStepOnce checks that each step has its own message, or is part of the turn's answer.
func (l *load) eachStepOnce() {
	own, told := 0, 0
	l.view(func(r store.Reader) error {
		own, told = 0, 0
		for _, turn := range l.allTurns(r) {
			messages, err := r.OutboxMessagesOf(turn)
			if err != nil {
				return err
			}
			var answer store.OutboxMessage
			for _, s := range messages {
				if s.Kind == store.OutboxAnswer {
					answer = s
				}
			}
			for _, s := range messages {
				switch in := slices.Contains(answer.Steps, s.Step); {
				case s.Kind != store.OutboxStep:
				case s.State == store.OutboxShown && !in:
					own++
				case s.State == store.OutboxRemoved && s.Posts == 0 && in:
					told++
				default:
					l.Errorf("a step is %s, was posted %d times, and its answer tells of %v", s.State, s.Posts, answer.Steps)
				}
			}
		}
		return nil
	})
	l.Logf("%d steps have a message of their own, and %d are told of in answers", own, told)
}

// noButtons checks the buttons after all requests have ended. In the threads and on the cards, no button that decides,
// withdraws or stops may be left.
func (l *load) noButtons() {
	places := [][2]string{{"#support-approvals", ""}}
	for _, root := range l.roots {
		places = append(places, [2]string{"#support", root})
	}
	for _, place := range places {
		messages, err := l.as("teo").Messages(l.ctx, place[0], place[1])
		l.ok(err)
		for _, m := range messages {
			for _, label := range []string{"Approve", "Reject", "Modify", "Withdraw", "Stop"} {
				if _, live := workspaceclient.Button(m.Blocks, label); live {
					l.Errorf("a message still has %s: %s", label, m.Text)
				}
			}
		}
	}
}

// The method "waiting" counts the messages that wait for Slack, by kind.
func (l *load) waiting() map[string]int {
	out := map[string]int{}
	l.view(func(r store.Reader) error {
		clear(out)
		for _, kind := range store.ShowTimers {
			timers, err := r.Timers(kind, 10_000)
			if err != nil {
				return err
			}
			for _, t := range timers {
				s, err := r.OutboxMessage(t.Ref)
				if err != nil {
					return err
				}
				out[string(s.Kind)]++
			}
		}
		return nil
	})
	return out
}

// The method "answers" counts the runs. For each answer that the thread shows, the method returns the time from the end
// of the run to the answer.
func (l *load) answers() (runs int, took []time.Duration) {
	posted := map[string]time.Time{}
	l.mu.Lock()
	for _, c := range l.all {
		if _, before := posted[c.outboxID]; c.method == "chat.postMessage" && c.done && !before {
			posted[c.outboxID] = c.answered
		}
	}
	l.mu.Unlock()
	l.view(func(r store.Reader) error {
		runs, took = 0, nil
		for _, turn := range l.allTurns(r) {
			calls, err := r.Calls(turn)
			if err != nil {
				return err
			}
			messages, err := r.OutboxMessagesOf(turn)
			if err != nil {
				return err
			}
			for _, c := range calls {
				e, err := r.Execution(c.Execution)
				if err != nil {
					return err
				}
				if e.State != approvers.ExecutionSucceeded {
					continue
				}
				runs++
				for _, s := range messages {
					if at, shown := posted[s.ID]; shown && s.Kind == store.OutboxAnswer {
						took = append(took, at.Sub(e.FinishedAt))
					}
				}
			}
		}
		return nil
	})
	slices.Sort(took)
	return runs, took
}

// The method "told" prints the number of calls to Slack and other figures of the run, and returns how many calls Slack
// refused.
func (l *load) told(began time.Time, n int) (refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count, most := map[string]int{}, map[string]int{}
	times := map[string][]time.Time{}
	for _, c := range l.all {
		if c.at.Before(began) {
			continue
		}
		count[c.method]++
		if c.status == 429 {
			refused++
		}
		times[c.method] = append(times[c.method], c.at)
	}
	for m, at := range times {
		slices.SortFunc(at, time.Time.Compare)
		for i, j := 0, 0; j < len(at); j++ {
			for at[j].Sub(at[i]) >= time.Minute {
				i++
			}
			most[m] = max(most[m], j-i+1)
		}
	}
	var lines []string
	for _, m := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%s %d (%.2f a request, %d in a minute at most)", m, count[m], float64(count[m])/float64(n), most[m]))
	}
	l.Logf("calls:\n%s", strings.Join(lines, "\n"))
	return refused
}

// quantile returns the value below which the given percentage of the values lies.
func quantile(values []time.Duration, percent int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	return values[(len(values)-1)*percent/100].Round(time.Millisecond)
}
