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

// ErrTooLarge means that a response's body exceeds the limit.
var ErrTooLarge = errors.New("the response is too large")

// ErrPacked means that a response is compressed although the request did not ask for compression.
var ErrPacked = errors.New("the response is compressed, which was not requested")

// transport checks the spelling of each request's URL, and limits the response.
type transport struct {
	next    *http.Transport
	maxBody int64
}

// RoundTrip sends a request if its URL is unambiguous.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if refused := odd(req.URL); refused != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		refused.Redirect = req.Response != nil
		return nil, refused
	}
	if req.Header.Get("Accept-Encoding") == "" { // without the header, the server may compress its answer
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := t.next.RoundTrip(req)
	if refused := (*Refused)(nil); errors.As(err, &refused) && req.Response != nil {
		again := *refused // a copy, because requests that wait for the same connection share the error
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

// bounded reads a body up to a limit. If the body is longer, a read beyond the limit returns an error.
type bounded struct {
	body io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more, to detect a longer body
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

// carried lists the only headers that a redirect to another host keeps. All other headers may be secrets or, like
// Referer, contain a secret.
var carried = map[string]bool{"Accept": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true}

// follow decides whether to follow a redirect. The transport checks the URL of a redirect like the first URL.
//
//   - At most MaxRedirects redirects are followed.
//   - A request that only reads may be redirected to another host, port or scheme. From then on, all further requests
//     omit headers that may be secret.
//   - A request that writes never becomes a request that reads. A response with status 301, 302 or 303 is returned to
//     the caller. After a 307 or 308, the request is repeated if the host, port and scheme are the same.
//   - Redirects from https to http are not followed.
func follow(next *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	host := next.URL.Hostname()
	if writes(first.Method) {
		if next.Method != first.Method {
			return http.ErrUseLastResponse
		}
		if origin(next.URL) != origin(first.URL) {
			return &Refused{Host: host, Reason: "is another origin (scheme, host or port), to which a request that writes is not redirected", Redirect: true}
		}
	}
	switch {
	case len(via) > MaxRedirects:
		return &Refused{Host: host, Reason: fmt.Sprintf("comes after %d redirects, and no more are followed", MaxRedirects), Redirect: true}
	case last.URL.Scheme == "https" && next.URL.Scheme == "http":
		return &Refused{Host: host, Reason: "would be reached without TLS, although the redirect came over TLS", Redirect: true}
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

// origin returns the scheme, host and port of a URL. If a redirect changes the origin, secrets are removed from the
// request.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
