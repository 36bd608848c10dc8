package bot

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/demo/workspace"
	"countersign/store"
)

// pipes is a listener whose connections are pipes, for faked time.
type pipes struct {
	calls chan net.Conn
	over  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.over:
	default:
		close(p.over)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Whoever sends slowly, or nothing, is hung up on: headers have five seconds, a whole request ten, and a connection
// that waits two minutes. The bot's end waits for nobody.
func TestSlowSenders(t *testing.T) {
	head := "POST " + EventsPath + " HTTP/1.1\r\nHost: bot\r\nContent-Type: application/json\r\nX-Slack-Signature: v0=" + strings.Repeat("0", 64) + "\r\n"
	for name, c := range map[string]struct {
		sent string
		most time.Duration
	}{
		"nothing":      {"", headerWait},
		"half a line":  {"POST /sla", headerWait},
		"half headers": {head, headerWait},
		"half a body":  {head + "X-Slack-Request-Timestamp: 946684800\r\nContent-Length: 100000\r\n\r\n{", requestWait}, // where the faked clock begins
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &pipes{calls: make(chan net.Conn), over: make(chan struct{})}
			b := &Bot{Config: Config{Log: slog.New(slog.DiscardHandler), SigningSecret: workspace.DemoSigningSecret, Listen: func() (net.Listener, error) { return l, nil }, Now: time.Now}}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.serveRequests(ctx) }()
			open := func() net.Conn {
				near, far := net.Pipe()
				l.calls <- far
				return near
			}
			slow := open()
			began := time.Now()
			go func() {
				_, _ = io.WriteString(slow, c.sent)
				for c.sent != "" && c.most == requestWait { // and one letter each second
					time.Sleep(time.Second)
					if _, err := io.WriteString(slow, "x"); err != nil {
						return
					}
				}
			}()
			if _, err := io.Copy(io.Discard, slow); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took < c.most-time.Second || took > c.most+time.Second {
				t.Errorf("%s: hung up on after %s; want %s", name, took, c.most)
			}
			slow.Close()

			still := open() // while the bot ends
			_, _ = io.WriteString(still, head)
			began = time.Now()
			stop()
			if err := <-done; err != nil || time.Since(began) > stopWait+time.Second {
				t.Errorf("%s: it ended after %s with %v", name, time.Since(began), err)
			}
			still.Close()
		})
	}
}

// An event that could not be stored is not acknowledged, and the retry, which Slack marks as one, is what is heard of
// it.
func TestRetryIsHeard(t *testing.T) {
	disk := &cramped{}
	h := newHarness(t, overHTTP, func(h *harness) {
		h.wrap = func(s store.Store) store.Store { disk.Store = s; return disk }
	})
	event := asEvent(strings.NewReplacer("T1", "T0001", "U1", "U0100", "C1", "C0001", "UBOT", "U0BOT", " hi", " call search_orders {}").Replace(mention))
	disk.full.Store(true)
	if status, _ := h.sends(event); status != http.StatusServiceUnavailable {
		t.Errorf("what could not be stored is answered with %d", status)
	}
	click := asClick(`{"type":"block_actions","trigger_id":"1.2.3","user":{"id":"U0002"},"team":{"id":"T0001"},"actions":[{"action_id":"approve","value":"x"}]}`)
	if status, _ := h.sends(click); status != http.StatusServiceUnavailable {
		t.Errorf("a click that could not be stored is answered with %d", status)
	}
	disk.full.Store(false)
	if status, _ := h.sends(click); status != http.StatusConflict {
		t.Errorf("the same click again is answered with %d", status)
	}
	event.headers = http.Header{"X-Slack-Retry-Num": {"1"}, "X-Slack-Retry-Reason": {"http_error"}}
	if status, _ := h.sends(event); status != http.StatusOK {
		t.Errorf("the retry is answered with %d", status)
	}
	h.until("what it asks for has run", func() bool { return len(h.runs()) == 1 })
	if !strings.Contains(h.log.String(), "Slack delivers again what was not acknowledged in time") {
		t.Error("the log does not tell of the retry")
	}
}
