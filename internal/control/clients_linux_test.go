package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All clients are served, even if there are three times as many clients as simultaneous tasks.
func TestManyClients(t *testing.T) {
	path := socketPath(t)
	serving(t, path, echo)
	var wg sync.WaitGroup
	for i := range 3 * maxTasks {
		wg.Go(func() {
			var out bytes.Buffer
			err := Client{Path: path}.Do(t.Context(), Call{Task: fmt.Sprintf("t%d", i), In: strings.NewReader("in"), Out: &out})
			if err != nil || !strings.HasPrefix(out.String(), fmt.Sprintf("t%d ", i)) || !strings.HasSuffix(out.String(), "\nin") {
				t.Errorf("client %d: %q, %v", i, out.String(), err)
			}
		})
	}
	wg.Wait()
}

// A task is cancelled when its client disconnects, and when the server stops.
func TestCancel(t *testing.T) {
	path := socketPath(t)
	begun, ended := make(chan struct{}), make(chan error)
	srv := serving(t, path, func(ctx context.Context, _ int, c Call) *Failure {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() { answer <- Client{Path: path}.Do(ctx, Call{Task: "x", Out: io.Discard}) }()
	<-begun
	stop()
	if err := <-answer; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrLost) {
		t.Errorf("the client: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the task: %v", err)
	}

	begun = make(chan struct{})
	go func() { answer <- Client{Path: path}.Do(t.Context(), Call{Task: "x", Out: io.Discard}) }()
	<-begun
	srv.Close()
	if err := <-answer; !errors.Is(err, ErrLost) {
		t.Errorf("the client of a server that was closed: %v", err)
	}
	<-ended
}

// A task that panics does not stop the server, and its client gets an error.
func TestPanic(t *testing.T) {
	path := socketPath(t)
	serving(t, path, func(ctx context.Context, uid int, c Call) *Failure {
		if c.Task == "bad" {
			panic("a bug")
		}
		return echo(ctx, uid, c)
	})
	if err := (Client{Path: path}).Do(t.Context(), Call{Task: "bad", Out: io.Discard}); !errors.Is(err, ErrLost) {
		t.Errorf("the client: %v", err)
	}
	if err := (Client{Path: path}).Do(t.Context(), Call{Task: "good", Out: io.Discard}); err != nil {
		t.Error(err)
	}
}

// A client that sends invalid data, a header that is too large, or another protocol gets an error. The server runs no
// task for such a client. While other clients stay silent, or stop in the middle of a header, the server continues to
// serve.
func TestBadClients(t *testing.T) {
	path := socketPath(t)
	serving(t, path, func(ctx context.Context, uid int, c Call) *Failure {
		if c.Task != "good" {
			t.Errorf("the task %q is done", c.Task)
		}
		return echo(ctx, uid, c)
	})
	const head = "POST /tasks/bad HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct{ sends, wants string }{
		"nothing":            {"", ""},
		"noise":              {"\x00\x01\x02\r\n\r\n", "400 Bad Request"},
		"half a head":        {head, ""},
		"other protocol":     {head + "Countersign-Protocol: 2\r\nContent-Length: 0\r\n\r\n", "don't understand each other"},
		"no protocol":        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "don't understand each other"},
		"too much":           {head + "X: " + strings.Repeat("x", 4*maxHeader) + "\r\n\r\n", "431 Request Header Fields Too Large"},
		"no task":            {"GET /metrics HTTP/1.1\r\nHost: x\r\nCountersign-Protocol: 1\r\n\r\n", "is supported here"},
		"options that break": {head + "Countersign-Protocol: 1\r\nCountersign-Options: \"\\\r\nContent-Length: 0\r\n\r\n", "can't read the options"},
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, c.sends) // an error is fine, because the server may disconnect the client meanwhile
		if c.wants == "" {
			defer conn.Close() // the client stays connected while the server serves the other clients
			continue
		}
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer, _ := io.ReadAll(conn)
		if !bytes.Contains(answer, []byte(c.wants)) {
			t.Errorf("%s: %q", name, answer)
		}
		conn.Close()
	}
	if err := (Client{Path: path}).Do(t.Context(), Call{Task: "good", Out: io.Discard}); err != nil {
		t.Error(err)
	}
}

// If the server at the socket speaks another protocol, or closes the connection early, the client's error gives this
// cause.
func TestBadServers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nCountersign-Protocol: 1\r\n\r\n"
	for name, c := range map[string]struct {
		sends string
		want  error
	}{
		"nothing":         {"", ErrLost},
		"noise":           {"hello\r\n\r\n", ErrLost},
		"another":         {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", ErrForeign},
		"no outcome":      {ok, ErrLost},
		"half an outcome": {ok + "e\x00\x00\x00\x09{\"code\"", ErrLost},
		"broken outcome":  {ok + "e\x00\x00\x00\x01{", ErrForeign},
		"huge frame":      {ok + "o\xff\xff\xff\xff", ErrForeign},
		"unknown frame":   {ok + "z\x00\x00\x00\x00", ErrForeign},
	} {
		path := socketPath(t)
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			conn.Read(make([]byte, 4096))
			io.WriteString(conn, c.sends)
		}()
		if err := (Client{Path: path}).Do(t.Context(), Call{Task: "x", Out: io.Discard}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		l.Close()
	}
}

// Clients that connect and send nothing do not delay other clients. Even with many silent clients, the server runs a
// command before their time limit ends. The server drops the connections that have been silent for longest.
func TestIdleClients(t *testing.T) {
	const idle = 2000
	path := socketPath(t)
	begun, release := make(chan struct{}), make(chan struct{})
	serving(t, path, func(ctx context.Context, uid int, c Call) *Failure {
		if c.Task == "at work" {
			close(begun)
			<-release
		}
		return echo(ctx, uid, c)
	})
	working := make(chan error, 1)
	go func() { working <- Client{Path: path}.Do(t.Context(), Call{Task: "at work", Out: io.Discard}) }()
	<-begun
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range idle {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), headerTime/2) // so that none of the silent connections has reached its own time limit yet
	defer cancel()
	began := time.Now()
	if err := (Client{Path: path}).Do(ctx, Call{Task: "good", Out: io.Discard}); err != nil {
		t.Fatal(err)
	}
	t.Logf("with %d idle connections a command took %s", idle, time.Since(began).Round(time.Millisecond))
	dropped := 0
	for i, c := range conns {
		raw, err := c.(*net.UnixConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		failed := raw.Control(func(fd uintptr) { _, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT) })
		if failed == nil && !errors.Is(err, unix.EAGAIN) {
			dropped++
			if i != dropped-1 {
				t.Fatalf("connection %d was dropped, and an earlier one was not", i)
			}
		}
	}
	if dropped < idle-maxWaiting {
		t.Errorf("%d of %d connections were dropped", dropped, idle)
	}
	close(release)
	if err := <-working; err != nil {
		t.Errorf("a task that was under way: %v", err)
	}
}
