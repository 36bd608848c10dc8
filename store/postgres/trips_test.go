package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/postgres"
)

// TestRoundTrips counts, at the wire, how often each part of a call waits for the database. It fails if a transaction
// needs another round trip.
func TestRoundTrips(t *testing.T) {
	name := empty(t)
	p, url := through(t, name)
	s := open(t, url)
	_, replica := join(t, at(name), postgres.ReplicaOptions{Name: "another way", Lease: time.Minute})
	ctx, leave, ok := replica.Enter(t.Context(), store.ShareClaim(0)) // checking a claim takes no round trip of its own
	if !ok {
		t.Fatal("the replica lacks a claim")
	}
	defer leave()
	f := newCallFixture(t, s)
	wf := f.workflow
	counted := map[string]int64{}
	step := func(name string, do func() error) {
		t.Helper()
		from := p.Trips.Load()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		counted[name] = p.Trips.Load() - from
	}
	for round := range 2 { // in the first one statements are prepared
		ts := []string{"1780000000.000001", "1780000000.000002"}[round]
		var turn string
		inbox := "Ev" + ts
		step("receive", func() error { return f.receive(ctx, inbox, store.InboxEvent, ts) })
		step("receive again", func() error { return f.receive(ctx, inbox, store.InboxEvent, ts) })
		step("message", func() (err error) { turn, err = f.message(ctx, inbox, ts); return err })
		step("begin", func() error { _, err := wf.Turns.Begin(ctx, turn); return err })
		step("propose", func() error { return f.propose(ctx, turn) })
		r, err := f.request(turn)
		if err != nil {
			t.Fatal(err)
		}
		click := "Ev" + ts + "click"
		step("receive click", func() error { return f.receive(ctx, click, store.InboxInteraction, ts) })
		step("decide", func() (err error) { r, err = f.decide(ctx, click, r); return err })
		step("claim", func() error { _, _, err := wf.Runs.Claim(ctx, r.Execution); return err })
		step("finish", func() error { return wf.Runs.Finish(ctx, r.Execution, true, "done") })
	}
	for name, most := range map[string]int64{
		"receive": 2, "receive again": 2, "receive click": 2, "message": 7, "begin": 6, "propose": 13, "decide": 4, "claim": 9, "finish": 11,
	} {
		if counted[name] > most {
			t.Errorf("%s takes %d round trips, want at most %d", name, counted[name], most)
		}
	}
	t.Log(counted)
}

// Transactions that write the same rows in opposite orders send them in the same order, so that they do not wait for
// each other.
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
