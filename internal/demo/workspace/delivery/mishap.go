package delivery

import (
	"encoding/json"
	"time"
)

// Faults returns the delivery faults that are switched on. Each call to a method uses up one fault.
type Faults interface {
	// Delivery returns the fault for the first attempt of a delivery. kind is events_api, interactive or
	// slash_commands.
	Delivery(kind string) Fault
	// LostAck reports whether the next acknowledgement is lost.
	LostAck() bool
}

// Fault is a fault of one delivery. The zero Fault changes nothing.
type Fault struct {
	Lost  bool          // the first attempt does not arrive
	Twice bool          // the delivery arrives twice
	Late  time.Duration // delay of its arrival
}

// Attempt is one attempt to deliver something to the app.
type Attempt struct {
	Kind    string // events_api, interactive or slash_commands
	Number  int    // number of the attempt, from 0; only events have more than one
	Payload json.RawMessage
}

// Mishap is a delivery fault of one attempt. The zero Mishap changes nothing.
type Mishap struct {
	Lost  bool          // the attempt does not arrive
	Late  time.Duration // delay of its arrival
	Again time.Duration // delay after which the same delivery arrives a second time; zero: no second arrival
	Deaf  bool          // the acknowledgement is lost
}

// dispatch makes the first attempt to deliver an envelope. If a fault for deliveries is switched on, dispatch applies
// the fault.
func (h *Hub) dispatch(e *envelope) {
	fault := h.cfg.Faults.Delivery(e.kind)
	switch {
	case fault.Lost && e.answered == nil:
		h.retryLater(e, h.timedOut())
	case fault.Lost: // the caller that waits for the answer times out
	case fault.Late > 0:
		time.AfterFunc(fault.Late, func() { h.locked(func() { h.deliver(e) }) })
	default:
		h.deliver(e)
		if fault.Twice {
			h.deliver(h.repeated(e))
		}
	}
}

// deliver makes one attempt to deliver an envelope. If the attempt has a mishap, deliver applies the mishap.
func (h *Hub) deliver(e *envelope) {
	if h.cfg.Mishaps == nil {
		h.send(e)
		return
	}
	m := h.cfg.Mishaps(Attempt{Kind: e.kind, Number: e.attempt, Payload: e.payload})
	e.deaf = m.Deaf
	switch {
	case m.Lost && e.answered == nil:
		h.retryLater(e, h.timedOut())
	case m.Lost: // the caller that waits for the answer times out
	case m.Late > 0:
		h.sendAfter(m.Late, e)
	default:
		h.send(e)
	}
	if m.Again > 0 && !m.Lost {
		again := h.repeated(e)
		again.deaf = true
		h.sendAfter(m.Late+m.Again, again)
	}
}

// The method "repeated" returns a copy of an envelope. The copy is sent only once, even if the app does not acknowledge
// it.
func (h *Hub) repeated(e *envelope) *envelope {
	return &envelope{kind: e.kind, payload: e.payload, attempt: len(h.cfg.RetryDelays), reason: h.timedOut()}
}

func (h *Hub) sendAfter(d time.Duration, e *envelope) {
	time.AfterFunc(d, func() { h.locked(func() { h.send(e) }) })
}
