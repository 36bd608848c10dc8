package delivery

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"countersign/internal/demo/workspace/wire"
)

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"

	maxRedirects = 2       // as in Slack
	maxAnswer    = 1 << 20 // bytes of an answer; our own limit
)

// The reasons why a request is not acknowledged. A timeout is not in this list, because the ack timeout handles it.
var (
	errUnreachable = errors.New("there is no connection to the app")
	errRedirects   = errors.New("the app redirects more than twice")
	errStatus      = errors.New("the app answers with an error")
)

// retryReason returns Slack's code for the reason of a retry.
func retryReason(err error) string {
	switch {
	case errors.Is(err, errRedirects):
		return "too_many_redirects"
	case errors.Is(err, errStatus):
		return "http_error"
	}
	return "connection_failed"
}

// post sends an envelope to its request URL, and waits for the answer in a goroutine.
func (h *Hub) post(e *envelope) {
	to := h.urls.of(e)
	if to == "" {
		if e.answered != nil {
			e.answered <- answer{err: ErrNoAnswer}
		}
		return
	}
	e.id = wire.NewUUID()
	h.await(e)
	r := outboundOf(e, to)
	h.running.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, h.cfg.AckTimeout)
		defer cancel()
		got, err := h.requests.do(ctx, r)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.away = errors.Is(err, errUnreachable)
		if h.waiting[e.id] != e {
			return // the hub has given up the envelope
		}
		switch {
		case err == nil:
			h.heard(e, got.payload())
		case errors.Is(err, context.DeadlineExceeded): // the ack timeout reports this
		case got.noRetry:
			h.settled(e)
		default:
			h.failed(e, retryReason(err))
		}
	})
}

// outbound is a request to one of the app's request URLs.
type outbound struct {
	url, contentType string
	body             []byte
	attempt          int // number of the attempt, from 0
	reason           string
}

// outboundOf converts an envelope to an HTTP request. Events are sent as JSON, commands as a form, and all other
// deliveries as JSON in a form field.
func outboundOf(e *envelope, to string) outbound {
	r := outbound{url: to, contentType: typeForm, attempt: e.attempt, reason: e.reason}
	switch e.kind {
	case "events_api":
		r.contentType, r.body = typeJSON, e.payload
	case "slash_commands":
		var fields map[string]string
		if err := json.Unmarshal(e.payload, &fields); err != nil {
			panic("workspace: a command has fields that are not text: " + err.Error())
		}
		form := url.Values{}
		for name, value := range fields {
			form.Set(name, value)
		}
		r.body = []byte(form.Encode())
	default:
		r.body = []byte(url.Values{"payload": {string(e.payload)}}.Encode())
	}
	return r
}

// answerOverHTTP is the app's answer to a request over HTTP.
type answerOverHTTP struct {
	contentType string
	body        []byte
	noRetry     bool
}

// payload returns the answer in the form of a socket's acknowledgement. Content that is not declared as JSON becomes
// text.
func (r answerOverHTTP) payload() json.RawMessage {
	kind, _, _ := mime.ParseMediaType(r.contentType)
	if text := bytes.TrimSpace(r.body); kind != typeJSON && len(text) > 0 {
		return wire.Encode(string(text))
	}
	return r.body
}

// requests sends Slack's requests over HTTP.
type requests struct {
	secret string // signs the requests
	client *http.Client
}

func newRequests(secret string, client *http.Client) requests {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}}
	}
	own := *client
	own.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errRedirects
		}
		return nil
	}
	return requests{secret: secret, client: &own}
}

// do makes one request. Any status from 200 to 299 acknowledges the request.
func (q requests) do(ctx context.Context, r outbound) (got answerOverHTTP, err error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return got, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	post.Header.Set("Content-Type", r.contentType)
	post.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	if r.attempt > 0 {
		post.Header.Set("X-Slack-Retry-Num", strconv.Itoa(r.attempt))
		post.Header.Set("X-Slack-Retry-Reason", r.reason)
	}
	sign(post.Header, q.secret, time.Now(), r.body)
	resp, err := q.client.Do(post)
	if errors.Is(err, errRedirects) {
		return got, err
	}
	if err != nil {
		return got, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer resp.Body.Close()
	got.noRetry = resp.Header.Get("X-Slack-No-Retry") == "1"
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return got, fmt.Errorf("%w: HTTP status %d", errStatus, resp.StatusCode)
	}
	got.contentType = resp.Header.Get("Content-Type")
	got.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return got, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return got, nil
}

// sign signs a request as Slack does. The signature is "v0=" and the HMAC-SHA-256 of version, time and body, with the
// app's signing secret. The time is the machine's own time, because the app compares the time to its own clock.
func sign(h http.Header, secret string, now time.Time, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", at, body)
	h.Set("X-Slack-Request-Timestamp", at)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}
