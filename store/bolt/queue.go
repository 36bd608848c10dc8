package bolt

import (
	"context"
	"slices"
	"sync"

	"countersign/store"
)

// queue is where closures wait for their turn, in the order in which they came.
type queue struct {
	mu     sync.Mutex
	jobs   []*job
	closed bool
	bell   chan struct{} // rings when there is something to take, or the queue was closed
}

// job is one closure. done is closed when its outcome stands.
type job struct {
	fn    func(store.Tx) error
	done  chan struct{}
	err   error
	gone  bool // it panicked, with panic, or ended its goroutine
	panic any
}

func newQueue() *queue { return &queue{bell: make(chan struct{}, 1)} }

// add puts a job at the end. It reports false when the queue was closed.
func (q *queue) add(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.jobs = append(q.jobs, j)
	q.ring()
	return true
}

func (q *queue) ring() {
	select {
	case q.bell <- struct{}{}:
	default: // it is ringing already
	}
}

// withdraw takes a job out that nobody took yet. It reports whether there was one.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.jobs, j)
	if i < 0 {
		return false
	}
	q.jobs = slices.Delete(q.jobs, i, i+1)
	return true
}

// take takes the first job; nil: there is none. It reports false once the queue was closed.
func (q *queue) take() (*job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.jobs) == 0 {
		return nil, !q.closed
	}
	j := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	return j, true
}

// wait takes the first job when there is one; nil: the queue was closed.
func (q *queue) wait() *job {
	for {
		if j, open := q.take(); j != nil || !open {
			return j
		}
		<-q.bell
	}
}

// close turns away those who wait, and all who come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, j := range q.jobs {
		j.err = store.ErrClosed
		close(j.done)
	}
	q.jobs = nil
	q.ring()
}

// finish tells the caller the outcome. An error of the commit outweighs the closure's own: what it saw may not be true.
func (j *job) finish(commit error) {
	if commit != nil {
		j.err = commit
	}
	close(j.done)
}

// outcome waits for a job's outcome. A context that ends first takes it out of the queue.
func (q *queue) outcome(ctx context.Context, j *job) error {
	select {
	case <-j.done:
	case <-ctx.Done():
		if q.withdraw(j) {
			return ctx.Err()
		}
		<-j.done
	}
	return j.err
}
