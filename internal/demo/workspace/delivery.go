package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// errNoAnswer is shown to a person if the app does not acknowledge in time, or no app is connected.
var errNoAnswer = errors.New("the app did not respond")

// event sends an event to the app, and repeats it until it is acknowledged or the retries are used up. It never
// blocks.
func (h *hub) event(payload json.RawMessage) {
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

// delivered returns the number of deliveries, and reports whether the app has acknowledged all of them.
func (h *hub) delivered() (sent int, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seq, len(h.waiting) == 0 && len(h.queue) == 0
}

// dispatch delivers an envelope for the first time, and applies the fault set for it, if any.
func (h *hub) dispatch(e *envelope) {
	fault, faulty := h.faults.takeDelivery(e.kind)
	if !faulty {
		h.deliver(e)
		return
	}
	switch fault.Fault {
	case FaultLostDelivery:
		if e.answered == nil {
			h.retryLater(e, h.timedOut())
		}
	case FaultLateDelivery:
		time.AfterFunc(fault.delay(), func() { h.locked(func() { h.deliver(e) }) })
	case FaultDuplicateDelivery:
		h.deliver(e)
		h.deliver(&envelope{kind: e.kind, payload: e.payload, attempt: len(h.cfg.RetryDelays), reason: h.timedOut()})
	}
}

// locked runs a timer's function unless the hub has been closed.
func (h *hub) locked(work func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		work()
	}
}

// ask sends an interaction and waits for its acknowledgement, up to the ack timeout. Interactions are not sent again.
func (h *hub) ask(kind string, payload json.RawMessage) (json.RawMessage, error) {
	if h.cfg.App != nil {
		answer, err := h.cfg.App.Ask(kind, payload)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		return answer, nil
	}
	e := &envelope{kind: kind, payload: payload, answered: make(chan answer, 1)}
	h.mu.Lock()
	if h.closed || !h.urls.any() && len(h.sockets) == 0 {
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

// send posts an envelope to its request URL, or writes it to one of the sockets, and starts its ack timeout.
func (h *hub) send(e *envelope) {
	h.seq++
	e.seq = h.seq
	if h.urls.any() {
		h.post(e)
		return
	}
	for len(h.sockets) > 0 {
		k := h.sockets[h.cfg.Pick(len(h.sockets))]
		e.id = wire.NewUUID()
		if !k.send(e.frame()) {
			h.drop(k)
			continue
		}
		e.sentTo = k
		h.await(e)
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

// queueLives is how long an event waits for an unconnected app: as long as Slack would retry.
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

// failed ends one attempt: an interaction fails for its person, an event is sent again.
func (h *hub) failed(e *envelope, reason string) {
	h.settled(e)
	if e.answered != nil {
		e.answered <- answer{err: errNoAnswer}
		return
	}
	h.retryLater(e, reason)
}

// settled stops waiting for an envelope's acknowledgement.
func (h *hub) settled(e *envelope) {
	delete(h.waiting, e.id)
	e.timer.Stop()
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

// acked handles an acknowledgement. Late, unknown and repeated ones are ignored.
func (h *hub) acked(a ack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.waiting[a.EnvelopeID]; e != nil {
		h.heard(e, a.Payload)
	}
}

// heard handles an envelope's acknowledgement, unless a fault loses it.
func (h *hub) heard(e *envelope, payload json.RawMessage) {
	if e.deaf || h.faults.loseAck() {
		return
	}
	h.settled(e)
	if e.answered != nil {
		if trimmed := bytes.TrimSpace(payload); bytes.Equal(trimmed, []byte("{}")) || len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) || bytes.Equal(trimmed, []byte(`""`)) {
			payload = nil
		}
		e.answered <- answer{payload: payload}
	}
}
