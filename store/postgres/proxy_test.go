package postgres_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a store and the server. It counts round trips, and cuts connections.
type proxy struct {
	listener net.Listener
	server   string
	trips    atomic.Int64 // how often a client has asked and then waited
	mu       sync.Mutex
	cut      func(statement string) cutting // asked for each statement that is executed; nil: nothing is cut
	lines    map[net.Conn]bool
}

// cutting says what happens to a connection.
type cutting int

const (
	pass    cutting = iota
	before          // cut before the server gets the round trip
	after           // cut after the server has answered it, before the client gets the answer
	holding         // the server does not get it, and its side stays open; the client's side is cut
)

// through starts a proxy, and returns it with the address of the database through it.
func through(t testing.TB, database string) (*proxy, string) {
	t.Helper()
	begin(t)
	if server.own == nil {
		t.Skip("needs a server of its own")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	direct, err := url.Parse(server.own.TCP(database))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{server: direct.Host, lines: map[net.Conn]bool{}}
	direct.Host = l.Addr().String()
	p.listen(t, l)
	return p, direct.String()
}

// listen takes connections until the test ends or the listener is closed.
func (p *proxy) listen(t testing.TB, l net.Listener) {
	p.listener = l
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
		p.cutAll()
		wg.Wait()
	})
}

// cutAll cuts every connection.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.lines {
		c.Close()
	}
}

func (p *proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines[c] = true
}

// when sets what is cut; nil: nothing.
func (p *proxy) when(cut func(statement string) cutting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *proxy) decide(statements []string) cutting {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range statements {
		if p.cut == nil {
			break
		}
		if c := p.cut(s); c != pass {
			return c
		}
	}
	return pass
}

// carry carries one connection.
func (p *proxy) carry(client net.Conn) {
	defer client.Close()
	upstream, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer upstream.Close()
	p.keep(client)
	p.keep(upstream)
	var swallow atomic.Bool
	ready := make(chan struct{}, 1) // the server has answered
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer client.Close()
		for {
			m, err := readMessage(upstream, true)
			if err != nil {
				return
			}
			if swallow.Load() {
				if m[0] == 'Z' {
					ready <- struct{}{}
				}
				continue
			}
			if _, err := client.Write(m); err != nil {
				return
			}
		}
	})
	defer upstream.Close()
	if m, err := readMessage(client, false); err != nil {
		return
	} else if _, err := upstream.Write(m); err != nil {
		return
	}
	prepared := map[string]string{} // of this connection
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
		case 'X':
			return
		default:
			continue
		}
		if m[0] != 'p' {
			p.trips.Add(1)
		}
		how := p.decide(executed)
		switch how {
		case before:
			return
		case holding:
			client.Close()
			// The server's side stays open until everything is cut.
			_, _ = io.Copy(io.Discard, upstream)
			return
		case after:
			swallow.Store(true)
		}
		if _, err := upstream.Write(trip); err != nil {
			return
		}
		if how == after {
			<-ready
			return
		}
		trip, executed = nil, nil
	}
}

// readMessage reads one message of the protocol; the first one of a client has no type.
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
