package transport

import (
	"hash/fnv"
	"sync"
)

const (
	queues   = 16 // number of queues; work of different queues runs in parallel
	queueing = 256
)

// lanes runs work in the background: in order within a lane, and in parallel for lanes of different queues. Each lane
// belongs to one of a fixed number of queues.
type lanes struct {
	queues  [queues]chan func()
	working sync.WaitGroup
}

func newLanes() *lanes {
	l := &lanes{}
	for i := range l.queues {
		queue := make(chan func(), queueing)
		l.queues[i] = queue
		l.working.Go(func() {
			for work := range queue {
				work()
			}
		})
	}
	return l
}

// add adds work to a lane. The function blocks while the lane's queue is full.
func (l *lanes) add(lane string, work func()) {
	h := fnv.New32a()
	h.Write([]byte(lane))
	l.queues[h.Sum32()%queues] <- work
}

// finish waits for all work. After this call, no work may be added.
func (l *lanes) finish() {
	for _, queue := range l.queues {
		close(queue)
	}
	l.working.Wait()
}
