package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	awaitReplicas(t, replicas[:]...)
	return at(name), stores
}

// awaitReplicas waits until the heartbeat of each replica has found all replicas.
func awaitReplicas(t *testing.T, replicas ...*postgres.Replica) {
	t.Helper()
	await(t, "the replicas know each other", func() bool {
		return !slices.ContainsFunc(replicas, func(r *postgres.Replica) bool { return r.Alive() < len(replicas) })
	})
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
	await(t, "the second transaction waits, or has stopped waiting", func() bool {
		if len(begun) > 0 {
			return true
		}
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
				_, leave, err := turns.Take(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.wait(t.Context(), store.WithLowPriority(t.Context()), func(ctx context.Context, who string) {
					go func() {
						_, leave, err := turns.Take(ctx)
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

// A transaction hangs during its turn. All transactions that wait for the turn run after half a second. Afterwards, a
// transaction can have the turn again, also after the first one has ended.
func TestTransactionHangsDuringItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns postgres.Turns
		take := func() (has bool, leave func()) {
			has, leave, err := turns.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			return has, leave
		}
		began := time.Now()
		_, hung := take()
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				has, leave := take()
				defer leave()
				if waited := time.Since(began); has || waited != 500*time.Millisecond {
					t.Errorf("waited %s, has the turn: %t", waited, has)
				}
			})
		}
		all.Wait()
		has, leave := take()
		if !has {
			t.Error("the next transaction does not have the turn")
		}
		hung() // the turn now belongs to another transaction, and is not free
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, _, err := turns.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two transactions have the turn; error %v", err)
		}
		leave()
	})
}

// After the first turn that takes too long, transactions can take turns again at once. After further ones, they take no
// turns for 1, 2, … 10 seconds. A turn that ends in time resets the count.
func TestPauseAfterLongTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns postgres.Turns
		turn := func(takes time.Duration) {
			_, leave, err := turns.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(takes)
			synctest.Wait()
			leave()
		}
		pause := func() time.Duration {
			began := time.Now()
			for !turns.Conflicted() {
				time.Sleep(100 * time.Millisecond)
			}
			return time.Since(began)
		}
		for round := range 2 {
			for n := range 13 {
				turn(700 * time.Millisecond)
				want := time.Duration(min(n, 10)) * time.Second
				if n > 0 {
					want -= 200 * time.Millisecond // the pause begins when the turn is taken away
				}
				if got := pause(); got != want {
					t.Errorf("round %d: after %d long turns, a pause of %s, want %s", round, n+1, got, want)
				}
			}
			turn(400 * time.Millisecond)
		}
	})
}

// lockCounter counts how often a store tries to lock a table.
type lockCounter struct {
	recorder
	n atomic.Int64
}

func (l *lockCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		if strings.HasPrefix(q.SQL, "LOCK ") {
			l.n.Add(1)
		}
	}
	return ctx
}

// A replica hangs during its turn. Many transactions of another replica take turns. Only one of them waits for the
// replica, and the transactions that wait for this one do not wait for the replica afterwards.
func TestManyWaitForAReplicaThatHangs(t *testing.T) {
	t.Parallel()
	name := empty(t)
	hanging, first := join(t, asBot(name), postgres.ReplicaOptions{Name: "hanging", Lease: time.Minute})
	var locks lockCounter
	other, err := postgres.OpenWith(t.Context(), asBot(name), func(c *pgx.ConnConfig) { c.Tracer = &locks })
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	awaitReplicas(t, first, joinOn(t, other, postgres.ReplicaOptions{Name: "other", Lease: time.Minute}))
	hanging.TakeTurns()
	other.TakeTurns()
	const n = 40
	meanwhile := sync.OnceFunc(func() {
		crowd(t, n, n, func(i int) error {
			return other.Update(t.Context(), func(x store.Tx) error {
				return x.AddCounter(store.Counter{Key: fmt.Sprint(i), ID: "x", At: time.Unix(1, 0), N: 1})
			})
		})
	})
	err = hanging.Update(t.Context(), func(x store.Tx) error {
		err := count(x, "hangs")
		meanwhile()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if tried := locks.n.Load(); tried == 0 || tried > n/2 { // if some transactions conflict, they try, too
		t.Errorf("%d transactions tried %d times to lock the table", n, tried)
	}
}

// A transaction waits for the turns of other replicas for half a second, but for other locks as long as without turns.
func TestLockTimeoutDuringATurn(t *testing.T) {
	t.Parallel()
	_, stores := twoReplicas(t)
	stores[0].TakeTurns()
	const check = `DO $$ BEGIN
ASSERT current_setting('lock_timeout') = '10s', current_setting('lock_timeout');
ASSERT EXISTS (SELECT FROM pg_locks WHERE
	pid = pg_backend_pid() AND relation = 'origin'::regclass AND mode = 'ShareUpdateExclusiveLock');
END $$`
	if err := stores[0].Update(t.Context(), func(x store.Tx) error { return postgres.RunIn(x, check) }); err != nil {
		t.Error(err)
	}
}
