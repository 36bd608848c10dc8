package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// silence returns an environment with a request for a discount that nobody decides. The only member of the approving
// role is away and has named a stand-in. The lead is in do-not-disturb for some time. All approvers get reminders. When
// the stage's time is over, the request escalates, and all approvers are notified. Finally, the request expires. The
// function kill determines at which points the process is killed.
func silence(t testing.TB, kill func(point string) bool) *environment {
	w := newEnvironment(t, kill)
	w.policy.Store(policy("policy-1", withDeputy, reminding(7*time.Minute, 3), func(p *approvers.Policy) {
		p.Defaults.OnExpiry, p.Defaults.Repeat = approvers.ExpiryEscalates, 1
		p.Defaults.EscalateAfter, p.Defaults.ExpiresAfter = 12*time.Minute, 20*time.Minute
	}))
	w.silent, w.script = true, []string{`apply_discount {}`}
	w.quiet["U0002"] = w.clock.Now().Add(16 * time.Minute)
	w.deliveries = nil
	w.slack(act{Who: support, Away: 48 * time.Hour, Other: deputy})
	w.slack(act{Who: alice, Say: "please"})
	w.through()
	return w
}

// through runs the bot until no timer is left. through sets the clock forward to the due time of each timer.
func (w *environment) through() {
	w.t.Helper()
	for range 1000 {
		w.life()
		next := w.next()
		if next.IsZero() {
			return
		}
		w.clock.pass(next.Sub(w.clock.Now()))
	}
	w.t.Fatal("after 1000 steps of the clock, timers are still left")
}

// w.next returns the time when the next timer is due. If there is no timer, the result is zero.
func (w *environment) next() (next time.Time) {
	w.t.Helper()
	for _, kind := range timed {
		for _, t := range w.timers(kind) {
			if next.IsZero() || t.Due.Before(next) {
				next = t.Due
			}
		}
	}
	return next
}

// account lists all consequences of a request that nobody decided: the audit records, and the messages to each person.
func (w *environment) account() string {
	w.t.Helper()
	var out []string
	chains := readStore(w.harness, func(r store.Reader) ([]string, error) { return r.AuditChains("", 100) })
	for _, chain := range chains {
		kinds := strings.Fields(w.kinds(chain))
		out = append(out, strings.Join(slices.DeleteFunc(kinds, func(k string) bool { return k == "shown" }), " "))
	}
	sent := map[string]int{}
	for _, turn := range slices.Compact(w.heard()) {
		for _, c := range w.callsOf(turn) {
			for _, s := range w.messagesOf(c.Request) {
				to, _, _ := strings.Cut(s.To, "conv_") // conversations' ids are random
				sent[fmt.Sprint(s.Kind, " ", s.Note, " ", to)]++
			}
		}
	}
	for _, s := range w.messagesOf(string(support.ID)) {
		sent[fmt.Sprint(s.Kind, " ", s.To)]++
	}
	for what, n := range sent {
		out = append(out, fmt.Sprint(what, " ×", n))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestSilenceKilledAtEveryPoint checks a request that nobody decides. The process is killed at every point. Each
// reminder, escalation and expiry must happen once.
func TestSilenceKilledAtEveryPoint(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	want := killedAndTheSame(t, silence, 20)
	for _, must := range []string{
		"proposed invited reminded escalated reminded reminded escalated reminded escalated reminded closed returned", "stand_in user:U0005 ×1", "card  user:U0005 ×1",
	} {
		if !strings.Contains(want, must) {
			t.Errorf("without a crash the result is\n%s\nwant %q in it", want, must)
		}
	}
}

// killedAndTheSame runs an environment several times. In each run, the process is killed repeatedly, and the parameter
// every is the number of points from one kill to the next. The first kill is at a different point in each run. All runs
// must have the same result, which killedAndTheSame returns.
func killedAndTheSame(t *testing.T, world func(testing.TB, func(string) bool) *environment, every int) string {
	want := world(t, func(string) bool { return false }).account()
	for n := 0; n < every; n += testkit.Stride() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			count := 0
			w := world(t, func(string) bool {
				count++
				return count%every == n
			})
			if got := w.account(); got != want {
				t.Fatalf("killed at each %dth point from %d on, the result is\n%s\nwant\n%s", every, n, got, want)
			}
			if w.crashes < 2 {
				t.Errorf("only %d crashes", w.crashes)
			}
			w.invariants()
		})
	}
	return want
}
