package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/store"
)

// turns makes transactions run one after the other while conflicts are frequent. Two serializable transactions can
// conflict if one reads an index page that the other writes, and the records of requests that were made at about the
// same time are on the same pages. Each conflict costs the work of a whole transaction. So while many transactions
// conflict, the same work needs less time if the transactions take turns.
//
// A transaction that takes a turn waits for the turn of its process. If there are other replicas, the transaction then
// waits for a lock that all replicas use (lockTurn). Turns only avoid repeated work: without turns, the transactions
// are serializable, too. So if a turn takes too long (longestTurn), all transactions that wait for it run at the same
// time.
type turns struct {
	mu        sync.Mutex
	conflicts int       // increases by conflictWeight with each conflict, and decreases by one with each transaction that ends without a conflict
	left      int       // how many of the next transactions take turns
	misses    int       // how many turns in a row took too long
	pause     time.Time // no transaction begins to wait for a turn before this time

	holder  chan bool   // the channel of the transaction that has the turn of the process; nil: there is none
	waiting []chan bool // each channel receives true when its transaction has the turn, and false if it runs without a turn
	patient []chan bool // like waiting, for transactions with low priority
	passed  int         // how many transactions have passed the first one in the field patient
}

// Transactions begin to take turns when, for some time, more than one of five has conflicted. After manyTurns
// transactions, they run at the same time again, until many of them conflict again.
const (
	conflictWeight = 4
	manyConflicts  = 32
	manyTurns      = 256
)

// mostPassed is how many transactions pass a transaction with low priority.
const mostPassed = 8

// longestTurn is how long a transaction keeps the turn of its process. This time includes the time in which the
// transaction waits for the turns of other replicas.
const longestTurn = 500 * time.Millisecond

// If several turns in a row take too long, for example because a replica hangs during its turn, transactions take no
// turns for some time. This time increases by a second with each of these turns, up to longestPause.
const longestPause = 10 * time.Second

// lockTurn adds the statements that wait for the turns of other replicas. When the transaction has the lock, it calls
// got. The end of the transaction releases the lock. LOCK takes no snapshot, so the first read sees everything that the
// previous transaction has committed. VACUUM takes a lock of the same mode, but the table origin hardly changes, so the
// server rarely vacuums it. No other statement of this program takes a lock of this mode on the table.
func lockTurn(b *pgx.Batch, got func()) {
	b.Queue("SET LOCAL lock_timeout = " + milliseconds(longestTurn))
	b.Queue("LOCK TABLE origin IN SHARE UPDATE EXCLUSIVE MODE").Exec(func(pgconn.CommandTag) error {
		got()
		return nil
	})
	b.Queue("SET LOCAL lock_timeout = " + milliseconds(lockTimeout))
}

// due reports whether the next transaction takes a turn.
func (t *turns) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || t.paused() {
		return false
	}
	if t.left--; t.left == 0 {
		t.conflicts = manyConflicts / 2 // if transactions still conflict, they soon take turns again
	}
	return true
}

// ended counts a transaction without a conflict.
func (t *turns) ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conflicts = max(0, t.conflicts-1)
}

// conflicted counts a conflict, and reports whether the transaction that runs again takes a turn.
func (t *turns) conflicted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conflicts += conflictWeight; t.conflicts >= manyConflicts {
		t.conflicts, t.left = 0, manyTurns
	}
	return !t.paused()
}

func (t *turns) paused() bool { return time.Now().Before(t.pause) }

// take waits for the turn of this process. If has is false, the transaction runs without a turn. The caller calls leave
// at the end of its transaction.
func (t *turns) take(ctx context.Context) (has bool, leave func(), err error) {
	mine := t.enter(store.HasLowPriority(ctx))
	select {
	case has = <-mine:
	case <-ctx.Done():
		t.leave(mine)
		return false, nil, ctx.Err()
	}
	if !has {
		return false, func() {}, nil
	}
	began := time.Now()
	end := sync.OnceFunc(func() {
		if time.Since(began) < longestTurn {
			t.leave(mine)
		} else {
			t.missed()
		}
	})
	late := time.AfterFunc(longestTurn, end)
	return true, func() {
		late.Stop()
		end()
	}, nil
}

// enter returns a channel that receives a value when the caller's transaction may run.
func (t *turns) enter(patient bool) (mine chan bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine = make(chan bool, 1)
	switch {
	case t.holder == nil:
		t.holder = mine
		mine <- true
	case patient:
		t.patient = append(t.patient, mine)
	default:
		t.waiting = append(t.waiting, mine)
	}
	return mine
}

// missed ends a turn that takes too long. All waiting transactions run without a turn, and the next transactions take
// no turns.
func (t *turns) missed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range slices.Concat(t.waiting, t.patient) {
		c <- false
	}
	t.holder, t.waiting, t.patient = nil, nil, nil
	t.conflicts, t.left = 0, 0
	t.pause = time.Now().Add(min(time.Duration(t.misses)*time.Second, longestPause))
	t.misses++
}

// leave gives the turn to the next transaction. If the caller does not have the turn yet, the caller stops waiting.
func (t *turns) leave(mine chan bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != mine {
		is := func(c chan bool) bool { return c == mine }
		t.waiting, t.patient = slices.DeleteFunc(t.waiting, is), slices.DeleteFunc(t.patient, is)
		return
	}
	t.misses = 0
	from := &t.waiting
	switch {
	case len(t.waiting)+len(t.patient) == 0:
		t.holder = nil
		return
	case len(t.waiting) == 0, len(t.patient) > 0 && t.passed == mostPassed:
		from, t.passed = &t.patient, 0
	case len(t.patient) > 0:
		t.passed++
	}
	t.holder = (*from)[0]
	*from = (*from)[1:]
	t.holder <- true
}
