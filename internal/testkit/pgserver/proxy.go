//go:build unix

package pgserver

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards data between a client and a server. Proxy counts round trips, cuts connections, and disturbs the
// network.
type Proxy struct {
	Accepted atomic.Int64 // number of connections of clients
	Trips    atomic.Int64 // number of round trips: how often a client has sent a request and waited for the answer
	Deafen   atomic.Bool  // notifications (NOTIFY) are lost

	listener net.Listener
	direct   *url.URL // the server's own address

	mu      sync.Mutex
	cut     func(statement string) Cutting // called for each statement that is executed; nil: nothing is cut
	lines   map[net.Conn]bool
	network Network
	changed chan struct{} // closed when the network changes
}

// Cutting says whether and when a connection is cut.
type Cutting int

// The values of Cutting.
const (
	Pass   Cutting = iota
	Before         // cut before the server gets the request
	After          // cut after the server has answered, before the client gets the answer
	Hold           // the server does not get the request; the client's side is cut, the server's side stays open
	Hang           // the server does not get the request, and both sides stay open
)

// Network is the state of the network between the client and the server. As with TCP, data that the network holds back
// is not lost. The data arrives as soon as the network lets data pass.
type Network struct {
	Refused    bool          // connections are cut, and new ones are refused
	FromClient bool          // nothing from the client arrives at the server
	FromServer bool          // nothing from the server arrives at the client
	Delay      time.Duration // delay of each round trip
}

// NewProxy starts a proxy to a server. The proxy runs until the test ends.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	direct, err := url.Parse(s.TCP(""))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, direct: direct, lines: map[net.Conn]bool{}, changed: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.carry(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.Set(Network{Refused: true})
		wg.Wait()
	})
	return p
}

// URL returns the address of a database through the proxy.
func (p *Proxy) URL(database string) string {
	u := *p.direct
	u.Host, u.Path = p.listener.Addr().String(), "/"+database
	return u.String()
}

// Set sets the state of the network.
func (p *Proxy) Set(n Network) {
	p.mu.Lock()
	p.network = n
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if n.Refused {
		p.CutAll()
	}
}

// CutAll cuts every connection.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.lines {
		c.Close()
	}
}

// keep stores a connection, so that it can be cut later. If the network refuses connections, keep closes the
// connection.
func (p *Proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines[c] = true
	if p.network.Refused {
		c.Close()
	}
}

func (p *Proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lines, c)
}

// When sets the function that decides which connections are cut. If the function is nil, no connection is cut.
func (p *Proxy) When(cut func(statement string) Cutting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *Proxy) decide(statements []string) Cutting {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	for _, s := range statements {
		if cut == nil {
			break
		}
		if c := cut(s); c != Pass {
			return c
		}
	}
	return Pass
}

// await waits until the network lets data pass in one direction. Data from the client also waits for the delay of the
// network.
func (p *Proxy) await(fromClient bool) {
	for {
		p.mu.Lock()
		n, changed := p.network, p.changed
		p.mu.Unlock()
		if n.Refused || fromClient && !n.FromClient || !fromClient && !n.FromServer {
			if fromClient && n.Delay > 0 {
				time.Sleep(n.Delay)
			}
			return
		}
		<-changed
	}
}

// hang waits until the network changes. If the network refuses connections, hang does not wait.
func (p *Proxy) hang() {
	p.mu.Lock()
	n, changed := p.network, p.changed
	p.mu.Unlock()
	if !n.Refused {
		<-changed
	}
}

// carry forwards the data of one client's connection.
func (p *Proxy) carry(client net.Conn) {
	p.Accepted.Add(1)
	p.keep(client)
	defer p.drop(client)
	first, err := readMessage(client, false)
	if err != nil {
		return
	}
	p.await(true)
	upstream, err := net.Dial("tcp", p.direct.Host)
	if err != nil {
		return
	}
	p.keep(upstream)
	defer p.drop(upstream)
	var swallow atomic.Bool
	ready := make(chan struct{}, 1) // the server has answered
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer client.Close()
		p.answer(client, upstream, &swallow, ready)
	})
	defer upstream.Close()
	defer p.await(true) // while the network holds data, the server does not notice the end of the connection
	if _, err := upstream.Write(first); err != nil {
		return
	}
	prepared := map[string]string{} // the text of this connection's prepared statements, by name
	var trip []byte
	var executed []string
	for {
		m, err := readMessage(client, true)
		if err != nil {
			return
		}
		trip = append(trip, m...)
		switch body := m[5:]; m[0] {
		case 'P': // Parse: name, text
			parts := strings.SplitN(string(body), "\x00", 3)
			prepared[parts[0]] = parts[1]
			continue
		case 'B': // Bind: portal, name
			parts := strings.SplitN(string(body), "\x00", 3)
			executed = append(executed, prepared[parts[1]])
			continue
		case 'Q':
			executed = append(executed, strings.TrimSuffix(string(body), "\x00"))
		case 'S', 'p': // Sync, password
		case 'd', 'c', 'f': // rows of a COPY, and its end
			p.await(true)
			if _, err := upstream.Write(m); err != nil {
				return
			}
			trip = nil
			continue
		case 'X':
			return
		default:
			continue
		}
		if m[0] != 'p' {
			p.Trips.Add(1)
		}
		how := p.decide(executed)
		switch how {
		case Before:
			return
		case Hold:
			client.Close()
			// The connection to the server stays open until all connections are cut.
			_, _ = io.Copy(io.Discard, upstream)
			return
		case Hang:
			p.hang()
			return
		case After:
			swallow.Store(true)
		}
		p.await(true)
		if _, err := upstream.Write(trip); err != nil {
			return
		}
		if how == After {
			<-ready
			return
		}
		trip, executed = nil, nil
	}
}

// answer forwards the data that the server sends. While the flag swallow is true, the client receives no data. In this
// case, answer sends a value to the channel ready at the end of each of the server's answers.
func (p *Proxy) answer(client, upstream net.Conn, swallow *atomic.Bool, ready chan<- struct{}) {
	for {
		m, err := readMessage(upstream, true)
		switch {
		case err != nil:
			return
		case swallow.Load():
			if m[0] == 'Z' {
				ready <- struct{}{}
			}
			continue
		case m[0] == 'A' && p.Deafen.Load():
			continue
		}
		p.await(false)
		if _, err := client.Write(m); err != nil {
			return
		}
	}
}

// readMessage reads one message of PostgreSQL's protocol. The first message of a client has no type.
func readMessage(r io.Reader, typed bool) ([]byte, error) {
	head := make([]byte, 4, 512)
	if typed {
		head = head[:5]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
	m := append(head, make([]byte, size)...)
	_, err := io.ReadFull(r, m[len(head):])
	return m, err
}
