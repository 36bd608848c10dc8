package bolt

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// maxBatch bounds how many closures share a commit, so that the first of them is not kept waiting by all the others.
const maxBatch = 256

// writer owns the file's one write transaction. Its goroutine takes waiting closures one after the other, lends each the
// transaction, and commits when nobody waits.
type writer struct {
	db       *bbolt.DB
	rehearse bool
	jobs     chan *job     // unbuffered: a closure is either waiting with its caller or taken
	back     chan struct{} // the closure that had the transaction is done with it
	quit     chan struct{}
	scratch  scratch
	changes  []change // kept for its memory
	wg       sync.WaitGroup
	failure  atomic.Pointer[error] // why the store stopped
}

// job is one closure. Its caller waits on turn: each receive lends it the transaction once; closed, err is the outcome.
type job struct {
	turn chan *rows
	err  error
	gone bool // the closure panicked or ended its goroutine: nobody waits for the outcome
}

func startWriter(db *bbolt.DB, rehearse bool) *writer {
	w := &writer{db: db, rehearse: rehearse, jobs: make(chan *job), back: make(chan struct{}), quit: make(chan struct{})}
	w.wg.Go(w.loop)
	return w
}

// stop lets the commit under way finish and ends the goroutine.
func (w *writer) stop() {
	close(w.quit)
	w.wg.Wait()
}

// broken says why the store stopped; nil: it did not.
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
	j := &job{turn: make(chan *rows)}
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return store.ErrClosed
	}
	for r := range j.turn {
		w.run(j, fn, r)
	}
	return j.err
}

// run runs the closure and gives the transaction back, whichever way the closure ends.
func (w *writer) run(j *job, fn func(store.Tx) error, r *rows) {
	t := &tx{reader{r}}
	j.gone = true
	defer func() {
		t.rows = nil
		w.back <- struct{}{}
	}()
	j.err = fn(t)
	j.gone = false
}

func (w *writer) loop() {
	for {
		select {
		case j := <-w.jobs:
			w.share(j)
		case <-w.quit:
			return
		}
	}
}

// share runs the first job and all that wait by then in one commit.
func (w *writer) share(first *job) {
	batch := []*job{first}
	err := w.commit(func() *job {
		if len(batch) == maxBatch {
			return nil
		}
		j := w.waiting()
		if j != nil {
			batch = append(batch, j)
		}
		return j
	}, first)
	if len(batch) > 1 && isFull(err) {
		// One of them may be too large for what is left of the disk: each runs again, on its own.
		for _, j := range batch {
			if !j.gone {
				j.finish(w.commit(func() *job { return nil }, j))
			}
		}
		return
	}
	for _, j := range batch {
		j.finish(err)
	}
}

// waiting takes a job from the queue if there is one. Callers who were just told the outcome of the last commit get one
// chance to come back, so that they don't miss this one; with no such callers it costs nothing.
func (w *writer) waiting() *job {
	for range 2 {
		select {
		case j := <-w.jobs:
			return j
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// finish tells the caller the outcome. An error of the commit outweighs the closure's own: what it saw may not be true.
func (j *job) finish(commit error) {
	if commit != nil {
		j.err = commit
	}
	close(j.turn)
}

// commit runs jobs in one transaction, until there is no next one, and commits what they wrote.
func (w *writer) commit(next func() *job, j *job) error {
	if err := w.broken(); err != nil {
		return err
	}
	btx, err := w.db.Begin(true)
	if err != nil {
		return w.fail(fmt.Errorf("begin: %w", err))
	}
	w.scratch.reset()
	r := &rows{tx: btx, scratch: &w.scratch, changes: w.changes}
	defer func() { w.changes = r.changes[:0] }()
	for ; j != nil; j = next() {
		if err := w.lend(j, r); err != nil {
			_ = btx.Rollback() // the store stops anyway
			return w.fail(err)
		}
	}
	if !r.written {
		if err := btx.Rollback(); err != nil {
			return w.fail(fmt.Errorf("roll back: %w", err))
		}
		return nil
	}
	id := btx.ID()
	if err := btx.Commit(); err != nil {
		if w.cleanlyFull(err, id) {
			return fmt.Errorf("%w: %s: free some space; nothing needs to be started again (%w)", store.ErrFull, w.db.Path(), err)
		}
		return w.fail(err)
	}
	return nil
}

// lend lets a job's closure use the transaction, and takes back what it wrote if it did not end well.
func (w *writer) lend(j *job, r *rows) error {
	j.turn <- r
	<-w.back
	if w.rehearse && !j.gone {
		if err := r.revert(); err != nil {
			return err
		}
		j.turn <- r
		<-w.back
	}
	if j.gone || j.err != nil {
		return r.revert()
	}
	r.keep()
	return nil
}

// fail stops the store.
func (w *writer) fail(cause error) error {
	err := fmt.Errorf("%w: %s takes no more calls; start again from what it holds (%w)", store.ErrCommitUnknown, w.db.Path(), cause)
	w.failure.Store(&err)
	return err
}
