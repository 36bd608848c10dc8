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
	// MaxRedirects is how many redirects are followed.
	MaxRedirects = 5
	// MaxHeader is the largest header of an answer, in bytes.
	MaxHeader = 64 << 10
	// MaxBody is the largest body of an answer where the caller says nothing, in bytes.
	MaxBody = 32 << 20

	connectTimeout = 10 * time.Second
	idleTimeout    = 60 * time.Second
)

// Guard decides where connections may go. It is for many goroutines.
type Guard struct {
	permits  []Permit
	resolver *net.Resolver              // nil: the machine's
	passed   func(address string) error // for tests: told of each address that passed, just before the connection is made
}

// New makes a guard that permits the public internet and what the entries name ([ParsePermit]).
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

// Options are the bounds of a client.
type Options struct {
	// Timeout bounds each request with its redirects and the reading of the answer. Zero: the caller's context does, which is for streams.
	Timeout time.Duration
	// MaxBody bounds the body of each answer, in bytes: reading on gives [ErrTooLarge]. Zero is the constant MaxBody; negative is no bound, for streams that the
	// reader bounds itself.
	MaxBody int64
}

// Client makes a client whose connections, redirects included, all go through the guard. It keeps no cookies.
func (g *Guard) Client(o Options) *http.Client {
	return &http.Client{Transport: g.Transport(o), CheckRedirect: follow, Timeout: o.Timeout}
}

// Transport makes the client's transport alone. It follows no redirects, so whoever uses it with another client follows them through it again;
// [Guard.Client] also keeps secrets from going along.
func (g *Guard) Transport(o Options) http.RoundTripper {
	if o.MaxBody == 0 {
		o.MaxBody = MaxBody
	}
	return &transport{maxBody: o.MaxBody, next: &http.Transport{
		Proxy:                  nil, // HTTP_PROXY would be connected to instead of what was checked
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // nothing is unpacked, so nothing unpacks to more than was read
		TLSHandshakeTimeout:    connectTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: MaxHeader,
		MaxIdleConnsPerHost:    4,
	}}
}

// hostKey is where the dialer's context holds the name that a connection is for.
type hostKey struct{}

// dial connects to host:port. The name is resolved by the dialer, which asks admit about each address that it is about to connect to.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" {
		return nil, &Refused{Host: address, Reason: "is no TCP address"}
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Refused{Host: address, Reason: "is no address with a port"}
	}
	d := net.Dialer{Timeout: connectTimeout, Resolver: g.resolver, ControlContext: g.control}
	conn, err := d.DialContext(context.WithValue(ctx, hostKey{}, strings.ToLower(host)), network, address)
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		return nil, refused
	}
	return conn, err
}

// control is called with the very address that the socket connects to next.
func (g *Guard) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	host, _ := ctx.Value(hostKey{}).(string)
	at, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return &Refused{Host: host, Reason: "leads to what is no TCP address"}
	}
	if err := g.admit(host, at); err != nil {
		return err
	}
	if g.passed != nil {
		return g.passed(address)
	}
	return nil
}

// admit says whether a connection for a host may go to an address.
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
		if inner, ok := embedded(at.Addr()); ok { // a permitted gateway is no way around the rest
			return g.admit(host, netip.AddrPortFrom(inner, at.Port()))
		}
		return nil
	}
	reason := "is " + k.what
	if host != at.Addr().String() {
		reason = fmt.Sprintf("stands for %s, %s", at.Addr(), k.what)
	}
	if k.what == metadata { // an entry of allow is only for who knows what is there; nobody is told to write one
		return &Refused{Host: host, Reason: reason + ", an address that should not be reached"}
	}
	return &Refused{Host: host, Reason: reason, Permit: at.Addr().String()}
}

// CheckURL says whether an address is one that could be connected to: http or https, no user name, a host that is written in the usual way. It resolves nothing.
// The error is a [Refused].
func CheckURL(u *url.URL) error {
	if refused := odd(u); refused != nil {
		return refused
	}
	return nil
}

// CheckURL says whether an address could be connected to, as far as that can be said without resolving its name.
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

// odd refuses an address that could be meant in two ways.
func odd(u *url.URL) *Refused {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &Refused{Host: host, Reason: "is to be reached by something else than http and https"}
	case u.Opaque != "":
		return &Refused{Host: host, Reason: "is in an address without slashes; write https://host/path"}
	case u.User != nil:
		return &Refused{Host: host, Reason: "comes after a user name in the address; put who you are into a header"}
	case strings.Contains(u.Host, "%"):
		return &Refused{Host: host, Reason: "is written with a percent sign; write a name, or an address without a zone"}
	}
	if odd := oddHost(host); odd != "" {
		return &Refused{Host: host, Reason: odd}
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(u.Host, "["), host), "]")
	if port := u.Port(); rest != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port || rest != ":"+port {
			return &Refused{Host: host, Reason: "has a port that is none; write a number from 1 to 65535"}
		}
	}
	return nil
}
