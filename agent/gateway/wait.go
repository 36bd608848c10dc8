package gateway

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/approvers"
)

// maxWaiting limits the waiting connections of one client.
const maxWaiting = 2000

// Timing of event streams.
const (
	heartbeat = 15 * time.Second // the interval of comments, which keep a connection open while there are no events
	longest   = time.Hour        // the longest duration of a stream; then the caller opens another stream
)

// waits counts the waiting connections of each client.
type waits struct {
	mu sync.Mutex
	of map[string]int
}

func (w *waits) begin(client string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[client] >= maxWaiting {
		return problem{name: "too_many_waiting", status: http.StatusTooManyRequests, title: "Too many connections of this client wait.", again: 10 * time.Second}
	}
	w.of[client]++
	return nil
}

func (w *waits) end(client string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[client]--; w.of[client] == 0 {
		delete(w.of, client)
	}
}

func (w *waits) all() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, of := range w.of {
		n += of
	}
	return n
}

// read answers with the state of a request: immediately, after a wait, or as a stream of events.
func (g *Gateway) read(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	query := r.URL.Query()
	seconds := 0
	for name, values := range query {
		n, err := strconv.Atoi(values[0])
		if name != "wait" || len(values) > 1 || err != nil || n < 0 || n > maxWait {
			return malformed("the only parameter is wait, a whole number from 0 to %d", maxWait)
		}
		seconds = n
	}
	id := r.PathValue("id")
	if wantsEvents(r) {
		return g.stream(w, r, *client, id)
	}
	known := r.Header.Get("If-None-Match")
	now, err := g.until(r.Context(), *client, id, seconds, func(s state) bool {
		if known != "" {
			return !matches(known, s.etag)
		}
		return s.settled()
	})
	if err != nil {
		return err
	}
	if known != "" && matches(known, now.etag) {
		extend(w)
		w.Header().Set("ETag", now.etag)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return now.write(w, http.StatusOK)
}

// matches reports whether the header If-None-Match contains an ETag.
func matches(header, etag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == etag || one == "*" {
			return true
		}
	}
	return false
}

// wantsEvents reports whether the caller wants a stream of events.
func wantsEvents(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if media, _, err := mime.ParseMediaType(one); err == nil && media == "text/event-stream" {
			return true
		}
	}
	return false
}

// settled waits until a request is settled or the time is over, and returns the state of the request.
func (g *Gateway) settled(ctx context.Context, client approvers.Client, id string, seconds int) (state, error) {
	return g.until(ctx, client, id, seconds, state.settled)
}

// until reads a request after each change. It returns when wanted returns true or the time is over.
func (g *Gateway) until(ctx context.Context, client approvers.Client, id string, seconds int, wanted func(state) bool) (state, error) {
	s, err := g.state(ctx, client, id)
	if err != nil || seconds == 0 || wanted(s) {
		return s, err
	}
	if err := g.wait.begin(client.Name); err != nil {
		return s, err
	}
	defer g.wait.end(client.Name)
	changed, stop := g.Callers.Watch(id)
	defer stop()
	over := time.NewTimer(time.Duration(seconds) * time.Second)
	defer over.Stop()
	for {
		// The request may have changed before Watch began to watch it.
		if s, err = g.state(ctx, client, id); err != nil || wanted(s) {
			return s, err
		}
		select {
		case <-changed:
		case <-over.C:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// extend restarts the write deadline, so that a wait before an answer does not shorten the time for sending the
// answer.
func extend(w http.ResponseWriter) {
	// If setting the deadline fails, the write has no deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendWithin))
}

// stream sends the state of a request as an event, and sends another event after each change. The stream ends after
// the last state of the request, after an hour, or when the client's credentials become invalid. An EventSource of a
// browser opens the stream again after its end. If it already has the last state, the answer is 204, and the
// EventSource stops (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (g *Gateway) stream(w http.ResponseWriter, r *http.Request, client approvers.Client, request string) error {
	if err := g.wait.begin(client.Name); err != nil {
		return err
	}
	defer g.wait.end(client.Name)
	changed, stop := g.Callers.Watch(request)
	defer stop()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	lasts := longest
	if !client.Until.IsZero() {
		lasts = min(lasts, client.Until.Sub(g.Now()))
	}
	end := time.NewTimer(lasts)
	defer end.Stop()
	for shown := ""; ; {
		s, err := g.state(r.Context(), client, request)
		if err != nil {
			return err
		}
		id := strings.Trim(s.etag, `"`) // of the event
		if shown == "" && s.over() && r.Header.Get("Last-Event-ID") == id {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if shown == "" {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Accel-Buffering", "no") // for proxies that would buffer the answer
			w.WriteHeader(http.StatusOK)
		}
		if s.etag != shown {
			shown = s.etag
			if err := send(w, fmt.Sprintf("event: request\nid: %s\n%s\n", id, eventLines(s.json()))); err != nil || s.over() {
				return err
			}
		}
		select {
		case <-changed:
		case <-beat.C:
			if err := send(w, ": waiting\n\n"); err != nil {
				return err
			}
			if c, ok := g.Policy().Client(client.Name); !ok || !c.Same(client) {
				return nil // the credentials have become invalid
			}
		case <-end.C:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// eventLines returns JSON data as the lines of an event. CR would end a line of the event. In JSON, CR occurs only as
// white space, so eventLines may replace CR by LF.
func eventLines(data []byte) string {
	lines := strings.FieldsFunc(string(data), func(c rune) bool { return c == '\r' || c == '\n' })
	return "data: " + strings.Join(lines, "\ndata: ") + "\n"
}

// send sends a part of a stream immediately.
func send(w http.ResponseWriter, text string) error {
	extend(w)
	if _, err := w.Write([]byte(text)); err != nil {
		return errSent
	}
	return sent(http.NewResponseController(w).Flush())
}
