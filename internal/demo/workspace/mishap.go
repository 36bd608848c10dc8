package workspace

import (
	"encoding/json"
	"time"
)

// Attempt is one attempt to deliver something to the app.
type Attempt struct {
	Kind    string // events_api, interactive or slash_commands
	Number  int    // from 0; only events are tried again
	Payload json.RawMessage
}

// Mishap is a delivery fault of one attempt. The zero Mishap is none.
type Mishap struct {
	Lost  bool          // it does not arrive
	Late  time.Duration // delay of its arrival
	Again time.Duration // delay of a second arrival after the first; zero: arrives once
	Deaf  bool          // its acknowledgement is lost
}

// deliver delivers an envelope to the app, subject to mishaps.
func (h *hub) deliver(e *envelope) {
	if h.cfg.Mishaps == nil {
		h.send(e)
		return
	}
	m := h.cfg.Mishaps(Attempt{Kind: e.kind, Number: e.attempt, Payload: e.payload})
	e.deaf = m.Deaf
	switch {
	case m.Lost && e.answered == nil:
		h.retryLater(e, h.timedOut())
	case m.Lost: // a caller that waits for an answer times out
	case m.Late > 0:
		h.after(m.Late, e)
	default:
		h.send(e)
	}
	if m.Again > 0 && !m.Lost {
		h.after(m.Late+m.Again, &envelope{kind: e.kind, payload: e.payload, attempt: len(h.cfg.RetryDelays), reason: h.timedOut(), deaf: true})
	}
}

func (h *hub) after(d time.Duration, e *envelope) {
	time.AfterFunc(d, func() { h.locked(func() { h.send(e) }) })
}
