package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"countersign/store"
)

// turns makes transactions run one after the other while conflicts are frequent. Two serializable transactions can
// conflict if one reads an index page that the other writes, and the records of requests that were made at about the
// same time are on the same pages. Each conflict costs the work of a whole transaction. So while many transactions
// conflict, the same work needs less time if the transactions take turns.
//
// A transaction that takes a turn waits for the turn of its process. If there are other replicas, the transaction then
// waits for a lock that all replicas use (lockTurn). Turns only avoid repeated work: without turns, the transactions are
// serializable, too. So if a transaction hangs, others wait only for a short time (longestTurn).
type turns struct {
	mu        sync.Mutex
	conflicts int // increases by conflictWeight with each conflict, and decreases by one with each transaction that ends without a conflict
	left      int // how many of the next transactions take turns

	taken   bool            // a transaction has the turn of the process
	waiting []chan struct{} // each channel is closed when its transaction has the turn
	patient []chan struct{} // like waiting, for transactions with low priority
	passed  int             // how many transactions have passed the first one in the field patient
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

// longestTurn is how long a transaction keeps the turn of its process, and how long a transaction waits for the turn of
// another replica.
const longestTurn = 500 * time.Millisecond

// lockTurn waits for the turns of other replicas. The end of the transaction releases the lock. LOCK takes no snapshot,
// so the first read sees everything that the previous transaction has committed. VACUUM takes a lock of the same mode,
// but the table origin hardly changes, so the server rarely vacuums it. No other statement of this program takes a lock
// of this mode on the table.
var lockTurn = []string{
	"SET LOCAL lock_timeout = '" + milliseconds(longestTurn) + "'",
	"LOCK TABLE origin IN SHARE UPDATE EXCLUSIVE MODE",
}

// due reports whether the next transaction takes a turn.
func (t *turns) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
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

// conflicted counts a conflict.
func (t *turns) conflicted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conflicts += conflictWeight; t.conflicts >= manyConflicts {
		t.conflicts, t.left = 0, manyTurns
	}
}

// missed is called if the turn of another replica takes too long. The next transactions take no turns.
func (t *turns) missed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conflicts, t.left = 0, 0
}

// take waits for the turn of this process. The caller calls leave at the end of its transaction.
func (t *turns) take(ctx context.Context) (leave func(), err error) {
	mine := t.enter(store.HasLowPriority(ctx))
	select {
	case <-mine:
	case <-ctx.Done():
		t.leave(mine)
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(func() { t.leave(mine) })
	late := time.AfterFunc(longestTurn, end)
	return func() {
		late.Stop()
		end()
	}, nil
}

// enter returns a channel that is closed when the caller has the turn.
func (t *turns) enter(patient bool) (mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine = make(chan struct{})
	switch {
	case !t.taken:
		t.taken = true
		close(mine)
	case patient:
		t.patient = append(t.patient, mine)
	default:
		t.waiting = append(t.waiting, mine)
	}
	return mine
}

// leave gives the turn to the next transaction. If the caller does not have the turn yet, the caller stops waiting.
func (t *turns) leave(mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine:
	default:
		is := func(c chan struct{}) bool { return c == mine }
		t.waiting, t.patient = slices.DeleteFunc(t.waiting, is), slices.DeleteFunc(t.patient, is)
		return
	}
	from := &t.waiting
	switch {
	case len(t.waiting)+len(t.patient) == 0:
		t.taken = false
		return
	case len(t.waiting) == 0, len(t.patient) > 0 && t.passed == mostPassed:
		from, t.passed = &t.patient, 0
	case len(t.patient) > 0:
		t.passed++
	}
	close((*from)[0])
	*from = (*from)[1:]
}
