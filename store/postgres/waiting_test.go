package postgres_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"countersign/store"
	"countersign/store/postgres"
)

// timersOf reads all timers, except the timers that a handler of another timer sets again.
func timersOf(t *testing.T, s *postgres.Store) map[string]store.Timer {
	t.Helper()
	found := map[string]store.Timer{}
	err := s.View(t.Context(), func(r store.Reader) error {
		for _, kind := range store.TimerKinds {
			timers, err := r.Timers(kind, 100)
			if err != nil {
				return err
			}
			for _, timer := range timers {
				if kind == store.TimerInbox { // only Slack's delivery names the lane
					timer.Lane = ""
				}
				if kind != store.TimerAvailability {
					found[string(kind)+" "+timer.Ref] = store.Timer{Kind: kind, Ref: timer.Ref, Lane: timer.Lane, Affinity: timer.Affinity}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Somebody deletes all timers. An inspection finds the records that wait for them. A replica sets the timers again.
func TestLostTimers(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, at(name))
	f, ctx := newCallFixture(t, s), t.Context()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(f.say(ctx)) // a delivery that is not handled
	_, err := f.message(ctx, "", f.ts())
	fail(err)           // a turn that waits for the model
	_, err = f.ask(ctx) // a request that waits
	fail(err)
	for _, begins := range []bool{false, true} { // a run that waits, and a run that has begun
		r, err := f.ask(ctx)
		fail(err)
		_, err = f.decide(ctx, "", r)
		fail(err)
		if begins {
			_, _, err = f.workflow.Runs.Claim(ctx, r.Execution)
			fail(err)
		}
	}
	before := timersOf(t, s)
	fail(s.Inspect(ctx))
	if found := s.Damage(); len(found) > 0 {
		t.Fatalf("with all timers, the damage is %v", found)
	}

	fail(execIn(name, "DELETE FROM countersign.timers"))
	fail(s.Inspect(ctx))
	if found := s.Damage(); len(found) != len(before) {
		t.Errorf("the inspection lists %v, want %v", found, before)
	}
	for _, x := range s.Damage() {
		if _, there := before[x.Key]; !there || x.Mended || x.Bucket != "timers" || !strings.HasPrefix(x.Why, "it is missing. ") {
			t.Errorf("the inspection reports %+v", x)
		}
	}
	if left := timersOf(t, s); len(left) > 0 {
		t.Errorf("without a replica, the inspection has set %v", left)
	}

	_, err = s.Join(ctx, postgres.ReplicaOptions{Name: "one", Now: func() time.Time { return time.Now().Add(time.Hour) }}) // the machine's clock is ahead
	fail(err)
	fail(s.Inspect(ctx))
	fail(s.View(ctx, func(r store.Reader) error {
		due, err := r.Timers(store.TimerThink, 1)
		if err == nil && !due[0].Due.Before(time.Now().Add(time.Minute)) {
			t.Errorf("the model is called at %s, by the machine's clock", due[0].Due)
		}
		return err
	}))
	if after := timersOf(t, s); !maps.Equal(after, before) {
		t.Errorf("the timers are\n%v\nand were\n%v", after, before)
	}
	for _, x := range s.Damage() {
		if !x.Mended {
			t.Errorf("after the repair, the damage is %v", x)
		}
	}
}
