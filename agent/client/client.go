package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client sends the requests of one caller to one gateway. The methods of a Client may be called concurrently.
type Client struct {
	// Patience limits how long a request is repeated while the gateway is unreachable or unavailable. [New] sets
	// Patience to one minute, because a gateway restarts within a minute.
	Patience time.Duration

	address string // without a slash at the end
	token   string
	http    *http.Client
}

// Limits of one exchange.
const (
	longestAnswer = 1 << 20          // bytes
	longestWait   = 55 * time.Second // the gateway's limit of one long poll
	graceOfWait   = 15 * time.Second // time for an answer after the end of the long poll
	answerTime    = 30 * time.Second // time for the answer to any other request
)

// New returns a client. The parameter address is the gateway's base URL. It must begin with https, because requests
// carry the token. An http address is allowed for this machine.
func New(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the gateway's address is not a URL such as https://countersign.example.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the gateway's address has a user, a query or a fragment; write only scheme, host and path")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, errors.New("the gateway's address begins with http, which would send the token unencrypted; use https")
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the token is empty, or has characters that no token has")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4
	return &Client{
		Patience: time.Minute,
		address:  strings.TrimRight(address, "/"), token: token,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token must not be sent to another address
		},
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// exchange describes one request to the gateway, and whether the request may be repeated.
type exchange struct {
	method, path string
	key          string // the idempotency key
	etag         string // the ETag that the caller knows; if the request still has it, the answer is empty
	body         []byte
	within       time.Duration // time limit for the answer; zero: answerTime
	repeatable   bool          // a repetition has no second effect
}

// notSentError is the error of a request that did not reach the gateway.
type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

// do performs an exchange, and decodes the answer into out. If a repetition is safe, do repeats a failed request
// until Patience has passed or ctx ends.
func (c *Client) do(ctx context.Context, e exchange, out any) error {
	pause := 200 * time.Millisecond
	var failing time.Time // when the first attempt failed
	for {
		err := c.once(ctx, e, out)
		if failing.IsZero() {
			failing = time.Now()
		}
		after, again := e.retry(err, pause)
		if !again || ctx.Err() != nil || time.Since(failing)+after > c.Patience {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= after {
			return err // the error of the last attempt says more than the error of the context
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(after):
		}
		pause = min(2*pause, 10*time.Second)
	}
}

// retry reports whether to repeat an exchange after an error, and returns the delay.
func (e exchange) retry(err error, pause time.Duration) (time.Duration, bool) {
	var p *Problem
	var notSent notSentError
	after := pause + rand.N(pause/2+1) // random, so that callers whose requests failed at the same time try again at different times
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &p):
		// Each of the three named problems means that the gateway did nothing. After a status of 500 or above, only a
		// repeatable exchange is repeated, because the gateway may have stored the change before the failure. After
		// Paused, no exchange is repeated, because a pause lasts until people end it.
		again := p.Name() == KeyInFlight || p.Name() == TooManyWaiting || p.Name() == TooManyRequests || e.repeatable && p.Status >= 500 && p.Name() != Paused
		return max(after, p.RetryAfter), again
	case errors.As(err, &notSent):
		return after, true
	}
	var malformed *AnswerError
	return after, e.repeatable && !errors.As(err, &malformed)
}

// once performs an exchange without a repetition.
func (c *Client) once(ctx context.Context, e exchange, out any) error {
	within := e.within
	if within == 0 {
		within = answerTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, e.method, c.address+e.path, bytes.NewReader(e.body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json, application/problem+json")
	if e.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if e.key != "" {
		req.Header.Set("Idempotency-Key", e.key)
	}
	if e.etag != "" {
		req.Header.Set("If-None-Match", e.etag)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreached(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, longestAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the gateway's response ended early: %w", err)
	case len(body) > longestAnswer:
		return &AnswerError{"the gateway's response is too long"}
	case e.etag != "" && res.StatusCode == http.StatusNotModified:
		return nil
	case res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted:
		return problem(res, body)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		return &AnswerError{fmt.Sprintf("the response is %q instead of JSON; is this the URL of a gateway?", kind)}
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &AnswerError{"the gateway's response is not the expected JSON"}
	}
	if r, ok := out.(*Request); ok {
		r.etag = res.Header.Get("ETag")
	}
	return nil
}

// unreached wraps an error of the transport. The error text omits the URL that net/http adds, because the text
// already has the gateway's address.
func (c *Client) unreached(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	err = fmt.Errorf("the gateway at %s can't be reached: %w", c.address, err)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return notSentError{err}
	}
	return err
}

// problem reads a problem (RFC 9457). An error response in any other format comes from a proxy between the client and
// the gateway.
func problem(res *http.Response, body []byte) error {
	p := &Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "application/problem+json" {
		var read Problem
		if json.Unmarshal(body, &read) == nil {
			read.Status = res.StatusCode
			p = &read
		}
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.RetryAfter = time.Duration(min(seconds, 24*60*60)) * time.Second
	}
	return p
}
