package workspace

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"countersign/internal/demo/workspace/wire"
)

// ticketLives is how long the URL of apps.connections.open can be dialled.
const ticketLives = time.Minute

// socketQueue bounds the frames that wait for one socket; a reader that is so far
// behind is dead.
const socketQueue = 4096

// connectionsOpen is apps.connections.open.
func (s *Server) connectionsOpen(c *call) (object, *apiError) {
	if s.hub.full() {
		return nil, refuse("too_many_websockets")
	}
	now := s.cfg.machine()
	for ticket, expires := range s.tickets {
		if now.After(expires) {
			delete(s.tickets, ticket)
		}
	}
	ticket := wire.NewSecret()
	s.tickets[ticket] = now.Add(ticketLives)
	query := url.Values{"ticket": {ticket}, "app_id": {s.app.ID}}
	out := object{"url": "ws" + strings.TrimPrefix(c.base, "http") + "/link/?" + query.Encode()}
	if s.hub.overHTTP() { // as in Slack the socket opens, and nothing comes through it
		out["response_metadata"] = object{"messages": []string{"[WARN] Socket Mode is not turned on."}}
	}
	return out, nil
}

var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second,
	ReadBufferSize:   maxAckBytes * 2,
	WriteBufferSize:  64 << 10,
	// Slack's clients say "Origin: https://api.slack.com"; the ticket is the key.
	CheckOrigin: func(*http.Request) bool { return true },
}

// serveSocket turns a ticket into a socket and reads it until it ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	expires, known := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !known || s.cfg.machine().After(expires) {
		http.Error(w, "the ticket was used or is too old: call apps.connections.open again", http.StatusForbidden)
		return
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	sock := &socket{conn: conn, out: make(chan []byte, socketQueue), stop: make(chan struct{})}
	hello := object{
		"type": "hello", "connection_info": object{"app_id": s.app.ID},
		"debug_info": object{"host": "workspace", "started": s.cfg.Now().UTC().Format(time.RFC3339), "build_number": 1, "approximate_connection_time": 18060},
	}
	if !s.hub.add(sock, hello) {
		sock.close()
		return
	}
	s.log.Info("socket open", "sockets", s.hub.count())
	sock.read(s.hub.acked)
	s.hub.remove(sock)
	s.log.Info("socket closed", "sockets", s.hub.count())
}

// socket is one Socket Mode connection. Its writer is the only one that writes to it.
type socket struct {
	conn *websocket.Conn
	out  chan []byte
	once sync.Once
	stop chan struct{}
	done sync.WaitGroup // the writer
}

// send queues a frame; it reports false when the socket is closed or hopelessly behind.
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

// close ends the socket without a closing handshake, as a broken network does.
func (k *socket) close() {
	k.once.Do(func() {
		close(k.stop)
		_ = k.conn.Close() // there is nobody to tell
	})
}

// write sends frames and pings until the socket is closed. The first ping goes out at
// once: clients give up when none comes within their first window.
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

// farewell ends the socket in good order and gives the client a moment to agree.
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

// ack is what an app answers to an envelope.
type ack struct {
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
}

// read hands every acknowledgement on until the socket ends. Frames of 20 KB and more
// are dropped without a word, as Slack drops them.
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
