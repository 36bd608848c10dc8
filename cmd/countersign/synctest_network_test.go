package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
)

// wire is a network to one server. wire consists of pipes, and works in faked time. The test can cut the wire.
type wire struct {
	calls chan net.Conn
	over  chan struct{}

	mu    sync.Mutex
	state wireState
	open  map[net.Conn]bool
}

// wireState says what happens to new connections.
type wireState int

const (
	wireWorks wireState = iota
	wireRefuses
	wireSilent // nobody ever answers
)

func newWire() *wire {
	return &wire{calls: make(chan net.Conn), over: make(chan struct{}), open: map[net.Conn]bool{}}
}

// Accept returns the server's end of the next connection.
func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.calls:
		return c, nil
	case <-w.over:
		return nil, net.ErrClosed
	}
}

// Close stops listening.
func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.over:
	default:
		close(w.over)
	}
	return nil
}

// Addr returns the address at which the wire seems to listen.
func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial opens a connection, as a transport's DialContext.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w.mu.Lock()
	state := w.state
	w.mu.Unlock()
	switch state {
	case wireRefuses:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case wireSilent:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	here := &wired{near, w}
	w.mu.Lock()
	w.open[here] = true
	w.mu.Unlock()
	select {
	case w.calls <- far:
		return here, nil
	case <-w.over:
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("the server is gone"), here.Close())
}

// become sets what happens to new connections, and breaks all existing connections.
func (w *wire) become(s wireState) {
	w.mu.Lock()
	w.state = s
	open := slices.Collect(maps.Keys(w.open))
	w.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

// wired is one end of a connection.
type wired struct {
	net.Conn
	w *wire
}

func (c *wired) Close() error {
	c.w.mu.Lock()
	delete(c.w.open, c)
	c.w.mu.Unlock()
	return c.Conn.Close()
}
