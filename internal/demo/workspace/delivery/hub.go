package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// object is decoded JSON.
type object = map[string]any

// ErrNoAnswer is the error of an interaction that the app did not acknowledge in time, or for which no app is
// connected.
var ErrNoAnswer = errors.New("the app did not respond")

// App receives deliveries in place of sockets and request URLs. A test can implement App to simulate the network
// between Slack and the app. The implementation decides which deliveries are late, lost or repeated.
type App interface {
	// Event receives an event. The workspace waits until Event returns, so Event must return immediately, and must not
	// call the workspace.
	Event(payload json.RawMessage)
	// Ask receives an interaction or a slash command. kind is "interactive" or "slash_commands". Ask returns the
	// content of the acknowledgement, or nil if the acknowledgement has no content. If Ask returns an error, the person
	// sees that the app did not respond.
	Ask(kind string, payload json.RawMessage) (json.RawMessage, error)
}

// Config configures a Hub. All fields are required, except App, URLs, SigningSecret, HTTP and Mishaps.
type Config struct {
	App           App
	URLs          RequestURLs
	SigningSecret string
	HTTP          *http.Client // client for the request URLs

	AckTimeout   time.Duration
	RetryDelays  []time.Duration
	PingInterval time.Duration
	Pick         func(n int) int // chooses one of n sockets
	Faults       Faults
	Mishaps      func(Attempt) Mishap
	Log          *slog.Logger
}

// Hub delivers envelopes to the app and waits for acknowledgements.
type Hub struct {
	cfg      Config
	requests requests
	ctx      context.Context // the context of the requests in progress
	cancel   context.CancelFunc

	mu      sync.Mutex
	closed  bool
	once    bool // events are not sent again, and do not wait for a socket
	urls    RequestURLs
	away    bool // the last request did not reach the app
	sockets []*socket
	waiting map[string]*envelope // by envelope id, until acknowledged or given up
	queue   []*envelope          // events that wait for a socket
	seq     int
	running sync.WaitGroup // goroutines: a reader and a writer for each socket, and one for each request
}

// envelope is one attempt of a delivery.
type envelope struct {
	id       string
	kind     string // events_api, interactive or slash_commands
	payload  json.RawMessage
	seq      int // the order of deliveries
	attempt  int // number of the attempt, from 0
	reason   string
	sentTo   *socket
	deaf     bool // the acknowledgement will be lost
	timer    *time.Timer
	answered chan answer // nil for events
}

// answer is the acknowledgement of an interaction, or the reason why the acknowledgement is missing.
type answer struct {
	payload json.RawMessage
	err     error
}

// New returns a Hub without sockets.
func New(cfg Config) *Hub {
	ctx, cancel := context.WithCancel(context.Background())
	return &Hub{cfg: cfg, requests: newRequests(cfg.SigningSecret, cfg.HTTP), ctx: ctx, cancel: cancel, urls: cfg.URLs, waiting: map[string]*envelope{}}
}

// Event sends an event to the app, and repeats the event until it is acknowledged or the retries are used up. Event
// never blocks.
func (h *Hub) Event(payload json.RawMessage) {
	if h.cfg.App != nil {
		h.cfg.App.Event(payload)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.dispatch(&envelope{kind: "events_api", payload: payload})
	}
}

// Ask sends an interaction and waits for its acknowledgement, up to the ack timeout. An interaction is sent only once.
// If Ask fails, the error is ErrNoAnswer.
func (h *Hub) Ask(kind string, payload json.RawMessage) (json.RawMessage, error) {
	if h.cfg.App != nil {
		answer, err := h.cfg.App.Ask(kind, payload)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		return answer, nil
	}
	e := &envelope{kind: kind, payload: payload, answered: make(chan answer, 1)}
	h.mu.Lock()
	if h.closed || !h.urls.Any() && len(h.sockets) == 0 {
		h.mu.Unlock()
		return nil, ErrNoAnswer
	}
	h.dispatch(e)
	h.mu.Unlock()
	patience := time.NewTimer(h.cfg.AckTimeout)
	defer patience.Stop()
	select {
	case a := <-e.answered:
		return a.payload, a.err
	case <-patience.C:
		return nil, ErrNoAnswer
	}
}

// Delivered returns the number of attempts so far, and the number of deliveries that the app has not acknowledged yet.
// Events that wait for their next attempt are not counted.
func (h *Hub) Delivered() (sent, pending int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seq, len(h.waiting) + len(h.queue)
}

// Connected reports whether the app is reachable. If the app has request URLs, it is reachable unless the last request
// did not reach it. Otherwise, the app is reachable if it has an open socket.
func (h *Hub) Connected() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.urls.Any() {
		return !h.away
	}
	return len(h.sockets) > 0
}

// Use changes the URLs of deliveries. Empty URLs switch to sockets. Queued events are sent immediately.
func (h *Hub) Use(urls RequestURLs) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.urls, h.away = urls, false
	if urls.Any() {
		h.flush()
	}
}

// Retry sets whether events are repeated, and whether events wait for a socket.
func (h *Hub) Retry(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.once = !on
}

// OverHTTP reports whether the app has request URLs.
func (h *Hub) OverHTTP() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.urls.Any()
}

// Close ends all deliveries and sockets, and waits for the goroutines of the Hub.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for id, e := range h.waiting {
		delete(h.waiting, id)
		e.timer.Stop()
		if e.answered != nil {
			e.answered <- answer{err: ErrNoAnswer}
		}
	}
	for _, e := range h.queue {
		e.timer.Stop()
	}
	h.queue = nil
	h.mu.Unlock()
	h.cancel()
	h.Drop()
	h.running.Wait()
}

// The functions below must be called with the lock held.

// send posts an envelope to its request URL, or writes it to one of the sockets, and starts its ack timeout. If no
// socket is open, an event waits in the queue.
func (h *Hub) send(e *envelope) {
	h.seq++
	e.seq = h.seq
	if h.urls.Any() {
		h.post(e)
		return
	}
	for len(h.sockets) > 0 {
		k := h.sockets[h.cfg.Pick(len(h.sockets))]
		e.id = wire.NewUUID()
		if !k.send(e.frame()) {
			h.forgetSocket(k)
			continue
		}
		e.sentTo = k
		h.await(e)
		return
	}
	if e.answered != nil {
		e.answered <- answer{err: ErrNoAnswer}
		return
	}
	if e.kind == "events_api" && !h.once {
		h.queue = append(h.queue, e)
		e.timer = time.AfterFunc(h.queueLives(), func() {
			h.locked(func() { h.queue = slices.DeleteFunc(h.queue, func(queued *envelope) bool { return queued == e }) })
		})
	}
}

// queueLives returns how long an event waits for an app: as long as Slack would retry the event.
func (h *Hub) queueLives() time.Duration {
	total := h.cfg.AckTimeout
	for _, d := range h.cfg.RetryDelays {
		total += d
	}
	return total
}

// flush sends queued events.
func (h *Hub) flush() {
	queued := h.queue
	h.queue = nil
	for _, e := range queued {
		e.timer.Stop()
		h.send(e)
	}
}

// await starts the ack timeout of an envelope.
func (h *Hub) await(e *envelope) {
	h.waiting[e.id] = e
	e.timer = time.AfterFunc(h.cfg.AckTimeout, func() {
		h.locked(func() {
			if h.waiting[e.id] == e {
				h.failed(e, h.timedOut())
			}
		})
	})
}

// The method "locked" takes the lock and calls the function work, on behalf of a timer. If the Hub is closed, it does
// not call work.
func (h *Hub) locked(work func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		work()
	}
}

// The method "heard" handles an envelope's acknowledgement. A fault may discard the acknowledgement.
func (h *Hub) heard(e *envelope, payload json.RawMessage) {
	if e.deaf || h.cfg.Faults.LostAck() {
		return
	}
	h.settled(e)
	if e.answered != nil {
		if trimmed := bytes.TrimSpace(payload); len(trimmed) == 0 || slices.Contains([]string{`{}`, `null`, `""`}, string(trimmed)) {
			payload = nil
		}
		e.answered <- answer{payload: payload}
	}
}

// The method "failed" ends one attempt. If the envelope is an interaction, the person gets an error. If the envelope is
// an event, the event is repeated until its retries are used up.
func (h *Hub) failed(e *envelope, reason string) {
	h.settled(e)
	if e.answered != nil {
		e.answered <- answer{err: ErrNoAnswer}
		return
	}
	h.retryLater(e, reason)
}

// The method "settled" makes the Hub stop waiting for an envelope's acknowledgement.
func (h *Hub) settled(e *envelope) {
	delete(h.waiting, e.id)
	e.timer.Stop()
}

func (h *Hub) retryLater(e *envelope, reason string) {
	if e.attempt >= len(h.cfg.RetryDelays) || h.once {
		return
	}
	next := &envelope{kind: e.kind, payload: e.payload, attempt: e.attempt + 1, reason: reason}
	if delay := h.cfg.RetryDelays[e.attempt]; delay > 0 {
		time.AfterFunc(delay, func() { h.locked(func() { h.deliver(next) }) })
		return
	}
	h.deliver(next)
}

// timedOut returns Slack's code for an app that did not acknowledge in time.
func (h *Hub) timedOut() string {
	if h.urls.Any() {
		return "http_timeout"
	}
	return "timeout"
}
