package testkit

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
)

// Network is a network in memory, with one server. The server uses the Network as its listener, and clients connect
// with DialContext. The connections are pipes, so a Network works in faked time (testing/synctest).
type Network struct {
	dialed chan net.Conn
	closed chan struct{}

	mu    sync.Mutex
	over  bool // the channel closed is closed
	state NetworkState
	open  map[net.Conn]bool // the clients' ends of the open connections
}

// NetworkState says what happens to new connections.
type NetworkState int

const (
	NetworkWorks   NetworkState = iota
	NetworkRefuses              // the server refuses connections
	NetworkSilent               // the server never answers
)

// NewNetwork returns a network that works.
func NewNetwork() *Network {
	return &Network{dialed: make(chan net.Conn), closed: make(chan struct{}), open: map[net.Conn]bool{}}
}

// Accept returns the server's end of the next connection.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.dialed:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Open connections stay open.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.over = true
		close(n.closed)
	}
	return nil
}

// Addr returns the address at which the server seems to listen.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// DialContext connects to the server, whatever the address.
func (n *Network) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	c := &connection{near, n}
	n.mu.Lock()
	state := n.state
	if state == NetworkWorks {
		n.open[c] = true
	}
	n.mu.Unlock()
	switch state {
	case NetworkRefuses:
		return nil, errRefused
	case NetworkSilent:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	err := errRefused
	select {
	case n.dialed <- far:
		return c, nil
	case <-n.closed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, c.Close())
}

var errRefused error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// SetState sets what happens to new connections, and breaks all open connections.
func (n *Network) SetState(s NetworkState) {
	n.mu.Lock()
	n.state = s
	open := slices.Collect(maps.Keys(n.open))
	n.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

// connection is a client's end of a connection.
type connection struct {
	net.Conn
	n *Network
}

func (c *connection) Close() error {
	c.n.mu.Lock()
	delete(c.n.open, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}
