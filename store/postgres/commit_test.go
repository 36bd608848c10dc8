package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// once returns a function that cuts the connection at the first commit.
func once(how pgserver.Cutting) func(string) pgserver.Cutting {
	var cut atomic.Bool
	return func(statement string) pgserver.Cutting {
		if statement == "commit" && cut.CompareAndSwap(false, true) {
			return how
		}
		return pgserver.Pass
	}
}

// The answer to a COMMIT is lost. The closure's writes are committed exactly once, and Update returns nil. The test
// cuts the connection at different moments.
func TestLostCommit(t *testing.T) {
	for name, c := range map[string]struct {
		how  pgserver.Cutting
		runs int // how often the closure ran
	}{
		"the server never got it":                           {pgserver.Before, 2},
		"the server never got it, and does not notice":      {pgserver.Hold, 2},
		"the server carried it out, and its answer is lost": {pgserver.After, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, url := through(t, empty(t))
			s := open(t, url)
			count := func() (runs int, err error) {
				err = s.Update(t.Context(), func(tx store.Tx) error {
					runs++
					turn, err := tx.Turn("t")
					if store.IgnoreNotFound(err) != nil {
						return err
					}
					turn.ID, turn.Step = "t", turn.Step+1
					return tx.PutTurn(turn)
				})
				return runs, err
			}
			for i := range 3 {
				p.When(once(c.how))
				if runs, err := count(); err != nil || runs != c.runs {
					t.Errorf("commit %d: the closure ran %d times, want %d; error %v", i, runs, c.runs, err)
				}
			}
			p.When(nil)
			if _, err := count(); err != nil {
				t.Error(err)
			}
			var got approvers.Turn
			if err := s.View(t.Context(), func(r store.Reader) (err error) { got, err = r.Turn("t"); return err }); err != nil || got.Step != 4 {
				t.Errorf("it counts %d, want 4; error %v", got.Step, err)
			}
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The look-up of a lost commit is as durable as a commit. If it did not wait for the synchronous standby, it would
// confirm a commit that no standby has.
func TestSettleIsDurable(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	if err := admin("ALTER DATABASE " + name + " SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	err := execIn(name, `SET search_path = countersign; CREATE TABLE seen (setting text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO countersign.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
CREATE TRIGGER see AFTER UPDATE OF fenced ON connections FOR EACH ROW EXECUTE FUNCTION see()`)
	if err != nil {
		t.Fatal(err)
	}
	p, url := through(t, name)
	s := open(t, url)
	p.When(once(pgserver.After))
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "t"}) }); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var seen string
	if err := conn.QueryRow(t.Context(), "SELECT string_agg(setting, ' ') FROM countersign.seen").Scan(&seen); err != nil || seen != "on" {
		t.Errorf("the look-up ran with synchronous_commit %q, want on (%v)", seen, err)
	}
}

// If the client gives up a COMMIT that has not reached the server yet, the client fences the connection. When the
// COMMIT reaches the server later, the server refuses the COMMIT. In this test, no COMMIT is late: the test fences the
// connection itself, and then commits.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, at(name))
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "t"}) }); err != nil {
		t.Fatal(err)
	}
	if err := execIn(name, "UPDATE countersign.connections SET fenced = true"); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err := s.Update(t.Context(), func(tx store.Tx) error { runs++; return tx.PutTurn(approvers.Turn{ID: "u"}) })
	if err != nil || runs != 2 { // one run over the abandoned connection, and one run over a new connection
		t.Errorf("the closure ran %d times, want 2; error %v", runs, err)
	}
}

// While the database can't be reached, the store can't look up the outcome of a COMMIT whose answer was lost. Close
// ends the wait for the outcome.
func TestCommitUnknown(t *testing.T) {
	t.Parallel()
	p, url := through(t, empty(t))
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.When(func(statement string) pgserver.Cutting {
		if statement == "commit" {
			p.Set(pgserver.Network{Refused: true}) // the store can't look up the outcome
			return pgserver.Before
		}
		return pgserver.Pass
	})
	told := make(chan error)
	go func() {
		told <- s.Update(context.Background(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "t"}) })
	}()
	select {
	case err := <-told:
		t.Fatalf("Update returned before anybody knew: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	if err := <-told; !errors.Is(err, store.ErrCommitUnknown) {
		t.Errorf("got error %v, want ErrCommitUnknown", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Each of two transactions reads rows that the other transaction writes. One of the transactions runs a second time.
func TestSerialization(t *testing.T) {
	t.Parallel()
	s := open(t, at(empty(t)))
	total := func(tx store.Tx) (sum int, err error) {
		for _, id := range []string{"a", "b"} {
			n, err := tx.CounterSum(id, time.Time{})
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	// Each transaction adds to its own counter if the sum of both counters is zero. If the transactions run one after
	// the other, only the first transaction adds.
	met := make(chan struct{})
	var arrived, runs, added atomic.Int64
	results := make(chan error, 2)
	for _, id := range []string{"a", "b"} {
		go func() {
			first := true
			results <- s.Update(t.Context(), func(tx store.Tx) error {
				runs.Add(1)
				sum, err := total(tx)
				if err != nil {
					return err
				}
				if first {
					first = false
					if arrived.Add(1) == 2 {
						close(met)
					}
					<-met // both transactions have read
				}
				if sum > 0 {
					return nil
				}
				return tx.AddCounter(store.Counter{Key: id, ID: "x", At: time.Unix(1, 0), N: 1})
			})
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		sum, err := total(tx)
		added.Store(int64(sum))
		return err
	}); err != nil || added.Load() != 1 {
		t.Errorf("%d were added, want 1; error %v", added.Load(), err)
	}
	if runs.Load() < 3 {
		t.Errorf("the closures ran %d times: neither ran again", runs.Load())
	}
}

// If the policy changes during a decision, the decision does not count under the old policy. The change of the policy
// has read rows that the decision writes. So the decision runs a second time, and finds the new policy.
func TestPolicyChangesMeanwhile(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s, other := open(t, at(name)), open(t, at(name))
	update := func(s *postgres.Store, fn func(store.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	update(s, func(tx store.Tx) error { return tx.PutPolicy(store.Policy{Load: "first"}, nil) })
	runs := 0
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.ExpectPolicy("first"); err != nil {
			return err
		}
		if _, err := tx.CounterSum("decided", time.Time{}); err != nil {
			return err
		}
		if runs++; runs == 1 {
			update(other, func(tx store.Tx) error {
				if n, err := tx.CounterSum("decided", time.Time{}); err != nil || n > 0 {
					return errors.Join(err, fmt.Errorf("%d decisions", n))
				}
				return tx.PutPolicy(store.Policy{Load: "second", Version: 1}, nil)
			})
		}
		return tx.AddCounter(store.Counter{Key: "decided", ID: "x", At: time.Unix(1, 0), N: 1})
	})
	if !errors.Is(err, store.ErrPolicyChanged) {
		t.Errorf("after %d runs: got error %v, want ErrPolicyChanged", runs, err)
	}
}

// Updates and views replace connections that broke while they were idle.
func TestDeadConnections(t *testing.T) {
	t.Parallel()
	p, url := through(t, empty(t))
	s := open(t, url)
	for i := range 3 {
		id := fmt.Sprint("t", i)
		p.CutAll()
		if err := s.View(t.Context(), func(r store.Reader) error { _, err := r.Turn(id); return store.IgnoreNotFound(err) }); err != nil {
			t.Errorf("view: %v", err)
		}
		p.CutAll()
		if err := s.Update(t.Context(), func(tx store.Tx) error {
			if _, err := tx.Turn(id); store.IgnoreNotFound(err) != nil {
				return err
			}
			return tx.PutTurn(approvers.Turn{ID: id})
		}); err != nil {
			t.Errorf("update: %v", err)
		}
		p.CutAll()
		if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: id + "blind"}) }); err != nil {
			t.Errorf("update without a read: %v", err)
		}
	}
}

// A replica that joins removes the rows of connections that ended long ago, and keeps the rows of open connections and
// of connections that ended a short time ago.
func TestOldConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, asBot(name))
	err := execIn(name, `
UPDATE countersign.connections SET used = now() - interval '2 days';
INSERT INTO countersign.connections (id, backend, began, used) VALUES
    ('ended long ago', 1, now() - interval '3 days', now() - interval '2 days'),
    ('ended an hour ago', 1, now() - interval '3 days', now() - interval '1 hour')`)
	if err != nil {
		t.Fatal(err)
	}
	joinOn(t, s, postgres.ReplicaOptions{Lease: time.Minute, Beat: 10 * time.Second})
	conn, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // the test has ended
	var ended string
	var open int
	for end := time.Now().Add(testkit.Patience); ended != "ended an hour ago" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = conn.QueryRow(t.Context(), `
SELECT string_agg(id, ', ' ORDER BY id) FILTER (WHERE id LIKE 'ended%'), count(*) FILTER (WHERE used < now() - interval '1 day') FROM countersign.connections`).Scan(&ended, &open)
		if err != nil {
			t.Fatal(err)
		}
	}
	if ended != "ended an hour ago" || open == 0 {
		t.Errorf("the rows are %q, and %d of open connections", ended, open)
	}
}
