package delivery

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"countersign/internal/demo/workspace/wire"
)

// socketQueue is how many frames may wait for one socket. If more frames wait, the app is disconnected.
const socketQueue = 4096

var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second,
	ReadBufferSize:   maxAckBytes * 2,
	WriteBufferSize:  64 << 10,
	// Slack's clients send "Origin: https://api.slack.com". ServeSocket needs no check of the origin, because its
	// caller has checked the ticket.
	CheckOrigin: func(*http.Request) bool { return true },
}

// ServeSocket turns a request into a socket and serves it until it ends. hello is the first frame of the socket. If the
// app already has MaxSockets sockets, the socket gets a disconnect message instead of hello, and is closed.
func (h *Hub) ServeSocket(w http.ResponseWriter, r *http.Request, hello map[string]any) {
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has already answered with an error
	}
	k := &socket{conn: conn, out: make(chan []byte, socketQueue), stop: make(chan struct{})}
	if !h.add(k, hello) {
		k.close()
		return
	}
	h.cfg.Log.Info("socket open", "sockets", h.Sockets())
	k.read(h.acked)
	h.remove(k)
	h.cfg.Log.Info("socket closed", "sockets", h.Sockets())
}

// Sockets returns the number of open sockets.
func (h *Hub) Sockets() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sockets)
}

// Drop breaks every socket without a message.
func (h *Hub) Drop() {
	for _, k := range h.snapshot() {
		k.close()
	}
}

// Disconnect sends one of Slack's disconnect messages to every socket, and closes the sockets. If the reason is a
// warning, Disconnect closes each socket ten seconds later. For other reasons, Disconnect closes the sockets
// immediately.
func (h *Hub) Disconnect(reason string) { h.disconnect(reason, h.snapshot()) }

// Refresh asks the oldest socket to reconnect.
func (h *Hub) Refresh() {
	if all := h.snapshot(); len(all) > 0 {
		h.disconnect("refresh_requested", all[:1])
	}
}

func (h *Hub) disconnect(reason string, which []*socket) {
	frame := disconnection(reason)
	for _, k := range which {
		if reason == "warning" {
			k.send(frame)
			time.AfterFunc(10*time.Second, k.close)
			continue
		}
		h.locked(func() { h.forgetSocket(k) })
		k.send(frame)
		k.send(nil) // tells the writer to close the socket after the frame
	}
}

// disconnection returns the frame with which Slack asks an app to disconnect.
func disconnection(reason string) []byte {
	return wire.Encode(object{"type": "disconnect", "reason": reason, "debug_info": object{"host": "workspace"}})
}

func (h *Hub) snapshot() []*socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sockets)
}

// add registers a socket, sends hello, and delivers queued events. If the app has too many sockets, add refuses the
// socket. The caller then reads the socket, and removes the socket at the end.
func (h *Hub) add(k *socket, hello object) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	refused := len(h.sockets) >= MaxSockets
	if refused {
		k.send(disconnection("too_many_websockets"))
		k.send(nil) // tells the writer to close the socket after the frame
	} else {
		h.sockets = append(h.sockets, k)
		hello["num_connections"] = len(h.sockets)
		k.send(wire.Encode(hello))
	}
	k.done.Add(1)
	h.running.Add(2)
	go func() {
		defer h.running.Done()
		k.write(h.cfg.PingInterval)
	}()
	if !refused && !h.urls.Any() {
		h.flush()
	}
	return true
}

// remove unregisters a socket. The socket's unacknowledged envelopes fail immediately. Their events are repeated, and
// people who wait for an interaction get an error.
func (h *Hub) remove(k *socket) {
	defer h.running.Done()
	k.close()
	k.done.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetSocket(k)
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

func (h *Hub) forgetSocket(k *socket) {
	h.sockets = slices.DeleteFunc(h.sockets, func(other *socket) bool { return other == k })
}

// The method "acked" handles an acknowledgement. Late, unknown and repeated acknowledgements are ignored.
func (h *Hub) acked(a ack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.waiting[a.EnvelopeID]; e != nil {
		h.heard(e, a.Payload)
	}
}

// frame returns the envelope as Socket Mode sends it.
func (e *envelope) frame() []byte {
	out := object{
		"envelope_id": e.id, "type": e.kind, "payload": e.payload,
		"accepts_response_payload": e.kind != "events_api",
	}
	if e.kind == "events_api" {
		out["retry_attempt"], out["retry_reason"] = e.attempt, e.reason
	}
	return wire.Encode(out)
}

// socket is one Socket Mode connection. Only its writer goroutine writes to the connection.
type socket struct {
	conn *websocket.Conn
	out  chan []byte
	once sync.Once
	stop chan struct{}
	done sync.WaitGroup // waits for the writer goroutine
}

// send queues a frame. If the socket is closed, or too many frames are queued, send returns false.
func (k *socket) send(frame []byte) bool {
	select {
	case <-k.stop:
		return false
	default:
	}
	select {
	case k.out <- frame:
		return true
	default:
		k.close()
		return false
	}
}

// close ends the socket without a closing handshake, like a broken network.
func (k *socket) close() {
	k.once.Do(func() {
		close(k.stop)
		_ = k.conn.Close() // an error changes nothing, because the socket is closed either way
	})
}

// write sends frames and pings until the socket is closed. The first ping is sent immediately, because clients give up
// if no ping comes soon after the connection opens.
func (k *socket) write(every time.Duration) {
	defer k.done.Done()
	defer k.close()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	ping := func() error {
		return k.conn.WriteControl(websocket.PingMessage, []byte("Ping from local workspace"), time.Now().Add(10*time.Second))
	}
	if ping() != nil {
		return
	}
	for {
		select {
		case <-k.stop:
			return
		case <-ticker.C:
			if ping() != nil {
				return
			}
		case frame := <-k.out:
			if frame == nil {
				k.farewell()
				return
			}
			if k.conn.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil || k.conn.WriteMessage(websocket.TextMessage, frame) != nil {
				return
			}
		}
	}
}

// farewell sends a closing handshake and waits for the answer for a short time.
func (k *socket) farewell() {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if k.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(2*time.Second)) != nil {
		return
	}
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-k.stop: // the reader saw the client's answer
	case <-timer.C:
	}
}

// ack is an app's acknowledgement of an envelope.
type ack struct {
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
}

// read passes every acknowledgement to acked until the socket ends. Like Slack, read silently drops large
// acknowledgements.
func (k *socket) read(acked func(ack)) {
	k.conn.SetReadLimit(1 << 20)
	for {
		kind, raw, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage || len(raw) >= maxAckBytes {
			continue
		}
		var a ack
		if json.Unmarshal(raw, &a) == nil && a.EnvelopeID != "" {
			acked(a)
		}
	}
}
