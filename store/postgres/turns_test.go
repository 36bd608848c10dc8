package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/postgres"
)

// twoReplicas opens a database in two replicas, with the bot's role.
func twoReplicas(t *testing.T) (url string, stores [2]*postgres.Store) {
	t.Helper()
	name := empty(t)
	var replicas [2]*postgres.Replica
	for i := range stores {
		stores[i], replicas[i] = join(t, asBot(name), postgres.ReplicaOptions{Name: fmt.Sprint(i), Lease: time.Minute})
	}
	await(t, "the replicas know each other", func() bool { return replicas[0].Alive() == 2 && replicas[1].Alive() == 2 })
	return at(name), stores
}

// count adds to a counter that all transactions of a test read.
func count(x store.Tx, id string) error {
	if _, err := x.CounterSum("all", time.Time{}); err != nil {
		return err
	}
	return x.AddCounter(store.Counter{Key: "all", ID: id, At: time.Unix(1, 0), N: 1})
}

// Each transaction of two replicas conflicts with every other. So without turns, more transactions run again than are
// committed.
func TestFewTransactionsRunAgain(t *testing.T) {
	t.Parallel()
	_, stores := twoReplicas(t)
	const n = 1000
	var runs atomic.Int64
	crowd(t, 8, n, func(i int) error {
		return stores[i%2].Update(t.Context(), func(x store.Tx) error {
			runs.Add(1)
			return count(x, fmt.Sprint(i))
		})
	})
	again := runs.Load() - n
	t.Logf("%d transactions ran again %d times", n, again)
	if again > n/4 {
		t.Errorf("%d transactions ran again %d times, want at most %d", n, again, n/4)
	}
}

// A transaction waits for the transaction of another replica, and then reads the committed rows. So it does not run
// again.
func TestTurnOfAnotherReplica(t *testing.T) {
	t.Parallel()
	url, stores := twoReplicas(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var runs atomic.Int64
	begun, end, updated := make(chan struct{}, 10), make(chan struct{}), make(chan error, 2)
	update := func(i int) {
		stores[i].TakeTurns()
		updated <- stores[i].Update(t.Context(), func(x store.Tx) error {
			runs.Add(1)
			err := count(x, fmt.Sprint(i))
			begun <- struct{}{}
			<-end
			return err
		})
	}
	go update(0)
	<-begun
	go update(1)
	await(t, "the second transaction waits", func() bool {
		var waits bool
		err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'countersign.origin'::regclass AND NOT granted)").Scan(&waits)
		return err == nil && waits
	})
	close(end)
	if err := errors.Join(<-updated, <-updated); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 2 && stores[1].TakesTurns() { // on a busy machine, the second replica may have stopped waiting for turns
		t.Errorf("the two transactions ran %d times", runs.Load())
	}
}

// A transaction of one replica hangs during its turn. Then the other replica stops waiting for turns.
func TestReplicaHangsDuringItsTurn(t *testing.T) {
	t.Parallel()
	_, stores := twoReplicas(t)
	stores[0].TakeTurns()
	stores[1].TakeTurns()
	meanwhile := sync.OnceValue(func() error {
		return stores[1].Update(t.Context(), func(x store.Tx) error { return count(x, "goes on") })
	})
	err := stores[0].Update(t.Context(), func(x store.Tx) error { return errors.Join(count(x, "hangs"), meanwhile()) })
	if err != nil {
		t.Fatal(err)
	}
	if stores[1].TakesTurns() {
		t.Error("the replica still waits for turns")
	}
}

func TestOrderOfTurns(t *testing.T) {
	t.Parallel()
	list := func(from, to int) (names []string) {
		for i := from; i < to; i++ {
			names = append(names, fmt.Sprint(i))
		}
		return names
	}
	for name, c := range map[string]struct {
		wait func(ctx, low context.Context, take func(context.Context, string))
		want []string
	}{
		"first come, first served": {
			func(ctx, low context.Context, take func(context.Context, string)) {
				take(ctx, "a")
				take(ctx, "b")
			},
			[]string{"a", "b"},
		},
		"low priority": {
			func(ctx, low context.Context, take func(context.Context, string)) {
				take(low, "a")
				take(low, "b")
				take(ctx, "c")
			},
			[]string{"c", "a", "b"},
		},
		"at most 8 pass a transaction": {
			func(ctx, low context.Context, take func(context.Context, string)) {
				take(low, "low")
				for i := range 12 {
					take(ctx, fmt.Sprint(i))
				}
			},
			slices.Concat(list(0, 8), []string{"low"}, list(8, 12)),
		},
		"one stops waiting": {
			func(ctx, low context.Context, take func(context.Context, string)) {
				gone, cancel := context.WithCancel(ctx)
				take(gone, "a")
				take(ctx, "b")
				cancel()
			},
			[]string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var turns postgres.Turns
				var got []string
				leave, err := turns.Take(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.wait(t.Context(), store.WithLowPriority(t.Context()), func(ctx context.Context, who string) {
					go func() {
						leave, err := turns.Take(ctx)
						if err != nil {
							return
						}
						got = append(got, who)
						leave()
					}()
					synctest.Wait()
				})
				synctest.Wait()
				leave()
				synctest.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("the order is %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A transaction hangs during its turn. The next one waits for half a second.
func TestTransactionHangsDuringItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns postgres.Turns
		began := time.Now()
		hung, err := turns.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave, err := turns.Take(t.Context())
		if waited := time.Since(began); err != nil || waited != 500*time.Millisecond {
			t.Errorf("waited %s, error %v", waited, err)
		}
		hung() // the turn now belongs to another transaction, and is not free
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := turns.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two transactions have the turn; error %v", err)
		}
		leave()
	})
}
