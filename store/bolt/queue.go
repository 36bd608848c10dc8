package bolt

import (
	"context"
	"slices"
	"sync"

	"countersign/store"
)

// queue holds waiting closures in the order of their arrival.
type queue struct {
	mu     sync.Mutex
	jobs   []*job
	closed bool
	wakeup chan struct{} // signals that a job was added, or that the queue was closed
}

// job is one closure. The channel done is closed when the outcome of the job is final.
type job struct {
	fn    func(store.Tx) error
	done  chan struct{}
	err   error
	gone  bool // the closure panicked (see the field panic), or ended its goroutine
	panic any
}

func newQueue() *queue { return &queue{wakeup: make(chan struct{}, 1)} }

// add appends a job. The result is false if the queue was closed.
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
	case q.wakeup <- struct{}{}:
	default: // already signaled
	}
}

// withdraw removes a job that was not taken yet. withdraw reports whether it removed the job.
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

// take removes and returns the first job. If no job waits, the job is nil. If the queue is closed, the second result is
// false.
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

// wait waits for a job, and removes the job from the queue. The result is nil if the queue was closed.
func (q *queue) wait() *job {
	for {
		if j, open := q.take(); j != nil || !open {
			return j
		}
		<-q.wakeup
	}
}

// close rejects waiting and future jobs.
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

// finish sets the outcome for the caller. If the commit failed, its error replaces the closure's own error. The closure
// may have failed because of rows that another closure wrote in the same transaction, and these rows were not stored.
func (j *job) finish(commit error) {
	if commit != nil {
		j.err = commit
	}
	close(j.done)
}

// outcome waits for a job's outcome. If the context ends first, outcome withdraws the job.
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
