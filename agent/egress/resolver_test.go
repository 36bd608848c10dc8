package egress

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// names is a name server in this process. Each query for a name gets the next answer in its list. After the last
// answer, queries get the last answer.
type names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
}

func (n *names) set(name string, answers ...[]netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = map[string][][]netip.Addr{}
	}
	n.answers[name] = answers
}

// next returns the current addresses of a name. A look-up sends one query for IPv6 and one for IPv4. Only the query for
// IPv4 moves to the next answer.
func (n *names) next(name string, ipv4 bool) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := n.answers[name]
	if len(left) == 0 {
		return nil
	}
	if ipv4 && len(left) > 1 {
		n.answers[name] = left[1:]
	}
	return left[0]
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.serve(ours)
		return theirs, nil
	}}
}

// serve answers DNS queries over TCP.
func (n *names) serve(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		a := n.answer(q)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

func (n *names) answer(q []byte) []byte {
	var labels []string
	i := 12
	for q[i] != 0 {
		labels = append(labels, string(q[i+1:i+1+int(q[i])]))
		i += 1 + int(q[i])
	}
	kind := binary.BigEndian.Uint16(q[i+1:])
	addrs := n.next(strings.ToLower(strings.Join(labels, ".")), kind == 1)
	var records []byte
	count := uint16(0)
	for _, a := range addrs {
		if (kind == 1) != a.Is4() || (kind != 1 && kind != 28) {
			continue
		}
		records = append(records, 0xc0, 12)
		records = binary.BigEndian.AppendUint16(records, kind)
		records = append(records, 0, 1, 0, 0, 0, 0)
		records = binary.BigEndian.AppendUint16(records, uint16(a.BitLen()/8))
		records = append(records, a.AsSlice()...)
		count++
	}
	out := append([]byte{}, q[:2]...)
	code := byte(0x80)
	if len(addrs) == 0 {
		code |= 3 // response code: the name does not exist
	}
	out = append(out, 0x81, code, 0, 1)
	out = binary.BigEndian.AppendUint16(out, count)
	out = append(out, 0, 0, 0, 0)
	out = append(out, q[12:i+5]...)
	return append(out, records...)
}

func addrs(ss ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range ss {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestNameServerOfTheTests(t *testing.T) {
	var n names
	n.set("a.example", addrs("192.0.2.1"), addrs("192.0.2.2"))
	for _, want := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.2"} {
		got, err := n.resolver().LookupHost(t.Context(), "a.example")
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
	if _, err := n.resolver().LookupHost(t.Context(), "b.example"); err == nil {
		t.Error("an unknown name resolves to an address")
	}
}
