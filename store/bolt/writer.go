package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// maxBatch limits how many closures share a commit, so the first closure does not wait too long.
const maxBatch = 256

// writer owns the file's only write transaction. The writer's goroutine runs queued closures in the transaction, one
// at a time. The goroutine commits when the queue is empty, or after maxBatch closures.
type writer struct {
	db       *bbolt.DB
	identity *identity
	rehearse bool
	queue    *queue
	damage   *damages
	wg       sync.WaitGroup
	failure  atomic.Pointer[error] // why the store stopped
	stopped  chan struct{}         // closed when the store stopped
	made     time.Time             // time at which the writer started
	busy     atomic.Int64          // start of the current transaction, as the time since made; 0: there is no transaction
	cut      bool                  // the current transaction can't be ended, because of a fault of the file

	// The following fields are the state of the writer's goroutine. If a closure ends the goroutine, a new goroutine
	// continues with this state.
	rows      rows   // the current transaction, if any
	batch     []*job // jobs whose closures have run in the current transaction
	diskSpace int    // the number of jobs that the transaction may still take
	apart     []*job // jobs whose closures each run in a transaction of their own
}

func startWriter(db *bbolt.DB, id *identity, rehearse bool, damage *damages) *writer {
	w := &writer{db: db, identity: id, rehearse: rehearse, queue: newQueue(), damage: damage, stopped: make(chan struct{}), made: time.Now()}
	w.rows.damage = damage
	w.wg.Go(w.loop)
	return w
}

// stop waits for the current commit and ends the goroutine.
func (w *writer) stop() {
	w.queue.close()
	w.wg.Wait()
}

// stalled returns how long the current transaction has been running, or 0 if there is no transaction. Queued closures
// wait for the current transaction.
func (w *writer) stalled() time.Duration {
	began := w.busy.Load()
	if began == 0 {
		return 0
	}
	return time.Since(w.made) - time.Duration(began)
}

// broken returns the reason why the store stopped. If the store did not stop, broken returns nil.
func (w *writer) broken() error {
	if err := w.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (w *writer) update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{fn: fn, done: make(chan struct{})}
	if !w.queue.add(j) {
		return store.ErrClosed
	}
	err := w.queue.outcome(ctx, j)
	if j.gone {
		if j.panic == nil {
			runtime.Goexit()
		}
		panic(j.panic)
	}
	return err
}

func (w *writer) loop() {
	ended := false
	defer func() {
		if !ended { // a closure has ended the goroutine
			w.wg.Go(w.loop)
		}
	}()
	for {
		if w.rows.tx == nil {
			j := w.first()
			if j == nil {
				ended = true
				return
			}
			w.busy.Store(max(1, int64(time.Since(w.made))))
			if err := w.begin(); err != nil {
				w.busy.Store(0)
				j.finish(err)
				continue
			}
			w.run(j)
		}
		for j := w.next(); j != nil; j = w.next() {
			w.run(j)
		}
		w.end()
	}
}

// first waits for the first job of a transaction. The result is nil if the store is being closed.
func (w *writer) first() *job {
	if len(w.apart) == 0 {
		w.diskSpace = maxBatch
		return w.queue.wait()
	}
	j := w.apart[0]
	w.apart = w.apart[1:]
	w.diskSpace = 1
	return j
}

// next takes a waiting job for the current transaction. If no job waits, next yields the processor once, and then tries
// a second time. So a caller that got the outcome of the last commit can queue its next job.
func (w *writer) next() *job {
	for range 2 {
		if w.rows.tx == nil || w.diskSpace == 0 || w.broken() != nil {
			break
		}
		if j, _ := w.queue.take(); j != nil {
			return j
		}
		runtime.Gosched()
	}
	return nil
}

func (w *writer) begin() error {
	if err := w.broken(); err != nil {
		return err
	}
	w.identity.mu.Lock()
	err := w.inPlace() // the check must come before any read from the file
	w.identity.mu.Unlock()
	if err != nil {
		return err
	}
	var btx *bbolt.Tx
	err = w.guard(func() (err error) {
		btx, err = w.db.Begin(true)
		return err
	})
	if err != nil {
		return w.fail(fmt.Errorf("begin: %w", err))
	}
	w.rows.reset(btx)
	return nil
}

// inPlace returns ErrMoved if the file is not at its path. inPlace stops the store if another program has written to
// the file.
func (w *writer) inPlace() error {
	err := w.identity.inPlace()
	if errors.Is(err, store.ErrDamaged) {
		return w.fail(err)
	}
	return err
}

// guard turns a fault of the file into an error. guard does not roll back the affected transaction.
func (w *writer) guard(work func() error) error {
	returned := false
	err := Guard(func() error {
		err := work()
		returned = true
		return err
	})
	w.cut = w.cut || !returned
	return err
}

// run runs the closure of a job. If the closure fails, run undoes the closure's writes.
func (w *writer) run(j *job) {
	w.diskSpace--
	j.gone = true
	defer func() {
		if !j.gone && isTorn(j.err) {
			w.abandon()
			j.finish(w.broken())
			return
		}
		var err error
		if j.gone || j.err != nil {
			err = Guard(w.rows.revert)
		} else {
			w.rows.keep()
		}
		if err != nil {
			_ = w.fail(err) // the method end tells the callers
		}
		if j.gone {
			close(j.done) // the caller does not wait for a commit
		} else {
			w.batch = append(w.batch, j)
		}
	}()
	w.call(j)
	if w.rehearse && !j.gone && !isTorn(j.err) {
		if err := Guard(w.rows.revert); err != nil {
			_ = w.fail(err)
			return
		}
		w.call(j)
	}
}

// call calls a job's closure. If the closure panics or ends the goroutine, the job's caller panics or ends its
// goroutine too.
func (w *writer) call(j *job) {
	t := &tx{reader{&w.rows}}
	j.gone = true
	defer func() {
		t.rows = nil
		j.panic = recover()
	}()
	j.err = Guard(func() error { return j.fn(t) })
	w.damage.failed(j.err)
	j.gone = false
}

// isTorn reports whether an error says that a page of the file is unreadable. After a read of an unreadable page, the
// state of bbolt's transaction is unknown.
func isTorn(err error) bool {
	var row *store.DamagedError
	return errors.Is(err, store.ErrDamaged) && !errors.As(err, &row)
}

// abandon discards the current transaction. The closures that ran in this transaction before run again, each in its
// own transaction.
func (w *writer) abandon() {
	w.rollback()
	w.apart, w.batch = append(w.apart, w.batch...), nil
	w.rows.reset(nil)
}

// rollback rolls back a transaction after bbolt has read damaged data. If the rollback also fails, the store stops.
func (w *writer) rollback() {
	if err := w.guard(w.rows.tx.Rollback); err != nil {
		_ = w.fail(err)
	}
}

// end commits the transaction and reports the outcome to the callers.
func (w *writer) end() {
	if w.rows.tx == nil {
		w.busy.Store(0)
		return // the function abandon has discarded the transaction
	}
	err := w.commit()
	w.rows.reset(nil)
	w.busy.Store(0)
	if len(w.batch) > 1 && (isFull(err) || isTorn(err)) && w.broken() == nil {
		// One of the closures may be too large for the free space, or may use an unreadable page. So each closure runs
		// again in its own transaction.
		w.apart, w.batch = w.batch, nil
		return
	}
	for _, j := range w.batch {
		j.finish(err)
	}
	clear(w.batch)
	w.batch = w.batch[:0]
}

func (w *writer) commit() error {
	btx := w.rows.tx
	if err := w.broken(); err != nil {
		_ = w.guard(btx.Rollback) // the store stops anyway
		return err
	}
	if !w.rows.written {
		if err := w.guard(btx.Rollback); err != nil {
			return w.fail(fmt.Errorf("roll back: %w", err))
		}
		return nil
	}
	w.identity.mu.Lock()
	defer w.identity.mu.Unlock()
	if err := w.inPlace(); err != nil {
		if undone := w.guard(btx.Rollback); undone != nil {
			return w.fail(fmt.Errorf("roll back: %w", undone))
		}
		return err
	}
	if err := Guard(w.rows.sweep); isTorn(err) {
		w.damage.failed(err)
		w.rollback()
		return err
	} else if err != nil {
		_ = w.guard(btx.Rollback) // the store stops anyway
		return w.fail(err)
	}
	id := btx.ID()
	if err := w.guard(btx.Commit); err != nil {
		if isTorn(err) && w.stands() < id {
			w.damage.failed(err)
			w.cut = false // bbolt can roll back a commit that failed at a damaged page
			w.rollback()
			return err
		}
		if w.cleanlyFull(err, id) {
			return fmt.Errorf("%w: %s: free some space (%w)", store.ErrFull, w.db.Path(), err)
		}
		return w.fail(err)
	}
	if err := w.identity.committed(id); err != nil {
		return w.fail(err)
	}
	return nil
}

// fail stops the store.
func (w *writer) fail(cause error) error {
	err := fmt.Errorf("%w: %s accepts no more calls; start the program again (%w)", store.ErrCommitUnknown, w.db.Path(), cause)
	if errors.Is(cause, store.ErrDamaged) { // another program may have overwritten acknowledged writes
		err = fmt.Errorf("%w (%w)", cause, store.ErrCommitUnknown)
	}
	if w.failure.CompareAndSwap(nil, &err) {
		close(w.stopped)
	}
	return err
}
