package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/testkit"
)

// Slow senders are disconnected. They have five seconds for the headers and ten seconds for a whole request. An idle
// connection is closed after two minutes. When the bot stops, it does not wait for such connections.
func TestSlowSenders(t *testing.T) {
	head := "POST " + EventsPath + " HTTP/1.1\r\nHost: bot\r\nContent-Type: application/json\r\nX-Slack-Signature: v0=" + strings.Repeat("0", 64) + "\r\n"
	for name, c := range map[string]struct {
		sent string
		most time.Duration
	}{
		"nothing":      {"", headerWait},
		"half a line":  {"POST /sla", headerWait},
		"half headers": {head, headerWait},
		"half a body":  {head + "X-Slack-Request-Timestamp: 946684800\r\nContent-Length: 100000\r\n\r\n{", requestWait}, // 946684800 is the time at which the faked clock begins
	} {
		synctest.Test(t, func(t *testing.T) {
			l := testkit.NewNetwork()
			h := newHTTP(&recorder{})
			h.Listen = func() (net.Listener, error) { return l, nil }
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- h.Run(ctx) }()
			open := func() net.Conn {
				c, err := l.DialContext(ctx, "", "")
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			slow := open()
			began := time.Now()
			go func() {
				_, _ = io.WriteString(slow, c.sent)
				for c.sent != "" && c.most == requestWait { // sends one more letter each second
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

			still := open() // stays open while the bot stops
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
