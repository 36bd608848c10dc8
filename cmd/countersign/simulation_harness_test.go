package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
	"countersign/store/bolt"
)

// simulation is the state of one history, which is one simulated run of the product. simulation has the environment of
// the bot, and the bot's current process.
type simulation struct {
	*testing.T
	simulationCounts
	account
	rnd  *rand.Rand
	dir  string
	gate gate
	net  network

	db         *bolt.Store
	unlimited  bool // true: the bot does not limit the rate of its calls
	rehearse   bool // true: each closure of a transaction runs twice
	ws         *workspace.Server
	model      http.Handler
	bot        *life // nil: the bot is down
	lives      int
	upAt       time.Time // time at which the bot is started again
	policyFile string
	skew       atomic.Int64         // difference between the bot's clock and all other clocks
	down       map[string]time.Time // time until which slack, model or disk is out of order
	calm       bool                 // nothing goes wrong

	operator simulatedOperator
	people   map[string]*person
	order    []*person
	threads  []threadOf

	trace     []string
	nextBooks int
	nextRest  int
	violation string // the first violation; empty: none
	broke     int    // the step of the violation
	brokeAt   int    // the position of the violation in the trace
}

func newSimulation(t *testing.T, dir string, seed uint64) *simulation {
	s := &simulation{T: t, account: newAccount(), rnd: testkit.Chance(seed, 0), dir: dir, policyFile: filepath.Join(dir, "policy.yaml"), down: map[string]time.Time{}, nextRest: restEvery}
	s.rehearse, s.unlimited = s.chance(3), !s.chance(3)
	people := workspace.DemoSeed()
	people.App.Scopes = append(people.App.Scopes, "im:read") // the simulation uses the app's token to read direct messages, too
	ws, err := workspace.New(workspace.Config{Seed: people, BaseURL: simulationBase, App: &s.net, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.ws, s.model = ws, s.newModel()
	s.open()
	s.hire()
	s.putPolicy(simulationPolicy{
		discountAsked: true, refundAsked: true, above: 500, quorum: 2, leads: []string{"U0002"}, expires: 5 * time.Minute, escalates: "1m", silence: "reject", cap: 4,
	})
	s.start()
	return s
}

func (s *simulation) open() {
	db, err := bolt.Open(filepath.Join(s.dir, "countersign.db"), bolt.Options{Rehearse: s.rehearse})
	if err != nil {
		s.violate("the store does not open: %v", err)
		return
	}
	s.db = db
}

func (s *simulation) now() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }

// chance returns true in one of n cases, on average.
func (s *simulation) chance(n int) bool { return s.rnd.IntN(n) == 0 }

// The method "out" reports whether a component is out of order. The component is "slack", "model" or "disk".
func (s *simulation) out(what string) bool { return !s.calm && time.Now().Before(s.down[what]) }

// faulty returns true in one of n cases, on average. If faults are turned off, faulty returns false.
func (s *simulation) faulty(n int) bool { return !s.calm && s.chance(n) }

// step counts one step of the history, and writes a line about this step.
func (s *simulation) step(format string, args ...any) {
	s.steps++
	if s.calm {
		s.calmly++
	}
	s.note(format, args...)
}

// note writes a line of the history.
func (s *simulation) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%d %s ", s.steps, time.Now().Format("15:04:05.000"))+fmt.Sprintf(format, args...))
}

// violate records the violation of an invariant. The history then ends.
func (s *simulation) violate(format string, args ...any) {
	if s.violation == "" {
		s.violation, s.broke, s.brokeAt = fmt.Sprintf(format, args...), s.steps, len(s.trace)
	}
}

// The method "logged" checks a line of the bot's log.
func (s *simulation) logged(line string) {
	if strings.Contains(line, "panicked") && !strings.Contains(line, "the tool panic") {
		s.violate("the bot said: %s", line)
	}
	if strings.Contains(line, "of a call do not match their digest") {
		s.violate("the bot said: %s", line)
	}
}

// live plays a number of steps. From time to time, live checks the invariants. Less often, it first lets all work
// settle.
func (s *simulation) live(n int) {
	for s.steps < n && s.violation == "" {
		s.choose()
		s.settle()
		time.Sleep(time.Duration(1+s.rnd.IntN(20_000)) * time.Microsecond)
		s.settle()
		if s.steps >= s.nextBooks {
			s.nextBooks = s.steps + booksEvery
			s.checkBooks()
		}
		if s.steps >= s.nextRest {
			s.rest()
			s.nextRest = s.steps + restEvery
		}
	}
}

// booksEvery is the number of steps between two checks of the invariants. restEvery is the number of steps between two
// rests, in which all work settles.
const (
	booksEvery = 200
	restEvery  = 1000
)

// settle lets the product run until all its goroutines wait at the gate or for a timer. Reads of the scheduler's
// workers pass the gate immediately.
func (s *simulation) settle() {
	for {
		synctest.Wait()
		s.ended()
		looks, _ := s.gate.here()
		if len(looks) == 0 || s.violation != "" {
			return
		}
		for _, w := range looks {
			s.gate.let(w, lot{})
			time.Sleep(time.Microsecond) // so that no two operations have the same start time and deadlines
		}
	}
}

// choose selects one event at random, and makes it happen.
func (s *simulation) choose() {
	_, waiting := s.gate.here()
	due, _ := s.net.due()
	n := s.rnd.IntN(1000)
	switch {
	case s.bot == nil && !time.Now().Before(s.upAt):
		s.start()
	case n < 760 && len(waiting) > 0:
		s.let(waiting[s.rnd.IntN(len(waiting))])
	case n < 900 && len(due) > 0:
		s.deliver(due[min(s.rnd.IntN(len(due)), s.rnd.IntN(len(due)))], s.drawFate())
	case n < 960:
		s.somebody()
	case n < 985:
		s.pass(time.Duration(s.rnd.IntN(3000)) * time.Millisecond)
	case n < 987:
		s.pass(time.Duration(s.rnd.IntN(120)) * time.Second)
	case n < 993:
		s.rare(s.rnd.IntN(18))
	}
}

// rare makes one infrequent event happen.
func (s *simulation) rare(n int) {
	switch {
	case s.bot != nil && !s.operator.busy.Load() && (n == 16 || s.isPaused() && s.chance(2)):
		s.operates()
	case n < 5 && s.bot != nil:
		s.kill("by chance")
		s.upAt = time.Now().Add(time.Duration(s.rnd.IntN(3000)) * time.Millisecond)
		if s.chance(8) {
			s.upAt = s.upAt.Add(time.Duration(s.rnd.IntN(600)) * time.Second)
		}
	case n == 5 && s.bot != nil && !s.bot.stopping:
		s.shutDown()
	case n < 8:
		s.policies++
		s.step("the policy changes")
		s.putPolicy(s.drawPolicy())
	case n < 12:
		what := []string{"slack", "model", "disk"}[s.rnd.IntN(3)]
		d := time.Duration(1+s.rnd.IntN(20)) * time.Second
		s.down[what] = time.Now().Add(d)
		s.step("%s is down for %s", what, d)
	case n == 13 && s.chance(2):
		s.pass(time.Duration(s.rnd.IntN(40)) * time.Minute)
	case n < 15:
		for range 3 { // a burst
			s.says(s.order[s.rnd.IntN(3)])
		}
	case n == 15:
		by := []time.Duration{-time.Hour, 0, time.Hour}[s.rnd.IntN(3)]
		s.skew.Store(int64(by))
		s.step("the bot's clock is set %s from Slack's", by)
	}
}

// pass lets time pass. Goroutines at the gate keep waiting, as if the process or the network were slow.
func (s *simulation) pass(d time.Duration) {
	s.step("%s pass", d)
	time.Sleep(d)
}
