package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/redact"
	"countersign/internal/testkit"
)

// A server stops immediately, even if a client holds an unused connection.
func TestUnusedConnectionDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewNetwork()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- serveHTTP(ctx, l, http.NotFoundHandler()) }()
		c, err := l.DialContext(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		synctest.Wait()
		began := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(began) > 500*time.Millisecond {
			t.Errorf("the end took %s: %v", time.Since(began), err)
		}
	})
}

// If a client opens too many connections without sending a request, the server closes the oldest of these connections.
// The client's newer connections stay usable.
func TestTooManyUnusedConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewNetwork()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- serveHTTP(ctx, l, http.NotFoundHandler()) }()
		open := make([]net.Conn, mostUnused+2)
		for i := range open {
			c, err := l.DialContext(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			open[i] = c
			synctest.Wait()
		}
		for i, c := range open {
			err := c.SetReadDeadline(time.Now().Add(time.Millisecond)) // on a pipe that the server has closed, no deadline can be set
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			if closed := !errors.Is(err, os.ErrDeadlineExceeded); closed != (i < 2) {
				t.Errorf("connection %d: closed is %v (%v)", i, closed, err)
			}
		}
		last := open[len(open)-1]
		if err := last.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(last, "GET / HTTP/1.1\r\nHost: countersign\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(last), nil); err != nil || resp.StatusCode != http.StatusNotFound {
			t.Errorf("answered %v, %v", resp, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The server counts the connections of each client address separately.
func TestUnusedConnectionsByAddress(t *testing.T) {
	u := &unusedConnections{open: map[string][]net.Conn{}}
	var flood []*addressed
	for i := range mostUnused + 1 {
		c := &addressed{from: fmt.Sprintf("192.0.2.1:%d", i+1)}
		flood = append(flood, c)
		u.note(c, http.StateNew)
	}
	other := &addressed{from: "192.0.2.2:1"}
	u.note(other, http.StateNew)
	if !flood[0].closed || flood[1].closed || other.closed {
		t.Errorf("closed: %v %v, and of another address %v; want only the oldest of the first address", flood[0].closed, flood[1].closed, other.closed)
	}
	for _, c := range append(flood, other) {
		u.note(c, http.StateClosed)
	}
	if len(u.open) != 0 {
		t.Errorf("%d addresses are left", len(u.open))
	}
}

// addressed is a connection with a remote address.
type addressed struct {
	net.Conn
	from   string
	closed bool
}

func (a *addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}
func (a *addressed) Close() error { a.closed = true; return nil }

// /readyz shows foreign text of a probe on the probe's own line, without secrets and control characters.
func TestReadyzForeignText(t *testing.T) {
	redact.Secrets("the-key-of-the-model")
	foreign := errors.New("HTTP 401: bad key the-key-of-the-model\x1b[31m\u202e\nstore: ok\n")
	status, report := readyz(t.Context(), []probe{
		{name: "store", ready: func(context.Context) error { return nil }},
		{name: "model", ready: func(context.Context) error { return foreign }, notice: true},
	})
	if want := "store: ok\nmodel: HTTP 401: bad key (removed)⟨U+001B⟩[31m⟨U+202E⟩ ⏎ store: ok\n"; status != http.StatusOK || report != want {
		t.Errorf("/readyz answers %d: %q, want %q", status, report, want)
	}
}

// A probe that takes long delays the answer for less than a second, and delays no other probe. Until it ends, answers
// have its last result, if this is not too old. A client that waits longer gets the new result.
func TestReadyzHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var takes time.Duration
		var said error
		set := func(d time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			takes, said = d, err
		}
		slow := func(ctx context.Context) error {
			mu.Lock()
			takes, said := takes, said
			mu.Unlock()
			select {
			case <-ctx.Done():
				return errors.New("no answer within 5s")
			case <-time.After(takes):
				return said
			}
		}
		h := admin([]probe{
			{name: "store", ready: slow},
			{name: "model", ready: slow, notice: true},
			{name: "running", ready: func(ctx context.Context) error { return ctx.Err() }, notice: true},
		}, http.NotFoundHandler())
		asks := func(query string, within time.Duration, status int, words string) {
			t.Helper()
			began := time.Now()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz"+query, nil))
			want := fmt.Sprintf("store: %s\nmodel: %[1]s\nrunning: ok\n", words)
			if took := time.Since(began); took != within || w.Code != status || w.Body.String() != want {
				t.Errorf("after %s /readyz%s answers %d:\n%swant %d after %s:\n%s", took, query, w.Code, w.Body, status, within, want)
			}
		}
		const none = "the check takes long, and has no recent result"
		set(3*time.Second, nil)
		asks("", 800*time.Millisecond, http.StatusServiceUnavailable, none)
		asks("?wait=5", 2200*time.Millisecond, http.StatusOK, "ok") // the same run of the probe
		time.Sleep(10 * time.Second)
		set(time.Hour, nil)
		asks("", 800*time.Millisecond, http.StatusOK, "ok (11s ago; the next check takes long)")
		time.Sleep(5 * time.Second)
		asks("", 800*time.Millisecond, http.StatusServiceUnavailable, "no answer within 5s (2s ago; the next check takes long)")
		time.Sleep(10 * time.Second)
		set(0, errors.New("the disk is full"))
		asks("", 0, http.StatusServiceUnavailable, "the disk is full")
		set(0, nil)
		asks("", 0, http.StatusOK, "ok")
		time.Sleep(2 * resultAge)
		set(time.Hour, nil)
		asks("", 800*time.Millisecond, http.StatusServiceUnavailable, none)
		time.Sleep(probeTimeout) // the probes end
	})
}

// A probe continues if the client goes away, so that the next client gets its result.
func TestReadyzClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		h := admin([]probe{{name: "model", ready: func(ctx context.Context) error {
			runs++
			time.Sleep(4 * time.Second)
			return ctx.Err()
		}}}, http.NotFoundHandler())
		gone, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer leave()
		for _, ctx := range []context.Context{gone, t.Context()} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz?wait=5", nil))
			if ctx != gone && (w.Body.String() != "model: ok\n" || runs != 1) {
				t.Errorf("after %d runs, /readyz answers %s", runs, w.Body)
			}
		}
	})
}

// The bot is ready while the model and the Web API of Slack do not answer, because it can accept deliveries. /readyz says
// what is wrong: the check of a silent model ends before the time of the request.
func TestReadyDuringOutages(t *testing.T) {
	inFakedTime(t, nil, func(b *synctestHarness) {
		b.within(time.Minute, "the bot is ready", func() bool { return b.ready() == 1 })
		probes := b.setup.probes(b.bot.parts)
		var decide []string
		for _, p := range probes {
			if !p.notice {
				decide = append(decide, p.name)
			}
		}
		if want := []string{"store", "deliveries", "policy in force"}; !slices.Equal(decide, want) {
			t.Errorf("these probes decide whether the bot is ready: %q, want %q", decide, want)
		}
		b.model.SetState(testkit.NetworkSilent)
		b.pass(time.Minute) // an earlier result of the check is not used any more
		status, report := readyz(b.ctx, probes)
		if status != http.StatusOK || !strings.Contains(report, "\nmodel: the model's endpoint can't be used: ") || strings.Contains(report, "deadline") {
			t.Errorf("/readyz answers %d: %s", status, report)
		}
	})
}

// /readyz says if the clock of this machine is too far from the database's. The bot stays ready.
func TestReadyWithAWrongClock(t *testing.T) {
	for offset, want := range map[time.Duration]string{
		5 * time.Second: "clock: ok\n",
		time.Hour:       "clock: this machine's clock is 1h0m0s behind the database's: set the clock that is wrong; meanwhile the bot uses the database's time\n",
		-time.Minute:    "clock: this machine's clock is 1m0s ahead of the database's: set the clock that is wrong; meanwhile the bot uses the database's time\n",
	} {
		s := setup{clockOffset: func() time.Duration { return offset }}
		if status, report := readyz(t.Context(), s.clockProbe()); status != http.StatusOK || report != want {
			t.Errorf("with an offset of %s, /readyz answers %d: %s", offset, status, report)
		}
	}
}

func readyz(ctx context.Context, probes []probe) (status int, report string) {
	w := httptest.NewRecorder()
	admin(probes, http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz?wait=5", nil))
	return w.Code, w.Body.String()
}
