package egress

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ErrTooLarge says that an answer's body is larger than the caller wanted to read.
var ErrTooLarge = errors.New("the answer is too large")

// ErrPacked says that an answer came packed although nobody asked for that.
var ErrPacked = errors.New("the answer is packed, which was not asked for")

// transport checks how each request's address is written, and bounds what comes back.
type transport struct {
	next    *http.Transport
	maxBody int64
}

// RoundTrip sends a request whose address can be meant in one way only.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if refused := odd(req.URL); refused != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		refused.Redirect = req.Response != nil
		return nil, refused
	}
	resp, err := t.next.RoundTrip(req)
	if refused := (*Refused)(nil); errors.As(err, &refused) && req.Response != nil {
		again := *refused // requests that wait for the same connection share the error
		again.Redirect = true
		return nil, &again
	}
	if err != nil {
		return nil, err
	}
	if packed := resp.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		resp.Body.Close()
		return nil, ErrPacked
	}
	if t.maxBody >= 0 && resp.Body != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &bounded{body: resp.Body, left: t.maxBody}
	}
	return resp, nil
}

// CloseIdleConnections closes the connections that are kept for later requests.
func (t *transport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// bounded gives so many bytes of a body and then an error, if there are more.
type bounded struct {
	body io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more, to see whether there is more
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), ErrTooLarge
		b.left = -1
		return n, err
	}
	b.left -= int64(n)
	return n, err
}

func (b *bounded) Close() error { return b.body.Close() }

// carried are the headers that go along to another host. Whatever else there is may be a secret, or quote one, as Referer does.
var carried = map[string]bool{"Accept": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true}

// follow decides about a redirect before it is followed. Its address is checked by the transport, like the first.
//
//   - A request that only reads follows up to MaxRedirects of them. Where host, port or scheme change, it goes on without the headers that may be secret, for good.
//   - One that writes is never turned into one that reads: a 301, 302 or 303 is the answer that the caller gets. A 307 or 308 asks for the same request
//     again, and gets it from the same host, port and scheme only.
//   - From https to http nothing is followed.
func follow(next *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	host := next.URL.Hostname()
	if writes(first.Method) {
		if next.Method != first.Method {
			return http.ErrUseLastResponse
		}
		if origin(next.URL) != origin(first.URL) {
			return &Refused{Host: host, Reason: "is another place than the one that the request was allowed for, and it writes", Redirect: true}
		}
	}
	switch {
	case len(via) > MaxRedirects:
		return &Refused{Host: host, Reason: fmt.Sprintf("comes after %d redirects, which are as many as are followed", MaxRedirects), Redirect: true}
	case last.URL.Scheme == "https" && next.URL.Scheme == "http":
		return &Refused{Host: host, Reason: "was to be reached without TLS after a place with it", Redirect: true}
	}
	elsewhere := func(r *http.Request) bool { return origin(r.URL) != origin(first.URL) }
	if elsewhere(next) || slices.ContainsFunc(via, elsewhere) {
		maps.DeleteFunc(next.Header, func(name string, _ []string) bool { return !carried[name] })
	}
	return nil
}

func writes(method string) bool {
	return method != "" && method != http.MethodGet && method != http.MethodHead
}

// origin is what has to stay the same for secrets to go along.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
