package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"countersign/internal/testkit"
)

// The tests in this file simulate the whole product: the real bot, agent, workflow and store. A seed determines all
// choices: people, the model, Slack, tools, crashes and the clock.
//
// The simulation runs in a bubble of testing/synctest. In the bubble, time passes only when all goroutines wait. Every
// operation that leaves the product waits at a gate. Such operations are commits, calls to Slack or the model, and
// tools. The simulation lets one operation through at a time, or makes another event happen: a delivery arrives, a
// person acts, time passes, or the process is killed. Therefore a seed determines one history, and the test can replay
// the history exactly.
//
// The invariants are in simulation_account_test.go, simulation_check_test.go and package approvers/workflow/invariants.
// The invariants are checked against the simulation's own account. The account records the content that people saw,
// their clicks, the acknowledged deliveries, the calls to tools, and the input of the model.

// episodeSteps is the number of steps of one history. The next history begins with an empty store.
const episodeSteps = 4000

// TestSimulation plays one history after the other. COUNTERSIGN_STEPS sets the total number of steps. COUNTERSIGN_SEED
// repeats a run. A run without these variables always uses the seed 1. The test prints a violation with the seed of its
// history. With this seed, the test replays only this history.
func TestSimulation(t *testing.T) {
	steps, seed := testkit.Size(t, "COUNTERSIGN_STEPS", 2500), uint64(1)
	if os.Getenv("COUNTERSIGN_STEPS") != "" || os.Getenv(testkit.SeedVariable) != "" {
		seed = testkit.Seed(t)
	}
	began, total, episodes := time.Now(), simulationCounts{kinds: map[string]int{}}, 0
	for done := 0; done < steps && !t.Failed(); {
		h := simulate(t, seed+uint64(episodes), min(episodeSteps, steps-done))
		done += h.steps
		total.add(h.simulationCounts)
		episodes++
	}
	took := time.Since(began)
	t.Logf("steps=%d histories=%d violated=%d %s in %s (%.0f steps/s)", total.steps, episodes, total.violated, total, took.Round(time.Second),
		float64(total.steps)/took.Seconds())
	t.Logf("records: %v", total.kinds)
}

// TestSimulationReplays plays one history until two runs agree, and at most replays times. If goroutines become runnable
// at the same moment, a busy machine can change their order, so a single difference proves nothing. One processor makes
// such a change rare. If the product itself chooses at random, all runs differ. With the race detector, differences are
// allowed, because the race detector changes this order at random on purpose.
func TestSimulationReplays(t *testing.T) {
	testkit.SkipIfShort(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const replays = 6
	var played []history
	for len(played) < replays {
		h := simulate(t, 1, testkit.Scale(300))
		if testkit.RaceEnabled || slices.ContainsFunc(played, func(p history) bool { return p.hash == h.hash }) {
			t.Logf("history %d is a replay", len(played))
			return
		}
		played = append(played, h)
	}
	a, b := played[0].trace, played[1].trace
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%d histories differ, the first two after\n%s\nwith\n%s\nand\n%s", replays, strings.Join(a[max(0, i-5):i], "\n"), a[i], b[i])
		}
	}
	t.Fatalf("%d histories differ: the first has %d steps, the second %d", replays, len(a), len(b))
}

// history is the record of one played history.
type history struct {
	simulationCounts
	hash  uint64
	trace []string
}

// simulate plays one history. If the history violates an invariant, simulate fails the test.
func simulate(t *testing.T, seed uint64, steps int) (h history) {
	t.Helper()
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		dir := quickDir(t)
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t, dir, seed)
			s.live(steps)
			s.end()
			h.simulationCounts, h.trace = s.simulationCounts, s.trace
			if os.Getenv("COUNTERSIGN_TRACE") == "always" {
				t.Log(strings.Join(s.trace, "\n"))
			}
			if s.violation != "" {
				h.violated = 1
				t.Errorf("step %d: %s\nlast steps:\n%s\nreplay: COUNTERSIGN_SEED=%d COUNTERSIGN_STEPS=%d go test ./cmd/countersign -run 'Simulation$' -v",
					s.broke, s.violation, strings.Join(s.trace[max(0, s.brokeAt-traceTail()):s.brokeAt], "\n"), seed, episodeSteps)
			}
		})
	})
	sum := fnv.New64a()
	for _, line := range h.trace {
		sum.Write([]byte(line))
	}
	h.hash = sum.Sum64()
	return h
}

// traceTail returns how many lines of a failed history the test prints. COUNTERSIGN_TRACE=all prints all lines.
func traceTail() int {
	if os.Getenv("COUNTERSIGN_TRACE") == "all" {
		return 1 << 30
	}
	return 60
}

// quickDir returns a directory for a store. If the machine has a file system in memory, the directory is in this file
// system. Commits work as on a disk, but do not wait for a disk.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "countersign-sim-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(filepath.Clean(dir)); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// simulationCounts counts events of the simulation.
type simulationCounts struct {
	steps, calmly, violated                         int
	messages, clicks, runs, kills, faults, policies int
	commits, slack, model, deliveries, rests        int
	kinds                                           map[string]int // number of audit records, by kind
}

func (a *simulationCounts) add(b simulationCounts) {
	a.steps += b.steps
	a.violated += b.violated
	a.calmly += b.calmly
	a.messages += b.messages
	a.clicks += b.clicks
	a.runs += b.runs
	a.kills += b.kills
	a.faults += b.faults
	a.policies += b.policies
	a.commits += b.commits
	a.slack += b.slack
	a.model += b.model
	a.deliveries += b.deliveries
	a.rests += b.rests
	for kind, n := range b.kinds {
		a.kinds[kind] += n
	}
}

func (a simulationCounts) String() string {
	return fmt.Sprintf("calm=%d messages=%d clicks=%d runs=%d kills=%d faults=%d policies=%d commits=%d slack=%d model=%d deliveries=%d rests=%d",
		a.calmly, a.messages, a.clicks, a.runs, a.kills, a.faults, a.policies, a.commits, a.slack, a.model, a.deliveries, a.rests)
}
