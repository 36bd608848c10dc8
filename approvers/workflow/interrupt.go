package workflow

import (
	"context"
	"strings"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// runningHandlers has the timer handlers that are running in this process, and whose kinds are in pausedKinds. A pause
// of everything cancels the contexts of all these handlers. A stop of a turn cancels the contexts of the turn's
// handlers. A handler calls enter before its transaction, so it misses no pause or stop. If the handler calls enter
// before the commit of the pause or stop, its context is cancelled. If the handler calls enter after the commit, its
// transaction reads the pause or stop from the store.
type runningHandlers struct {
	mu    sync.Mutex
	n     int
	under map[int]underWay
}

// underWay is a running handler.
type underWay struct {
	handled   handled
	interrupt func(cause error)
}

// handled identifies a running handler by the kind and the Ref of its timer.
type handled struct {
	kind store.TimerKind
	ref  string
}

// pausedKinds has the timer kinds whose handlers a pause interrupts.
var pausedKinds = map[store.TimerKind]bool{store.TimerThink: true, store.TimerRun: true, store.TimerPreview: true}

// interruption records whether a context was interrupted, and why.
type interruption struct {
	done  chan struct{}
	cause error
}

// interruptionKey is the context key of an interruption.
type interruptionKey struct{}

// Interruptible returns a context, and a function that cancels the context with a cause: ErrPaused or ErrStopped. The
// function done must be called after the last use of the context.
func Interruptible(ctx context.Context) (inner context.Context, interrupt func(cause error), done func()) {
	i := &interruption{done: make(chan struct{})}
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, interruptionKey{}, i))
	var once sync.Once
	return inner, func(cause error) {
		once.Do(func() {
			i.cause = cause
			cancel(cause)
			close(i.done)
		})
	}, func() { cancel(nil) }
}

// Interrupted returns a channel that is closed when a context of Interruptible is interrupted, even if the context was
// cancelled earlier. A process that ends cancels the contexts of its tools, but lets the tools continue for a short
// time. During this time, the channel tells a tool of a pause or a stop. For a context that is not from Interruptible,
// the channel is nil.
func Interrupted(ctx context.Context) <-chan struct{} {
	if i, ok := ctx.Value(interruptionKey{}).(*interruption); ok {
		return i.done
	}
	return nil
}

// InterruptedBy returns the cause of a context's interruption. If the context was not interrupted, InterruptedBy
// returns nil.
func InterruptedBy(ctx context.Context) error {
	i, ok := ctx.Value(interruptionKey{}).(*interruption)
	if !ok {
		return nil
	}
	select {
	case <-i.done:
		return i.cause
	default:
		return nil
	}
}

// enter creates the context of a handler. The function leave must be called when the handler returns.
func (h *runningHandlers) enter(ctx context.Context, t store.Timer) (inner context.Context, leave func()) {
	if !pausedKinds[t.Kind] {
		return ctx, func() {}
	}
	inner, interrupt, done := Interruptible(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	n := h.n
	h.under[n] = underWay{handled{t.Kind, t.Ref}, interrupt}
	return inner, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.under, n)
		done()
	}
}

// h.has reports whether the given handler is running in this process.
func (h *runningHandlers) has(what handled) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if w.handled == what {
			return true
		}
	}
	return false
}

// h.working returns the running handlers.
func (h *runningHandlers) working() (all []handled) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		all = append(all, w.handled)
	}
	return all
}

// interruptAll interrupts all handlers.
func (h *runningHandlers) interruptAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		w.interrupt(ErrPaused)
	}
}

// interrupt interrupts the given handlers.
func (h *runningHandlers) interrupt(what map[handled]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if what[w.handled] {
			w.interrupt(ErrStopped)
		}
	}
}

// A transaction in one replica may end work that another replica is doing. So the replica sends messages about the
// transaction to the other replicas, which then end this work immediately. These messages are called news. Replicas
// also send news about a change of the policy in force. News may be lost, so each replica also reads the store once a
// second.
const (
	newsPolicy  = "policy"
	newsPaused  = "paused"
	newsStopped = "stopped "  // followed by the kind and the ref of the handler's timer
	newsCaller  = "caller "   // followed by the id of a caller's request that has changed
	newsReplied = "replied "  // followed by the id of an elicitation
	newsTold    = "told "     // followed by the message that was passed to Tell
	lookAgain   = time.Second // time between two looks; at each look, the replica reads the store
	callersLook = 5           // after this number of looks, each waiting caller reads its request again
)

// t.news returns the news about the transaction for the other replicas.
func (t *tx) news() (news []string) {
	if t.changesPolicy {
		news = append(news, newsPolicy)
	}
	if t.pausesAll {
		news = append(news, newsPaused)
	}
	for what := range t.interrupts {
		news = append(news, newsStopped+string(what.kind)+" "+what.ref)
	}
	for id := range t.changedCalls {
		news = append(news, newsCaller+id)
	}
	for _, id := range t.replied {
		news = append(news, newsReplied+id)
	}
	return news
}

// Tell sends a message to the other replicas. Each of these replicas calls Config.HearTold with the message. The
// message may be lost.
func (w *Workflow) Tell(what string) { w.jobs.Notify(nil, newsTold+what) }

// hear handles the news of another replica's transaction. hear cancels the work that the transaction has ended. If the
// policy has changed, hear wakes the PolicySource.
func (w *core) hear(news []string) {
	stopped := map[handled]bool{}
	for _, n := range news {
		if n == newsPolicy && w.PolicySource != nil {
			w.PolicySource.Wake()
		}
		if n == newsPaused {
			w.running.interruptAll()
		}
		if id, ok := strings.CutPrefix(n, newsCaller); ok {
			w.waiting.wake(id)
		}
		if id, ok := strings.CutPrefix(n, newsReplied); ok {
			w.elicitations.end(id)
		}
		if told, ok := strings.CutPrefix(n, newsTold); ok && w.HearTold != nil {
			w.HearTold(told)
		}
		if what, ok := strings.CutPrefix(n, newsStopped); ok {
			kind, ref, _ := strings.Cut(what, " ")
			stopped[handled{store.TimerKind(kind), ref}] = true
		}
	}
	w.running.interrupt(stopped)
}

// watchOthers reads the store regularly, and cancels work of this replica that another replica has ended.
func (w *core) watchOthers(ctx context.Context) error {
	if store.IsAlone(w.Replica) {
		return nil
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for looks, pauses := 0, 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if looks++; looks%callersLook == 0 {
			w.waiting.wakeAll()
		}
		working, waiting := w.running.working(), w.elicitations.waiting()
		if len(working)+len(waiting) == 0 {
			continue
		}
		var news []string
		err := w.Store.View(ctx, func(r store.Reader) (err error) {
			p, _, err := settings.ReadPause(r)
			if err != nil {
				return err
			}
			news, err = endedWork(r, working, waiting)
			if p.On && p.Round != pauses {
				news, pauses = append(news, newsPaused), p.Round
			}
			return err
		})
		if err == nil { // after an error, the next tick reads the store again
			w.hear(news)
		}
	}
}

// endedWork reads from the store which work has ended, and returns news about this work. The parameter working lists
// running handlers. The parameter waiting lists elicitations whose runs wait for an answer.
func endedWork(r store.Reader, working []handled, waiting []string) (news []string, err error) {
	for _, what := range working {
		over, err := isStoppedIn(r, what)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if over {
			news = append(news, newsStopped+string(what.kind)+" "+what.ref)
		}
	}
	for _, id := range waiting {
		q, err := r.Elicitation(id)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && q.State != approvers.ElicitationOpen {
			news = append(news, newsReplied+id)
		}
	}
	return news, nil
}

// isStoppedIn reports whether a person has stopped the turn on which a handler works. For the handler of a tool
// preview, isStoppedIn reports whether the request is no longer pending.
func isStoppedIn(r store.Reader, what handled) (bool, error) {
	switch what.kind {
	case store.TimerThink:
		turn, err := r.Turn(what.ref)
		return turn.State == approvers.TurnStopped, err
	case store.TimerRun:
		e, err := r.Execution(what.ref)
		if err != nil {
			return false, err
		}
		return isStopped(r, e)
	case store.TimerPreview:
		request, err := r.Request(what.ref)
		return request.State != approvers.Pending, err
	}
	return false, nil
}
