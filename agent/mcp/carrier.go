package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"countersign/agent/egress"
	"countersign/agent/jsonobject"
	"countersign/config"
	"countersign/internal/tracing"
)

// carrier is an http.RoundTripper for one connection. It passes all messages through the tap.
type carrier struct {
	next    http.RoundTripper
	tap     *tap
	limits  limits
	at      *url.URL
	headers http.Header
	refused atomic.Int64 // status code of the last refused request
	lost    atomic.Bool  // the server does not know the session any more
	streams atomic.Int64 // number of streams with an event id of streamID
	broken  func()       // called when a request fails, because the server may have restarted with other tools
}

// errElsewhere is the error for a redirect to another scheme or host, and for too many redirects. The client does not
// follow a redirect to another host, because the headers may be sent only to the server in the policy.
var errElsewhere = errors.New("the server redirects to another URL, and the bot does not follow; if that URL is right, write it in the policy")

// newCarrier returns the HTTP client for a server's address. It also returns plain, a client for the sign-in that does
// not send the policy's headers.
func newCarrier(s config.Server, address string, headers http.Header, t *tap, l limits) (c *carrier, client, plain *http.Client, err error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, nil, nil, errors.New("the key url is not a URL such as https://crm.example.com/mcp; if it contains an environment variable, check the variable's value")
	}
	guard, err := egress.New(s.Allow...)
	if err != nil {
		return nil, nil, nil, err
	}
	c = &carrier{next: guard.Transport(egress.Options{MaxBody: -1}), tap: t, limits: l, at: at, headers: headers}
	client = &http.Client{Transport: c, CheckRedirect: func(r *http.Request, before []*http.Request) error {
		if r.URL.Scheme != at.Scheme || r.URL.Host != at.Host || len(before) >= egress.MaxRedirects {
			return errElsewhere
		}
		return nil
	}}
	return c, client, guard.Client(egress.Options{Timeout: l.start, MaxBody: 1 << 20}), nil
}

// RoundTrip sends one request and returns the response that the SDK receives.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	tracing.Inject(r.Context(), tracing.Header(r.Header))
	for name, values := range c.headers {
		r.Header[name] = values
	}
	switch r.Method {
	case http.MethodPost:
		return c.post(r)
	case http.MethodGet:
		return c.listen(r)
	}
	return c.send(r)
}

// post sends one message to the server.
func (c *carrier) post(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	raw, f, err := c.tap.out(raw)
	if err != nil {
		return nil, err
	}
	id, method := questionOf(raw)
	r.ContentLength = int64(len(raw))
	r.GetBody = nil // without GetBody, net/http does not repeat the request; net/http can't know whether a repetition is safe
	r.Body = &sending{Reader: bytes.NewReader(raw), f: f}
	resp, err := c.send(r)
	if err != nil {
		return nil, err
	}
	if f != nil {
		f.status.Store(int64(resp.StatusCode))
	}
	if resp.StatusCode >= 300 {
		c.refusal(resp, f, id, method)
		return resp, nil
	}
	return c.received(resp, f, id)
}

// questionOf returns the id of an outgoing request as JSON, and its method. For other messages, id is "".
func questionOf(raw []byte) (id, method string) {
	o, err := jsonobject.Read(raw)
	if err != nil || !o.Has("method") {
		return "", ""
	}
	return string(o.Get("id")), o.Text("method")
}

// sending is a request's body. The first read of the body sets f.sent, because after this read, the server may have
// received the request.
type sending struct {
	*bytes.Reader
	f *flight
}

func (s *sending) Read(p []byte) (int, error) {
	if s.f != nil {
		s.f.sent.Store(true)
	}
	return s.Reader.Read(p)
}

func (s *sending) Close() error { return nil }

func (c *carrier) send(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	switch {
	case err != nil && r.Context().Err() == nil && c.broken != nil:
		c.broken()
	case err == nil && resp.StatusCode >= 400 && r.Method == http.MethodPost:
		c.refused.Store(int64(resp.StatusCode))
	}
	return resp, err
}

// streamID begins the ids of events that the carrier adds to streams for unsolicited messages. If several streams in a
// row end without an event id, the SDK ends the connection. But a proxy ends each stream that is idle for some time.
const streamID = "countersign-stream-"

// listen opens the stream for unsolicited messages. If the server does not respond in time, listen returns status
// 405, which means that the server has no such stream. With the id of a server's event, the SDK continues a stream.
func (c *carrier) listen(r *http.Request) (*http.Response, error) {
	last := r.Header.Get("Last-Event-ID")
	anew := last == "" || strings.HasPrefix(last, streamID)
	if anew {
		r.Header.Del("Last-Event-ID") // the server does not know this id
	}
	ctx, cancel := context.WithCancel(r.Context())
	slow := time.AfterFunc(c.limits.stream, cancel)
	resp, err := c.send(r.WithContext(ctx))
	if !slow.Stop() && r.Context().Err() == nil {
		if err == nil {
			resp.Body.Close()
		}
		cancel()
		return &http.Response{
			StatusCode: http.StatusMethodNotAllowed, Status: "405 Method Not Allowed", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = ending{resp.Body, cancel}
	resp, err = c.received(resp, nil, "")
	if err != nil {
		return nil, err
	}
	if e, ok := resp.Body.(*events); ok && anew {
		e.left = fmt.Appendf(nil, "id: %s%d\n\n", streamID, c.streams.Add(1))
	}
	return resp, nil
}

type ending struct {
	io.ReadCloser
	end func()
}

func (e ending) Close() error {
	e.end()
	return e.ReadCloser.Close()
}

// received passes the content of a response through the tap. The tap checks each message.
func (c *carrier) received(resp *http.Response, f *flight, id string) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300:
		resp.Body = ending{limited(resp.Body, 64<<10), func() {}}
	case kind == "text/event-stream":
		resp.Body = newEvents(resp.Body, c.limits, func(raw []byte) []byte { return c.tap.in(raw, f) })
	case kind == "application/json":
		raw, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.limits.message)+1))
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("the server's response ended too early: %w", err)
		}
		var seen []byte
		if len(raw) > 0 && len(raw) <= c.limits.message { // an acknowledged notification has no content
			seen = c.tap.in(raw, f)
		}
		if seen == nil && id != "" { // the response has no answer, and the server will not send one later
			if p := c.tap.take(id); p != nil {
				seen = p.refuse(id, "the server's answer can't be used: it answers another request, is too large, or is not an answer at all")
			}
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(seen)), int64(len(seen))
	default:
		resp.Body = ending{limited(resp.Body, 64<<10), func() {}}
	}
	return resp, nil
}

// refusal replaces the body of a response whose status is not a success. If the body is a JSON-RPC error, it passes
// through the tap. If the response to a call has no such body, the SDK gets one. Otherwise, the SDK would end the
// connection, and with it all other calls.
func (c *carrier) refusal(resp *http.Response, f *flight, id, method string) {
	session := resp.Request.Header.Get("Mcp-Session-Id") != "" && method != "server/discover" && method != "subscriptions/listen"
	missing := resp.StatusCode == http.StatusNotFound && session // the SDK then ends the connection
	signIn := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	if id == "" || signIn || f == nil && !missing {
		resp.Body = ending{limited(resp.Body, 64<<10), func() {}}
		return
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	raw, _ := io.ReadAll(limited(resp.Body, 64<<10)) // a body that can't be read is like a body without an error
	resp.Body.Close()
	o, err := jsonobject.Read(raw)
	code := string(o.Object("error").Get("code"))
	said := kind == "application/json" && err == nil && code != ""
	var body []byte
	if said && resp.StatusCode < 500 && f != nil {
		body = c.tap.in(o.With("id", json.RawMessage(id)).Bytes(), f) // an error may have null as its id
	}
	switch {
	case missing && code != strconv.Itoa(codeNoMethod):
		c.lost.Store(true)
		body = nil // with a body, the SDK would not know that the session is lost
	case body == nil:
		body = failed(id, "the server answers "+resp.Status)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// limited returns a body that ends at the limit. The parameter most is the limit in bytes.
func limited(body io.ReadCloser, most int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, most), body}
}
