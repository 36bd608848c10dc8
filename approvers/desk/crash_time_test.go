package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// A discount that nobody decides: the only member of its role is away and has named somebody who stands in, its lead can't be disturbed for a while,
// everybody is reminded, it goes up when its time is over, everybody is told once more, and in the end it is rejected. The process is killed on the
// way.
func silence(t testing.TB, kill func() (before, behind bool)) *outside {
	w := newOutside(t, kill)
	w.policy.Store(policy("policy-1", withDeputy, reminding(7*time.Minute, 3), func(p *approvers.Policy) {
		p.Defaults.OnExpiry, p.Defaults.Repeat = approvers.ExpiryEscalates, 1
		p.Defaults.EscalateAfter, p.Defaults.ExpiresAfter = 12*time.Minute, 20*time.Minute
	}))
	w.silent, w.script = true, []string{`apply_discount {}`}
	w.quiet["U0002"] = w.clock.Now().Add(16 * time.Minute)
	w.deliveries = nil
	w.slack(act{Who: support, Away: 48 * time.Hour, StandIn: deputy})
	w.slack(act{Who: alice, Say: "please"})
	for range 1000 {
		w.life()
		if next := w.next(); !next.IsZero() {
			w.clock.pass(next.Sub(w.clock.Now()))
			continue
		}
		return w
	}
	t.Fatal("it never comes to an end")
	return nil
}

// next is when the next thing falls due; zero: nothing does.
func (w *outside) next() (next time.Time) {
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

// account is all that came of a silence: what was recorded, and what each person was sent.
func (w *outside) account() string {
	w.t.Helper()
	var out []string
	chains := view(w.office, func(r store.Reader) ([]string, error) { return r.AuditChains("", 100) })
	for _, chain := range chains {
		kinds := strings.Fields(w.kinds(chain))
		out = append(out, strings.Join(slices.DeleteFunc(kinds, func(k string) bool { return k == "shown" }), " "))
	}
	sent := map[string]int{}
	for _, turn := range slices.Compact(w.heard()) {
		for _, c := range w.callsOf(turn) {
			for _, s := range w.surfacesOf(c.Request) {
				sent[fmt.Sprint(s.Kind, " ", s.Note, " ", s.To)]++
			}
		}
	}
	for _, s := range w.surfacesOf(string(support.ID)) {
		sent[fmt.Sprint(s.Kind, " ", s.To)]++
	}
	for what, n := range sent {
		out = append(out, fmt.Sprint(what, " ×", n))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestSilenceKilledInEveryTransaction: each step of a request that nobody decides happens once, wherever the process is killed.
func TestSilenceKilledInEveryTransaction(t *testing.T) {
	never := func() (bool, bool) { return false, false }
	want := silence(t, never).account()
	for _, must := range []string{
		"proposed invited reminded escalated reminded reminded escalated reminded escalated reminded closed returned", "stand_in user:U0005 ×1", "card  user:U0005 ×1",
	} {
		if !strings.Contains(want, must) {
			t.Errorf("without a crash it comes to\n%s\nwant %q in it", want, must)
		}
	}
	const every = 5 // each transaction is the one in which it is killed in one of so many runs
	for n := range every {
		if testing.Short() && n > 0 {
			break
		}
		for _, behind := range []bool{false, true} {
			count := 0
			w := silence(t, func() (bool, bool) {
				count++
				return count%every == n && !behind, count%every == n && behind
			})
			if got := w.account(); got != want {
				t.Fatalf("killed in each %dth transaction from %d on, behind the commit: %t, it comes to\n%s\nwant\n%s", every, n, behind, got, want)
			}
			if w.crashes < 10 {
				t.Errorf("only %d crashes", w.crashes)
			}
			w.books()
		}
	}
}
