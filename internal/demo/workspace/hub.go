package workspace

import (
	"context"
	"slices"
	"sync"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// hub delivers envelopes to the app, through its sockets or to its request URLs, and waits for acknowledgements. It
// has its own lock and never takes the server's.
type hub struct {
	cfg      Config
	faults   *faults
	requests requests
	ctx      context.Context // of the requests under way
	cancel   context.CancelFunc

	mu      sync.Mutex
	closed  bool
	urls    RequestURLs
	away    bool // the last request did not reach the app
	sockets []*socket
	waiting map[string]*envelope // by envelope id, until acknowledged or given up
	queue   []*envelope          // events without a socket to send them on
	seq     int
	running sync.WaitGroup // a reader and a writer for each socket, and requests
}

func newHub(cfg Config, f *faults) *hub {
	app := cfg.Seed.App
	ctx, cancel := context.WithCancel(context.Background())
	return &hub{cfg: cfg, faults: f, requests: newRequests(app.SigningSecret, cfg.HTTP), ctx: ctx, cancel: cancel, urls: app.RequestURLs, waiting: map[string]*envelope{}}
}

func (h *hub) full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sockets) >= maxSockets
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sockets)
}

// add registers a socket, sends hello, and delivers queued events. The caller then reads the socket and removes it.
func (h *hub) add(k *socket, hello object) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.sockets) >= maxSockets {
		return false
	}
	h.sockets = append(h.sockets, k)
	hello["num_connections"] = len(h.sockets)
	k.send(wire.Encode(hello))
	k.done.Add(1)
	h.running.Add(2)
	go func() {
		defer h.running.Done()
		k.write(h.cfg.PingInterval)
	}()
	if !h.urls.any() {
		h.flush()
	}
	return true
}

// flush delivers queued events.
func (h *hub) flush() {
	queued := h.queue
	h.queue = nil
	for _, e := range queued {
		e.timer.Stop()
		h.send(e)
	}
}

// remove unregisters a socket. Its unacknowledged envelopes fail at once: events are sent again, and waiting people
// get an error.
func (h *hub) remove(k *socket) {
	defer h.running.Done()
	k.close()
	k.done.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.sockets {
		if other == k {
			h.sockets = append(h.sockets[:i:i], h.sockets[i+1:]...)
			break
		}
	}
	var lost []*envelope
	for _, e := range h.waiting {
		if e.sentTo == k {
			lost = append(lost, e)
		}
	}
	slices.SortFunc(lost, func(a, b *envelope) int { return a.seq - b.seq })
	for _, e := range lost {
		h.failed(e, "connection_failed")
	}
}

func (h *hub) drop(k *socket) {
	for i, other := range h.sockets {
		if other == k {
			h.sockets = append(h.sockets[:i:i], h.sockets[i+1:]...)
			return
		}
	}
}

// disconnect asks sockets to close, with Slack's reason, and closes them: at once, so that nothing more is sent, or
// ten seconds after a warning.
func (h *hub) disconnect(reason string, which []*socket) {
	frame := wire.Encode(object{"type": "disconnect", "reason": reason, "debug_info": object{"host": "workspace"}})
	for _, k := range which {
		if reason == "warning" {
			k.send(frame)
			time.AfterFunc(10*time.Second, k.close)
			continue
		}
		h.locked(func() { h.drop(k) })
		k.send(frame)
		k.send(nil) // the writer stops there
	}
}

func (h *hub) snapshot() []*socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sockets)
}

// dropAll breaks every socket without a message.
func (h *hub) dropAll() {
	for _, k := range h.snapshot() {
		k.close()
	}
}

// close ends all deliveries and sockets and waits for running ones.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for id, e := range h.waiting {
		delete(h.waiting, id)
		e.timer.Stop()
		if e.answered != nil {
			e.answered <- answer{err: errNoAnswer}
		}
	}
	for _, e := range h.queue {
		e.timer.Stop()
	}
	h.queue = nil
	h.mu.Unlock()
	h.cancel()
	h.dropAll()
	h.running.Wait()
}
