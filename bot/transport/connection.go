package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	ackWait = 10 * time.Second
	// If no frame and no ping arrives for the time silence, the bot gives up the connection. Slack pings several times
	// within this time.
	silence = 45 * time.Second
	// farewell is how long the bot reads a connection after Slack asked for a replacement. Slack closes such a
	// connection ten seconds after a warning.
	farewell  = 30 * time.Second
	maxFrame  = 16 << 20
	maxAck    = 20 << 10 // Slack silently drops larger acknowledgements
	socketBuf = 32 << 10 // large enough for most acknowledgements
)

// connection is one WebSocket to Slack. The bot does not use slack-go's own client. When Slack asks for a replacement,
// slack-go's client closes the connection immediately and loses frames in transit
// (docs/adr/0009-the-bot-reads-its-sockets-itself.md).
type connection struct {
	conn    *websocket.Conn
	began   time.Time
	over    chan struct{} // closed when reading has ended
	left    chan struct{} // closed when Slack wants a replacement
	unacked sync.WaitGroup
	greeted atomic.Bool // whether Slack has sent hello

	writing sync.Mutex
	mu      sync.Mutex // guards the deadline for reading, and the fields below
	leaving bool
	stopped bool
}

// frame is one message from Slack on a socket.
type frame struct {
	Type     string          `json:"type"`
	Reason   string          `json:"reason"` // the reason of a disconnect
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`
}

// connect opens a WebSocket with the proxy and the dialer of an HTTP client.
func connect(ctx context.Context, address string, client *http.Client) (*connection, error) {
	dialer := &websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: 30 * time.Second, WriteBufferSize: socketBuf}
	if t, ok := client.Transport.(*http.Transport); ok {
		dialer.Proxy, dialer.NetDialContext, dialer.TLSClientConfig = t.Proxy, t.DialContext, t.TLSClientConfig
	}
	conn, resp, err := dialer.DialContext(ctx, address, http.Header{"Origin": {"https://api.slack.com"}})
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	_ = resp.Body.Close() // the body is empty
	conn.SetReadLimit(maxFrame)
	c := &connection{conn: conn, began: time.Now(), over: make(chan struct{}), left: make(chan struct{})}
	conn.SetPingHandler(func(text string) error {
		c.extendDeadline()
		return conn.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(ackWait))
	})
	// connection.end answers Slack's close frame later, after the last acknowledgement.
	conn.SetCloseHandler(func(int, string) error { return nil })
	c.extendDeadline()
	return c, nil
}

// worked reports whether Slack has accepted the connection, and the connection has lasted for some time.
func (c *connection) worked() bool { return c.greeted.Load() && time.Since(c.began) > steady }

// extendDeadline extends the deadline for reading, because Slack has sent something.
func (c *connection) extendDeadline() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leaving && !c.stopped {
		_ = c.conn.SetReadDeadline(time.Now().Add(silence)) // if the connection is closed, the next read fails
	}
}

// leave records that Slack wants a replacement. The bot reads the connection until Slack closes it.
func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return
	}
	c.leaving = true
	close(c.left)
	_ = c.conn.SetReadDeadline(time.Now().Add(farewell))
}

// wasLeft reports whether Slack wants a replacement for the connection.
func (c *connection) wasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// stop ends reading immediately. Frames that were read before can be acknowledged after this call.
func (c *connection) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
}

// nextFrame reads the next frame.
func (c *connection) nextFrame() (f frame, err error) {
	for {
		kind, raw, err := c.conn.ReadMessage()
		if err != nil {
			return f, err
		}
		c.extendDeadline()
		if kind == websocket.TextMessage && json.Unmarshal(raw, &f) == nil {
			return f, nil
		}
	}
}

var errLargeAck = errors.New("the acknowledgement is larger than Slack accepts")

// ack acknowledges an envelope. payload is the answer, or nil.
func (c *connection) ack(envelope string, payload any) error {
	out := map[string]any{"envelope_id": envelope}
	if payload != nil {
		out["payload"] = payload
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	if len(raw) >= maxAck {
		return fmt.Errorf("%w: %d bytes", errLargeAck, len(raw))
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(ackWait)); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	if err := c.conn.WriteMessage(websocket.TextMessage, raw); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	return nil
}

// end waits until all read frames are handled, and then closes the connection.
func (c *connection) end() {
	c.unacked.Wait()
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second)) // the error is ignored, because Slack may have closed the connection already
	_ = c.conn.Close()
}
