package workspace

import (
	"context"
	"errors"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// use changes the URLs of deliveries, or switches to sockets. Queued events are sent at once.
func (h *hub) use(urls RequestURLs) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.urls, h.away = urls, false
	if urls.any() {
		h.flush()
	}
}

// connected reports whether the app is reachable: it has an open socket, or it answered the last request.
func (h *hub) connected() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.urls.any() {
		return !h.away
	}
	return len(h.sockets) > 0
}

// overHTTP reports whether the app has request URLs.
func (h *hub) overHTTP() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.urls.any()
}

// timedOut returns Slack's code for an app that did not acknowledge in time.
func (h *hub) timedOut() string {
	if h.urls.any() {
		return "http_timeout"
	}
	return "timeout"
}

// post sends an envelope to its request URL, and waits for the answer in a goroutine.
func (h *hub) post(e *envelope) {
	to := h.urls.of(e)
	if to == "" {
		if e.answered != nil {
			e.answered <- answer{err: errNoAnswer}
		}
		return
	}
	e.id = wire.NewUUID()
	h.await(e)
	r := outboundOf(e, to)
	h.running.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, h.cfg.AckTimeout)
		defer cancel()
		got, err := h.requests.do(ctx, r)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.away = errors.Is(err, errUnreachable)
		if h.waiting[e.id] != e {
			return // the envelope was given up
		}
		switch {
		case err == nil:
			h.heard(e, got.payload())
		case errors.Is(err, context.DeadlineExceeded): // the ack timeout reports this
		case got.noRetry:
			h.settled(e)
		default:
			h.failed(e, retryReason(err))
		}
	})
}

// await starts the ack timeout of an envelope.
func (h *hub) await(e *envelope) {
	h.waiting[e.id] = e
	e.timer = time.AfterFunc(h.cfg.AckTimeout, func() {
		h.locked(func() {
			if h.waiting[e.id] == e {
				h.failed(e, h.timedOut())
			}
		})
	})
}
