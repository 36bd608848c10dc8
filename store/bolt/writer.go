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

// writer owns the file's one write transaction. Its goroutine runs waiting closures one after the other in it, and commits when nobody waits.
type writer struct {
	db       *bbolt.DB
	rehearse bool
	queue    *queue
	wg       sync.WaitGroup
	failure  atomic.Pointer[error] // why the store stopped

	// The goroutine's own, which another one takes over when a closure ends it.
	rows  rows   // the transaction under way, if there is one
	batch []*job // whose closures have run in it
	room  int    // for so many more
	apart []*job // each is to have a transaction of its own
}

func startWriter(db *bbolt.DB, rehearse bool) *writer {
	w := &writer{db: db, rehearse: rehearse, queue: newQueue()}
	w.wg.Go(w.loop)
	return w
}

// stop lets the commit under way finish and ends the goroutine.
func (w *writer) stop() {
	w.queue.close()
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
		if !ended { // by a closure
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
			if err := w.begin(); err != nil {
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

// first waits for a job with which a transaction begins; nil: the store is being closed.
func (w *writer) first() *job {
	if len(w.apart) == 0 {
		w.room = maxBatch
		return w.queue.wait()
	}
	j := w.apart[0]
	w.apart = w.apart[1:]
	w.room = 1
	return j
}

// next takes a job that shares the transaction under way, if one waits. Callers who were just told the outcome of the last commit get one
// chance to come back, so that they don't miss this one; with no such callers it costs nothing.
func (w *writer) next() *job {
	for range 2 {
		if w.room == 0 || w.broken() != nil {
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
	btx, err := w.db.Begin(true)
	if err != nil {
		return w.fail(fmt.Errorf("begin: %w", err))
	}
	w.rows.reset(btx)
	return nil
}

// run runs a job's closure, and takes back what it wrote if it did not end well.
func (w *writer) run(j *job) {
	w.room--
	j.gone = true
	defer func() {
		var err error
		if j.gone || j.err != nil {
			err = w.rows.revert()
		} else {
			w.rows.keep()
		}
		if err != nil {
			_ = w.fail(err) // end tells everybody
		}
		if j.gone {
			close(j.done) // nobody waits for the outcome
		} else {
			w.batch = append(w.batch, j)
		}
	}()
	w.call(j)
	if w.rehearse && !j.gone {
		if err := w.rows.revert(); err != nil {
			_ = w.fail(err)
			return
		}
		w.call(j)
	}
}

// call calls a job's closure. If it panics or ends the goroutine, its caller will.
func (w *writer) call(j *job) {
	t := &tx{reader{&w.rows}}
	j.gone = true
	defer func() {
		t.rows = nil
		j.panic = recover()
	}()
	j.err = j.fn(t)
	j.gone = false
}

// end commits the transaction and tells those who shared it.
func (w *writer) end() {
	err := w.commit()
	w.rows.reset(nil)
	if len(w.batch) > 1 && isFull(err) {
		// One of them may be too large for what is left of the disk: each runs again, on its own.
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
		_ = btx.Rollback() // the store stops anyway
		return err
	}
	if !w.rows.written {
		if err := btx.Rollback(); err != nil {
			return w.fail(fmt.Errorf("roll back: %w", err))
		}
		return nil
	}
	id := btx.ID()
	if err := btx.Commit(); err != nil {
		if w.cleanlyFull(err, id) {
			return fmt.Errorf("%w: %s: free some space (%w)", store.ErrFull, w.db.Path(), err)
		}
		return w.fail(err)
	}
	return nil
}

// fail stops the store.
func (w *writer) fail(cause error) error {
	err := fmt.Errorf("%w: %s takes no more calls; start again from what it holds (%w)", store.ErrCommitUnknown, w.db.Path(), cause)
	w.failure.Store(&err)
	return err
}
