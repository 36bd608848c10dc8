package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
)

// errNoAnswer is what a person sees when the app doesn't acknowledge in time, or when
// no app is connected.
var errNoAnswer = errors.New("the app did not respond")

// hub brings envelopes to the app's sockets and waits for acknowledgements. It has its
// own lock and never takes the server's.
type hub struct {
	cfg    Config
	faults *faults

	mu      sync.Mutex
	closed  bool
	sockets []*socket
	waiting map[string]*envelope // by envelope id, until acknowledged or given up
	queue   []*envelope          // events that no socket has been there for
	seq     int
	writers sync.WaitGroup
}

// envelope is one delivery: an event, or an interaction that somebody waits for.
type envelope struct {
	id       string
	kind     string // events_api, interactive, slash_commands
	payload  json.RawMessage
	seq      int // in which order deliveries were made
	attempt  int // 0 is the first
	reason   string
	sentTo   *socket
	timer    *time.Timer
	answered chan answer // nil for events
}

// answer is the acknowledgement of an interaction, or why there is none.
type answer struct {
	payload json.RawMessage
	err     error
}

func newHub(cfg Config, f *faults) *hub {
	return &hub{cfg: cfg, faults: f, waiting: map[string]*envelope{}}
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

// add takes a socket in, greets it and gives it what has been waiting for one.
func (h *hub) add(k *socket, hello object) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.sockets) >= maxSockets {
		return false
	}
	h.sockets = append(h.sockets, k)
	hello["num_connections"] = len(h.sockets)
	k.send(encode(hello))
	k.done.Add(1)
	h.writers.Add(1)
	go func() {
		defer h.writers.Done()
		k.write(h.cfg.PingInterval)
	}()
	queued := h.queue
	h.queue = nil
	for _, e := range queued {
		e.timer.Stop()
		h.deliver(e)
	}
	return true
}

// remove forgets a socket. What it had not acknowledged counts as failed at once:
// events are sent again, waiting people are told.
func (h *hub) remove(k *socket) {
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

// event sends an event to one of the sockets, and again until it is acknowledged or the
// retries are used up. It never waits.
func (h *hub) event(payload json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.dispatch(&envelope{kind: "events_api", payload: payload})
	}
}

// dispatch delivers an envelope for the first time, with the fault that waits for it.
func (h *hub) dispatch(e *envelope) {
	fault, faulty := h.faults.takeDelivery(e.kind)
	if !faulty {
		h.deliver(e)
		return
	}
	switch fault.Fault {
	case FaultLostDelivery:
		if e.answered == nil {
			h.retryLater(e, "timeout")
		}
	case FaultLateDelivery:
		time.AfterFunc(fault.delay(), func() { h.locked(func() { h.deliver(e) }) })
	case FaultDuplicateDelivery:
		h.deliver(e)
		h.deliver(&envelope{kind: e.kind, payload: e.payload, attempt: len(h.cfg.RetryDelays), reason: "timeout"})
	}
}

// locked runs a timer's work, unless the hub has been closed meanwhile.
func (h *hub) locked(work func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		work()
	}
}

// ask sends an interaction and waits for its acknowledgement, as long as the person who
// caused it would. Interactions are not sent again.
func (h *hub) ask(kind string, payload json.RawMessage) (json.RawMessage, error) {
	e := &envelope{kind: kind, payload: payload, answered: make(chan answer, 1)}
	h.mu.Lock()
	if h.closed || len(h.sockets) == 0 {
		h.mu.Unlock()
		return nil, errNoAnswer
	}
	h.dispatch(e)
	h.mu.Unlock()
	patience := time.NewTimer(h.cfg.AckTimeout)
	defer patience.Stop()
	select {
	case a := <-e.answered:
		return a.payload, a.err
	case <-patience.C:
		return nil, errNoAnswer
	}
}

// deliver writes an envelope to any of the sockets and starts the clock of its
// acknowledgement.
func (h *hub) deliver(e *envelope) {
	h.seq++
	e.seq = h.seq
	for len(h.sockets) > 0 {
		k := h.sockets[h.cfg.Pick(len(h.sockets))]
		e.id = newUUID()
		if !k.send(e.frame()) {
			h.drop(k)
			continue
		}
		e.sentTo = k
		h.waiting[e.id] = e
		e.timer = time.AfterFunc(h.cfg.AckTimeout, func() {
			h.locked(func() {
				if h.waiting[e.id] == e {
					h.failed(e, "timeout")
				}
			})
		})
		return
	}
	if e.answered != nil {
		e.answered <- answer{err: errNoAnswer}
		return
	}
	if e.kind == "events_api" {
		h.queue = append(h.queue, e)
		e.timer = time.AfterFunc(h.queueLives(), func() { h.locked(func() { h.forget(e) }) })
	}
}

// queueLives is how long an event waits for an app that isn't there: as long as Slack
// would go on trying.
func (h *hub) queueLives() time.Duration {
	total := h.cfg.AckTimeout
	for _, d := range h.cfg.RetryDelays {
		total += d
	}
	return total
}

func (h *hub) forget(e *envelope) {
	for i, queued := range h.queue {
		if queued == e {
			h.queue = append(h.queue[:i:i], h.queue[i+1:]...)
			return
		}
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

// failed gives up one attempt: an interaction fails for its person, an event comes again.
func (h *hub) failed(e *envelope, reason string) {
	delete(h.waiting, e.id)
	e.timer.Stop()
	if e.answered != nil {
		e.answered <- answer{err: errNoAnswer}
		return
	}
	h.retryLater(e, reason)
}

func (h *hub) retryLater(e *envelope, reason string) {
	if e.attempt >= len(h.cfg.RetryDelays) {
		return
	}
	next := &envelope{kind: e.kind, payload: e.payload, attempt: e.attempt + 1, reason: reason}
	if delay := h.cfg.RetryDelays[e.attempt]; delay > 0 {
		time.AfterFunc(delay, func() { h.locked(func() { h.deliver(next) }) })
		return
	}
	h.deliver(next)
}

// acked takes an acknowledgement. One that is late, unknown or the second is ignored.
func (h *hub) acked(a ack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.waiting[a.EnvelopeID]
	if e == nil || h.faults.loseAck() {
		return
	}
	delete(h.waiting, e.id)
	e.timer.Stop()
	if e.answered != nil {
		payload := a.Payload
		if trimmed := bytes.TrimSpace(payload); bytes.Equal(trimmed, []byte("{}")) || bytes.Equal(trimmed, []byte("null")) || bytes.Equal(trimmed, []byte(`""`)) {
			payload = nil
		}
		e.answered <- answer{payload: payload}
	}
}

// frame is the envelope as it goes over the wire.
func (e *envelope) frame() []byte {
	out := object{
		"envelope_id": e.id, "type": e.kind, "payload": e.payload,
		"accepts_response_payload": e.kind != "events_api",
	}
	if e.kind == "events_api" {
		out["retry_attempt"], out["retry_reason"] = e.attempt, e.reason
	}
	return encode(out)
}

// encode is JSON without HTML escapes. What is encoded here is made of plain JSON values.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("workspace: " + err.Error())
	}
	return bytes.TrimSpace(buf.Bytes())
}

// disconnect asks every socket to go, with Slack's reason, and closes it: at once, or
// ten seconds after a warning.
func (h *hub) disconnect(reason string) {
	frame := encode(object{"type": "disconnect", "reason": reason, "debug_info": object{"host": "workspace"}})
	for _, k := range h.snapshot() {
		k.send(frame)
		if reason == "warning" {
			time.AfterFunc(10*time.Second, k.close)
		} else {
			k.send(nil) // the writer stops there
		}
	}
}

func (h *hub) snapshot() []*socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sockets)
}

// dropAll breaks every socket without a word.
func (h *hub) dropAll() {
	for _, k := range h.snapshot() {
		k.close()
	}
}

// close ends all deliveries and sockets and waits for the writers.
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
	h.dropAll()
	h.writers.Wait()
}
