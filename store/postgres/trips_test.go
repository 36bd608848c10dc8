package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/postgres"
)

// TestRoundTrips counts the round trips to the database that each step of a call makes. The page about PostgreSQL gives
// these numbers. To handle a click, the test reads the same as package bot does. At the end of a View, nobody waits for
// the round trip that ends the snapshot, so these round trips are counted apart.
func TestRoundTrips(t *testing.T) {
	name := empty(t)
	p, url := through(t, name)
	s := open(t, url+"&pool_max_conns=1") // each connection prepares statements of its own
	_, replica := join(t, at(name), postgres.ReplicaOptions{Name: "another way", Lease: time.Minute})
	ctx, leave, ok := replica.Enter(t.Context(), store.ShareClaim(0)) // checking a claim must not take an additional round trip
	if !ok {
		t.Fatal("the replica lacks a claim")
	}
	defer leave()
	f := newCallFixture(t, s)
	wf := f.workflow
	counted := map[string]int64{}
	step := func(name string, views int64, do func() error) {
		t.Helper()
		idle := s.AwaitIdle(t.Context())
		from := p.Trips.Load()
		if err := errors.Join(idle, do(), s.AwaitIdle(t.Context())); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := p.Trips.Load() - from - views
		if least, ok := counted[name]; !ok || n < least {
			counted[name] = n
		}
	}
	// In the first round, the connection prepares the statements. In the other rounds, a transaction may conflict with a
	// heartbeat of the replica, and run again. So the least number counts.
	for round := range 4 {
		ts := fmt.Sprintf("1780000000.00000%d", round)
		var turn string
		inbox := "Ev" + ts
		step("receive", 0, func() error { return f.receive(ctx, inbox, store.InboxEvent, ts) })
		step("receive again", 0, func() error { return f.receive(ctx, inbox, store.InboxEvent, ts) })
		step("message", 0, func() (err error) { turn, err = f.message(ctx, inbox, ts); return err })
		step("begin", 0, func() error { _, err := wf.Turns.Begin(ctx, turn); return err })
		step("propose", 0, func() error { return f.propose(ctx, turn) })
		r, err := f.request(turn)
		if err != nil {
			t.Fatal(err)
		}
		card := f.card(r)
		click := "Ev" + ts + "click"
		step("receive click", 0, func() error { return f.receive(ctx, click, store.InboxInteraction, ts) })
		step("find click", 4, func() error {
			return errors.Join(
				s.View(ctx, func(x store.Reader) error {
					_, err := x.TimersIn(store.AllShares, store.TimerInbox, time.Time{}, 8)
					return err
				}),
				second(wf.Views.Inbox(ctx, click)),
				second(wf.Views.Rendering(ctx, card.ID, card.Posts)),
				second(wf.Views.Message(ctx, card.ID)),
			)
		})
		step("decide", 0, func() (err error) { r, err = f.decide(ctx, click, r); return err })
		step("claim", 0, func() error { _, _, err := wf.Runs.Claim(ctx, r.Execution); return err })
		step("finish", 0, func() error { return wf.Runs.Finish(ctx, r.Execution, true, "done") })
	}
	t.Log(counted)
	for name, want := range map[string]int64{"receive again": 2, "receive click": 2, "message": 7, "begin": 6, "propose": 11} {
		if counted[name] != want {
			t.Errorf("%s takes %d round trips, want %d", name, counted[name], want)
		}
	}
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	whole := counted["receive click"] + counted["find click"] + counted["decide"]
	says := fmt.Sprintf("Receiving a delivery takes %d round trips, a decision takes %d, starting a run takes %d, and recording a run's result takes %d. "+
		"To find out what a click means, the bot reads the database in %d round trips before the decision. So there are %d round trips between a click and its decision.",
		counted["receive"], counted["decide"], counted["claim"], counted["finish"], counted["find click"], whole)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), says) {
		t.Errorf("docs/postgres.md does not say: %s", says)
	}
}

// second returns the second result of a call.
func second[T any](_ T, err error) error { return err }

// card marks the outbox messages of a request as shown by Slack, and returns the card.
func (f *callFixture) card(r approvers.Request) (card store.OutboxMessage) {
	f.Helper()
	if err := f.showAll(r); err != nil {
		f.Fatal(err)
	}
	err := f.store.View(f.Context(), func(x store.Reader) error {
		list, err := x.OutboxMessagesOf(r.ID)
		for _, m := range list {
			if m.Kind == store.OutboxCard {
				card = m
			}
		}
		return err
	})
	if err != nil || card.ID == "" {
		f.Fatalf("the request has no card; error %v", err)
	}
	return card
}

// TestNoDeadlocks runs two transactions that write the same rows in opposite orders. Between its writes, each
// transaction makes a read that depends on its first write. There must be no deadlock. In the last case, the
// transactions lock rows early, because EraseRenderings changes rows immediately.
func TestNoDeadlocks(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s, other := open(t, at(name)), open(t, at(name))
	exact := time.Unix(1, 0)
	for _, c := range []struct {
		name  string
		write func(tx store.Tx, id string) error
		read  func(tx store.Tx, id string) error
	}{
		{
			"messages",
			func(tx store.Tx, id string) error { return tx.PutMessage(store.Message{Conversation: id, Seq: 1}) },
			func(tx store.Tx, id string) error { _, err := tx.Messages(id, 0); return err },
		}, {
			"timers",
			func(tx store.Tx, id string) error {
				return tx.SetTimer(store.Timer{Kind: store.TimerKind(id), Ref: id, Due: exact})
			},
			func(tx store.Tx, id string) error { _, err := tx.Timers(store.TimerKind(id), 1); return err },
		}, {
			"counters",
			func(tx store.Tx, id string) error {
				return tx.AddCounter(store.Counter{Key: id, ID: id, At: exact, N: 1})
			},
			func(tx store.Tx, id string) error { _, err := tx.CounterSum(id, time.Time{}); return err },
		}, {
			"records",
			func(tx store.Tx, id string) error {
				x, err := tx.Execution(id)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				x.ID, x.Conversation = id, fmt.Sprint(x.Version)
				return tx.PutExecution(x)
			},
			func(tx store.Tx, _ string) error { _, err := tx.Executions("0"); return err },
		}, {
			"changes",
			func(tx store.Tx, id string) error { return tx.PutMessage(store.Message{Conversation: id, Seq: 2}) },
			func(tx store.Tx, id string) error { _, err := tx.EraseRenderings(id, 0); return err },
		},
	} {
		for _, id := range []string{"a", "b"} { // rows that exist
			if err := s.Update(t.Context(), func(tx store.Tx) error { return c.write(tx, id) }); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		var meet sync.WaitGroup
		meet.Add(2)
		crowd(t, 2, 2, func(i int) error {
			tries := 0
			return []*postgres.Store{s, other}[i].Update(t.Context(), func(tx store.Tx) error {
				ids := []string{"a", "b"}
				if i == 1 {
					slices.Reverse(ids)
				}
				if err := c.write(tx, ids[0]); err != nil {
					return err
				}
				if err := c.read(tx, ids[0]); err != nil {
					return err
				}
				if tries++; tries == 1 { // both transactions have written and read
					meet.Done()
					meet.Wait()
				}
				return c.write(tx, ids[1])
			})
		})
	}
	if n := deadlocks(t, name, s, other); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// TestNoDeadlocksOfCalls checks that there are no deadlocks if three stores do all steps of the same calls at the same
// time.
func TestNoDeadlocksOfCalls(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	const calls, each = 40, 6
	name := empty(t)
	var stores []*postgres.Store
	for range 3 {
		stores = append(stores, open(t, at(name)))
	}
	first := newCallFixture(t, stores[0])
	var all []*callFixture
	for _, s := range stores {
		all = append(all, first.on(s, nil))
	}
	requests := make([]approvers.Request, calls)
	crowd(t, 4, calls, func(i int) (err error) { requests[i], err = first.ask(t.Context()); return err })
	// together does an action several times on each request. At the same time, all messages of the request are marked
	// as shown by Slack.
	together := func(do func(f *callFixture, r approvers.Request, n int) error) {
		t.Helper()
		crowd(t, 4*each, calls*2*each, func(i int) error {
			f, r, n := all[i%len(all)], requests[i/(2*each)], i%(2*each)
			if n%2 == 1 {
				return f.showAll(r)
			}
			if err := do(f, r, n/2); !errors.As(err, new(*approvers.Denied)) {
				return err
			}
			return nil
		})
	}
	together(func(f *callFixture, r approvers.Request, n int) error {
		if n == 0 {
			return f.receive(t.Context(), "click "+r.ID, store.InboxInteraction, r.ID)
		}
		_, err := f.decide(t.Context(), "", r)
		return err
	})
	for i, r := range requests {
		var err error
		if requests[i], err = first.request(r.Turn); err != nil {
			t.Fatal(err)
		}
	}
	together(func(f *callFixture, r approvers.Request, n int) error {
		if n > 0 {
			_, err := f.decide(t.Context(), "", r)
			return err
		}
		if _, _, err := f.workflow.Runs.Claim(t.Context(), r.Execution); err != nil {
			return err
		}
		return f.workflow.Runs.Finish(t.Context(), r.Execution, true, "done")
	})
	err := stores[0].View(t.Context(), func(x store.Reader) error {
		for _, r := range requests {
			e, err := x.Execution(r.Execution)
			if err != nil || e.State != approvers.ExecutionSucceeded {
				return fmt.Errorf("the execution of %s is %s (%w)", r.ID, e.State, err)
			}
		}
		return nil
	})
	if err := errors.Join(err, stores[0].Check(t.Context())); err != nil {
		t.Error(err)
	}
	if n := deadlocks(t, name, stores...); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// showAll marks every outbox message of a request and its turn as shown by Slack.
func (f *callFixture) showAll(r approvers.Request) error {
	var ids []string
	err := f.store.View(f.Context(), func(x store.Reader) error {
		for _, ref := range []string{r.ID, r.Turn} {
			list, err := x.OutboxMessagesOf(ref)
			if err != nil {
				return err
			}
			for _, s := range list {
				ids = append(ids, s.ID)
			}
		}
		return nil
	})
	for _, id := range ids {
		if err == nil {
			err = f.show(f.Context(), id)
		}
	}
	return err
}

// deadlocks returns how many deadlocks the server has resolved in the database of the stores. deadlocks first closes
// the stores, because a server process may report its count only when it ends.
func deadlocks(t testing.TB, database string, stores ...*postgres.Store) (n int) {
	t.Helper()
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), server.base)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(5 * time.Millisecond) {
		var open int
		const query = "SELECT deadlocks, (SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'countersign') FROM pg_stat_database WHERE datname = $1"
		if err := conn.QueryRow(t.Context(), query, database).Scan(&n, &open); err != nil {
			t.Fatal(err)
		}
		switch {
		case open == 0:
			return n
		case time.Now().After(end):
			t.Fatalf("%d connections are still open", open)
		}
	}
}

// Two transactions write the same rows in opposite orders. The store sends the writes of both transactions in the same
// order, so the transactions can't deadlock.
func TestOneOrder(t *testing.T) {
	record := &recorder{open: map[*pgx.Conn][]statement{}}
	url := at(empty(t))
	s, err := postgres.OpenWith(t.Context(), url, func(c *pgx.ConnConfig) { c.Tracer = record })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var writes []func(store.Tx) error
	for _, ref := range []string{"a", "b"} {
		writes = append(writes,
			func(tx store.Tx) error {
				return tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: ref, Due: time.Unix(1, 0)})
			},
			func(tx store.Tx) error { return tx.PutMessage(store.Message{Conversation: ref, Seq: 1}) })
	}
	var orders []string
	for range 2 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			for _, write := range writes {
				if err := write(tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(writes)
		orders = append(orders, fmt.Sprint(record.taken()))
	}
	if orders[0] != orders[1] {
		t.Errorf("in one order: %s\nin the other order: %s", orders[0], orders[1])
	}
}
