package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits of one exchange.
const (
	// MaxRedirects is the maximum number of redirects that a client follows.
	MaxRedirects = 5
	// MaxHeader is the maximum size of a response's header, in bytes.
	MaxHeader = 64 << 10
	// MaxBody is the default maximum size of a response's body, in bytes.
	MaxBody = 32 << 20

	connectTimeout = 10 * time.Second
	idleTimeout    = 60 * time.Second
)

// Guard decides to which addresses connections may be made. Guard is safe for concurrent use.
type Guard struct {
	permits  []Permit
	resolver *net.Resolver              // nil: the system's resolver
	passed   func(address string) error // for tests: called with each admitted address before the connection
}

// New returns a guard that permits the public internet and the given entries ([ParsePermit]).
func New(allow ...string) (*Guard, error) {
	g := &Guard{}
	for _, entry := range allow {
		p, err := ParsePermit(entry)
		if err != nil {
			return nil, fmt.Errorf("allow: %.80q: %w", entry, err)
		}
		g.permits = append(g.permits, p)
	}
	return g, nil
}

// Options has the limits of a client.
type Options struct {
	// Timeout limits each request with its redirects and the reading of the body. If Timeout is zero, only the
	// caller's context limits the request. Streams need a zero Timeout.
	Timeout time.Duration
	// MaxBody limits the body of each response, in bytes. A read beyond the limit returns [ErrTooLarge]. Zero means
	// the constant MaxBody. A negative value means no limit. Use a negative value for streams whose reader sets its
	// own limits.
	MaxBody int64
}

// Client returns a client whose connections, including redirects, all go through the guard. Client keeps no cookies.
func (g *Guard) Client(o Options) *http.Client {
	return &http.Client{Transport: g.Transport(o), CheckRedirect: follow, Timeout: o.Timeout}
}

// Transport returns the transport that the client of [Guard.Client] uses. The transport does not follow redirects.
// Another client that uses the transport may follow redirects, and the guard checks each redirect. But only the client
// of [Guard.Client] removes secrets on redirects.
func (g *Guard) Transport(o Options) http.RoundTripper {
	if o.MaxBody == 0 {
		o.MaxBody = MaxBody
	}
	return &transport{maxBody: o.MaxBody, next: &http.Transport{
		Proxy:                  nil, // a proxy would bypass the address check
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a compressed body could expand beyond the limit
		TLSHandshakeTimeout:    connectTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: MaxHeader,
		MaxIdleConnsPerHost:    4,
	}}
}

// Reach connects to the host of a URL, and closes the connection. Reach sends nothing.
func (g *Guard) Reach(ctx context.Context, u *url.URL) error {
	if err := g.CheckURL(u); err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := g.dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// hostKey is the context key of the host name of a connection.
type hostKey struct{}

// dial connects to host:port. The dialer resolves the name. Before the dialer connects to an address, it calls the
// method control with the address.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" {
		return nil, &Refused{Host: address, Reason: "is not a TCP address"}
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Refused{Host: address, Reason: "is not an address with a port"}
	}
	d := net.Dialer{Timeout: connectTimeout, Resolver: g.resolver, ControlContext: g.control}
	conn, err := d.DialContext(context.WithValue(ctx, hostKey{}, strings.ToLower(host)), network, address)
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		return nil, refused
	}
	return conn, err
}

// control is called before the socket connects, with the exact address.
func (g *Guard) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	host, _ := ctx.Value(hostKey{}).(string)
	at, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return &Refused{Host: host, Reason: "resolves to something other than a TCP address"}
	}
	if err := g.admit(host, at); err != nil {
		return err
	}
	if g.passed != nil {
		return g.passed(address)
	}
	return nil
}

// admit returns an error if a connection to an address is forbidden. The parameter host is the name from the URL.
func (g *Guard) admit(host string, at netip.AddrPort) error {
	if zone := at.Addr().Zone(); zone != "" {
		return &Refused{Host: host, Reason: "leads to an address with a zone"}
	}
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	k, is := kindOf(at.Addr())
	if !is {
		return nil
	}
	for _, p := range g.permits {
		if !p.names(host, at, k) {
			continue
		}
		if inner, ok := embedded(at.Addr()); ok { // an allow entry for a NAT64 gateway does not permit the addresses behind the gateway
			return g.admit(host, netip.AddrPortFrom(inner, at.Port()))
		}
		return nil
	}
	reason := "is " + k.what
	if host != at.Addr().String() {
		reason = fmt.Sprintf("resolves to %s, %s", at.Addr(), k.what)
	}
	if k.what == metadata { // the message for metadata does not suggest an allow entry
		return &Refused{Host: host, Reason: reason + ", an address that should not be reached"}
	}
	return &Refused{Host: host, Reason: reason, Permit: at.Addr().String()}
}

// CheckURL checks a URL before a connection. The scheme must be http or https. The URL must have no user name, and
// the host must have the usual spelling. CheckURL does not resolve the host. An error is a [Refused].
func CheckURL(u *url.URL) error {
	if refused := odd(u); refused != nil {
		return refused
	}
	return nil
}

// CheckURL runs all checks of a URL that are possible before the host name is resolved.
func (g *Guard) CheckURL(u *url.URL) error {
	if err := CheckURL(u); err != nil {
		return err
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		port := map[string]uint16{"http": 80, "https": 443}[u.Scheme]
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
			port = uint16(n)
		}
		return g.admit(u.Hostname(), netip.AddrPortFrom(a, port))
	}
	return nil
}

// odd returns an error for a URL with another scheme than http and https, with a user name, or with a spelling that
// parsers could read in different ways.
func odd(u *url.URL) *Refused {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &Refused{Host: host, Reason: "is in a URL whose scheme is neither http nor https"}
	case u.Opaque != "":
		return &Refused{Host: host, Reason: "is in an address without slashes; write https://host/path"}
	case u.User != nil:
		return &Refused{Host: host, Reason: "comes after a user name in the URL; put the credentials into a header"}
	case strings.Contains(u.Host, "%"):
		return &Refused{Host: host, Reason: "is written with a percent sign; write a name, or an address without a zone"}
	}
	if odd := oddHost(host); odd != "" {
		return &Refused{Host: host, Reason: odd}
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(u.Host, "["), host), "]")
	if port := u.Port(); rest != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port || rest != ":"+port {
			return &Refused{Host: host, Reason: "has an invalid port; write a number from 1 to 65535"}
		}
	}
	return nil
}
