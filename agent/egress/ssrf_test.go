package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// vectors lists URLs that lead a request to a forbidden address. PORT stands for the port of the listeners on this
// machine.
var vectors = []struct {
	url    string
	stands string // the address to which the name resolves, or which a lenient parser reads
	allow  string // the allow entry that permits the address; empty: the notation is never permitted
	never  bool   // every HTTP client refuses the address
}{
	{url: "http://127.0.0.1:PORT/", allow: "127.0.0.1"},
	{url: "http://127.0.0.2:PORT/", allow: "127.0.0.0/8"},
	{url: "http://127.255.255.254:PORT/", allow: "127.0.0.0/8"},
	{url: "http://localhost:PORT/", allow: "localhost"},
	{url: "http://LOCALHOST:PORT/", allow: "localhost"},
	{url: "http://app.localhost:PORT/", stands: "127.0.0.1", allow: "app.localhost"},
	{url: "http://[::1]:PORT/", allow: "::1"},
	{url: "http://[0:0:0:0:0:0:0:1]:PORT/", allow: "[::1]:PORT"},
	{url: "http://0.0.0.0:PORT/", allow: "0.0.0.0"},
	{url: "http://0.1.2.3:PORT/", allow: "0.0.0.0/8"},
	{url: "http://[::]:PORT/", allow: "::/128"},
	{url: "http://10.0.0.1/", allow: "10.0.0.0/8"},
	{url: "http://172.16.0.1/", allow: "172.16.0.0/12"},
	{url: "http://172.31.255.255/", allow: "172.16.0.0/12"},
	{url: "https://192.168.1.1/", allow: "192.168.1.1"},
	{url: "http://100.64.0.1/", allow: "100.64.0.0/10"},
	{url: "http://100.100.100.200/latest/meta-data/", allow: "100.100.100.200"},
	{url: "http://169.254.169.254/latest/meta-data/iam/security-credentials/", allow: "169.254.169.254"},
	{url: "http://169.254.170.2/v2/credentials", allow: "169.254.0.0/16"},
	{url: "http://168.63.129.16/machine?comp=goalstate", allow: "168.63.129.16"},
	{url: "http://192.0.0.192/opc/v2/instance/", allow: "192.0.0.192"},
	{url: "http://[fd00:ec2::254]/latest/meta-data/", allow: "fd00:ec2::254"},
	{url: "http://[fd20:ce::254]/", allow: "fd20:ce::/32"},
	{url: "http://metadata.google.internal/computeMetadata/v1/", stands: "169.254.169.254", allow: "169.254.169.254"},
	{url: "http://metadata/computeMetadata/v1/", stands: "169.254.169.254", allow: "169.254.169.254"},
	{url: "http://192.0.0.8/", allow: "192.0.0.0/24"},
	{url: "http://192.0.2.1/", allow: "192.0.2.0/24"},
	{url: "http://198.51.100.7/", allow: "198.51.100.0/24"},
	{url: "http://203.0.113.9/", allow: "203.0.113.0/24"},
	{url: "http://192.88.99.1/", allow: "192.88.99.0/24"},
	{url: "http://198.18.0.1/", allow: "198.18.0.0/15"},
	{url: "http://224.0.0.1/", allow: "224.0.0.0/4"},
	{url: "http://240.0.0.1/", allow: "240.0.0.0/4"},
	{url: "http://255.255.255.255/", allow: "255.255.255.255"},
	{url: "http://[fe80::1]/", allow: "fe80::/10"},
	{url: "http://[fe80::1%25lo]/"},
	{url: "http://[fc00::1]/", allow: "fc00::/7"},
	{url: "http://[fd12:3456::1]/", allow: "fd12:3456::/32"},
	{url: "http://[fec0::1]/", allow: "fec0::/10"},
	{url: "http://[ff02::1]/", allow: "ff00::/8"},
	{url: "http://[::ffff:127.0.0.1]:PORT/"},
	{url: "http://[::ffff:7f00:1]:PORT/"},
	{url: "http://[::ffff:169.254.169.254]/"},
	{url: "http://[::127.0.0.1]:PORT/", allow: "::/96"},
	{url: "http://[64:ff9b::7f00:1]/", allow: "64:ff9b::/96, 127.0.0.1"},
	{url: "http://[64:ff9b::a9fe:a9fe]/", allow: "64:ff9b::/96, 169.254.169.254"},
	{url: "http://[64:ff9b:1::1]/", allow: "64:ff9b:1::/48"},
	{url: "http://[2002:7f00:1::]/", allow: "2002::/16"},
	{url: "http://[2001::7f00:1]/", allow: "2001::/32"},
	{url: "http://[2001:2::1]/", allow: "2001:2::/48"},
	{url: "http://[2001:db8::1]/", allow: "2001:db8::/32"},
	{url: "http://[3fff::1]/", allow: "3fff::/20"},
	{url: "http://[100::1]/", allow: "100::/64"},
	{url: "http://[5f00::1]/", allow: "5f00::/16"},
	{url: "http://2130706433:PORT/", stands: "127.0.0.1"},
	{url: "http://0x7f000001:PORT/", stands: "127.0.0.1"},
	{url: "http://0X7F.0.0.1:PORT/", stands: "127.0.0.1"},
	{url: "http://0177.0.0.1:PORT/", stands: "127.0.0.1"},
	{url: "http://017700000001:PORT/", stands: "127.0.0.1"},
	{url: "http://127.1:PORT/", stands: "127.0.0.1"},
	{url: "http://127.0.1:PORT/", stands: "127.0.0.1"},
	{url: "http://0:PORT/", stands: "127.0.0.1"},
	{url: "http://2852039166/latest/meta-data/", stands: "169.254.169.254"},
	{url: "http://0xa9.0xfe.0xa9.0xfe/", stands: "169.254.169.254"},
	{url: "http://127.0.0.1.:PORT/", stands: "127.0.0.1"},
	{url: "http://localhost.:PORT/", stands: "127.0.0.1"},
	{url: "http://127.0.0.1.nip.example:PORT/", stands: "127.0.0.1", allow: "127.0.0.1.nip.example"},
	{url: "http://intranet.example/", stands: "10.1.2.3", allow: "intranet.example"},
	{url: "http://six.example/", stands: "fd00::1", allow: "six.example"},
	{url: "http://mapped.example:PORT/", stands: "::ffff:127.0.0.1", allow: "127.0.0.1"},
	{url: "http://public.example@127.0.0.1:PORT/"},
	{url: "http://public.example:80@127.0.0.1:PORT/"},
	{url: "http://user:secret@localhost:PORT/"},
	{url: "http://localhost:PORT\\@public.example/", never: true},
	{url: "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/"},
	{url: "http://１２７.0.0.1:PORT/"},
	{url: "http://127。0。0。1:PORT/"},
	{url: "file:///etc/passwd", never: true},
	{url: "gopher://127.0.0.1:PORT/_GET", never: true},
	{url: "ftp://127.0.0.1:PORT/", never: true},
	{url: "unix:///var/run/docker.sock", never: true},
	{url: "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", never: true},
	{url: "//127.0.0.1:PORT/", never: true},
	{url: "http:127.0.0.1:PORT/", never: true},
	{url: "http:///latest/meta-data", never: true},
}

// network consists of this machine's listeners, a name server, and a counter of connections.
type network struct {
	t        *testing.T
	port     string
	accepted atomic.Int64 // accepted connections of all listeners
	dialed   atomic.Int64 // addresses that a dialer was about to connect to
	names    names
}

// errNotHere stops the dialer before it connects to an address on another machine.
var errNotHere = errors.New("the test connects to this machine only")

func newNetwork(t *testing.T) *network {
	t.Helper()
	h := &network{t: t}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.serve(first)
	_, h.port, _ = net.SplitHostPort(first.Addr().String())
	for _, host := range []string{"127.0.0.2", "127.255.255.254", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, h.port))
		if err != nil {
			t.Logf("no listener at %s: %v", host, err)
			continue
		}
		h.serve(l)
	}
	for _, v := range vectors {
		if u, err := url.Parse(h.fill(v.url)); err == nil && v.stands != "" {
			h.names.set(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), addrs(v.stands))
		}
	}
	return h
}

// counted counts the connections that a listener accepts.
type counted struct {
	net.Listener
	n *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

func (h *network) serve(l net.Listener) {
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inside") })}
	go s.Serve(counted{l, &h.accepted})
	h.t.Cleanup(func() { s.Close() })
}

func (h *network) fill(s string) string { return strings.ReplaceAll(s, "PORT", h.port) }

// reach records an address just before the connection, and permits only addresses of this machine.
func (h *network) reach(address string) error {
	h.dialed.Add(1)
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Unmap().IsLoopback() {
		return nil
	}
	return errNotHere
}

// connects runs a function. connects returns how many connections the function opens, and to how many addresses its
// dialers were about to connect, as a sum.
func (h *network) connects(do func()) int64 {
	before := h.accepted.Load() + h.dialed.Load()
	do()
	return h.accepted.Load() + h.dialed.Load() - before
}

func (h *network) guard(allow ...string) *Guard {
	h.t.Helper()
	g, err := New(allow...)
	if err != nil {
		h.t.Fatal(err)
	}
	g.resolver, g.passed = h.names.resolver(), h.reach
	return g
}

// client returns a client with a new guard, for one request.
func (h *network) client(allow ...string) *http.Client {
	c := h.guard(allow...).Client(Options{Timeout: 10 * time.Second})
	h.t.Cleanup(c.CloseIdleConnections)
	return c
}

// naive returns a client without the guard. The client's dialer reads numeric hosts as the C library does. Go's
// resolver reads them differently.
func (h *network) naive() *http.Client {
	d := net.Dialer{Resolver: h.names.resolver(), ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error { return h.reach(address) }}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(address)
		if strings.ContainsAny(host[:1], "0123456789") {
			if as := h.names.next(strings.TrimSuffix(host, "."), true); len(as) > 0 {
				address = net.JoinHostPort(as[0].String(), port)
			}
		}
		return d.DialContext(ctx, network, address)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
}

// get sends a request to an address. If there is a response of any status, the error is nil.
func get(c *http.Client, address string) error {
	resp, err := c.Get(address)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// redirector starts a server that redirects to the address in the query.
func redirector(t *testing.T) (address, entry string, hits *atomic.Int64) {
	t.Helper()
	hits = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		// The header is set directly, because http.Redirect would clean the address.
		w.Header()["Location"] = []string{r.URL.Query().Get("to")}
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(s.Close)
	return s.URL, strings.TrimPrefix(s.URL, "http://"), hits
}

// With the guard, no notation, name or redirect causes a connection to this machine, a private network or a cloud's
// metadata service.
func TestSSRF(t *testing.T) {
	h := newNetwork(t)
	away, entry, hits := redirector(t)
	n, connects := 0, int64(0)
	for _, v := range vectors {
		address := h.fill(v.url)
		n += 2
		connects += h.connects(func() {
			if err := get(h.client(), address); err == nil {
				t.Errorf("%s: answered", v.url)
			} else if refused := (*Refused)(nil); !v.never && !errors.As(err, &refused) {
				t.Errorf("%s: %v, which does not say that it was refused", v.url, err)
			}
		})
		before, reached := hits.Load(), h.dialed.Load()
		got := h.connects(func() {
			if err := get(h.client(entry), away+"/?to="+url.QueryEscape(address)); err == nil {
				t.Errorf("redirect to %s: answered", v.url)
			}
		})
		if hits.Load() != before+1 || h.dialed.Load() != reached+1 {
			t.Errorf("redirect to %s: the redirecting server was asked %d times over %d connections", v.url, hits.Load()-before, h.dialed.Load()-reached)
		}
		connects += got - 1 // the connection to the redirecting server is allowed and not counted
	}
	t.Logf("vectors=%d connects=%d", n, connects)
	if n < 40 || connects != 0 {
		t.Errorf("vectors=%d connects=%d; want at least 40 and none", n, connects)
	}
}

// Without the guard, each vector connects. This result proves that TestSSRF can fail. If an allow entry names the
// address, each vector in the usual notation connects through the guard.
func TestSSRFWithoutTheGuard(t *testing.T) {
	h := newNetwork(t)
	for _, v := range vectors {
		if v.never {
			continue
		}
		address := h.fill(v.url)
		if n := h.connects(func() { get(h.naive(), address) }); n == 0 {
			t.Errorf("%s connects nowhere even without the guard, so it tests nothing", v.url)
		}
		if v.allow == "" {
			continue
		}
		var allow []string
		for e := range strings.SplitSeq(h.fill(v.allow), ", ") {
			allow = append(allow, e)
		}
		if n := h.connects(func() { get(h.client(allow...), address) }); n == 0 {
			t.Errorf("%s connects nowhere although %s is allowed: %v", v.url, v.allow, get(h.client(allow...), address))
		}
	}
}

// A name may resolve to a public address during the check, and to this machine during the connection. The client must
// not connect to this machine.
func TestRebinding(t *testing.T) {
	h := newNetwork(t)
	public, here := addrs("93.184.215.14"), addrs("127.0.0.1")
	address := h.fill("http://rebinding.example:PORT/")

	// A client that checks the name, and then resolves it again to connect, can be deceived.
	h.names.set("rebinding.example", public, here)
	looked, err := h.names.resolver().LookupHost(t.Context(), "rebinding.example")
	if err != nil || len(looked) != 1 || looked[0] != "93.184.215.14" {
		t.Fatalf("looked up %v, %v", looked, err)
	}
	if err := get(h.naive(), address); err != nil {
		t.Errorf("without the guard: %v", err)
	}

	h.names.set("rebinding.example", public, here)
	c := h.client()
	accepted := h.accepted.Load()
	if err := get(c, address); !errors.Is(err, errNotHere) {
		t.Errorf("first: %v; want a connection to the public address", err)
	}
	dialed := h.dialed.Load()
	var refused *Refused
	if err := get(c, address); !errors.As(err, &refused) || refused.Permit != "127.0.0.1" {
		t.Errorf("second: %v", err)
	}
	if h.accepted.Load() != accepted || h.dialed.Load() != dialed {
		t.Error("the second answer was connected to")
	}

	// If a name has a public and a private address, only the public address is used.
	h.names.set("rebinding.example", append(append([]netip.Addr{}, here...), public...))
	if err := get(c, address); err == nil || h.accepted.Load() != accepted {
		t.Errorf("of a public and a private address: %v", err)
	}
}

// The client ignores a proxy in the environment, because the dialer would connect to the proxy instead of the checked
// address.
func TestNoProxy(t *testing.T) {
	h := newNetwork(t)
	var once sync.Once
	asked := make(chan struct{})
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { once.Do(func() { close(asked) }) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	h.names.set("public.example", addrs("93.184.215.14"))
	if err := get(h.client(strings.TrimPrefix(proxy.URL, "http://")), "http://public.example/"); !errors.Is(err, errNotHere) {
		t.Errorf("%v; want a connection to the public address", err)
	}
	select {
	case <-asked:
		t.Error("the proxy was asked")
	default:
	}
	tr := h.guard().Transport(Options{}).(*transport)
	if tr.next.Proxy != nil {
		t.Error("a proxy is set")
	}
}
