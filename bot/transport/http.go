package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

// These are the paths of Slack's requests, below the bot's public address.
const (
	EventsPath       = "/slack/events"
	InteractionsPath = "/slack/interactions"
	CommandsPath     = "/slack/commands"
	OptionsPath      = "/slack/options"
)

// requestPaths are the paths of Slack's requests. The kind of a request is read from its signed body. EventsPath
// accepts every kind, because many apps have one Request URL for all kinds. The other paths accept only their own kind.
var requestPaths = []string{EventsPath, InteractionsPath, OptionsPath, CommandsPath}

// These values limit requests. Slack stops waiting for an answer after 3 s. Every sender gets only the time and space
// that Slack's largest delivery needs over a bad connection.
const (
	headerWait  = 5 * time.Second
	requestWait = 10 * time.Second // time limit for the headers and the body
	answerWait  = 20 * time.Second
	idleWait    = 2 * time.Minute
	maxHeaders  = 16 << 10
	maxRequest  = 2 << 20 // a view of 250 KB with its message, as JSON escaped within a form
	storeWait   = 10 * time.Second
	stopWait    = 3 * time.Second
)

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// errNotListening is the error of Ready while the transport does not accept Slack's requests.
var errNotListening = errors.New("no server listens for Slack's requests")

// HTTPOptions configure HTTP. All fields but Count are required.
type HTTPOptions struct {
	Options
	Listen        func() (net.Listener, error)
	SigningSecret func() string    // secret with which Slack signs its requests; it may change
	Count         func(status int) // is called with the status of each response
}

// HTTP receives Slack's requests.
type HTTP struct {
	HTTPOptions
	clock   ReceiptClock
	gate    gate
	senders senders
	replays replays
	began   interruptions
}

var _ Transport = (*HTTP)(nil)

// NewHTTP returns a transport that is not running yet.
func NewHTTP(o HTTPOptions) *HTTP {
	return &HTTP{HTTPOptions: o}
}

// Ready returns nil while requests are accepted.
func (h *HTTP) Ready() error {
	if !h.gate.opened() {
		return errNotListening
	}
	return nil
}

// Arriving returns an error if no request from Slack has come, or if requests were refused after the last request from
// Slack. If no request has come, perhaps nothing happened in Slack.
func (h *HTTP) Arriving() error { return h.senders.arriving() }

// Listening returns the time up to which requests were accepted. If no request came, there are two possible reasons:
// nothing happened in Slack, or requests did not reach the bot.
func (h *HTTP) Listening() Listening {
	l := Listening{Began: h.began.count(), Received: h.senders.lastVerified()}
	if h.gate.opened() {
		l.Open = h.Now()
	}
	return l
}

// Retry does nothing, because Slack connects to the bot.
func (h *HTTP) Retry() {}

// Run serves Slack's requests until ctx ends. Then Run waits for the requests that have begun. Run waits at most
// stopWait until these requests are complete, and without a limit until each complete delivery is handled.
func (h *HTTP) Run(ctx context.Context) error {
	l, err := h.Listen()
	if err != nil {
		return fmt.Errorf("listen for Slack's requests: %w", err)
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(h.serve), ReadHeaderTimeout: headerWait, ReadTimeout: requestWait, WriteTimeout: answerWait, IdleTimeout: idleWait,
		MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	h.gate.open()
	h.began.add()
	h.Log.InfoContext(ctx, "listening for Slack's requests", "address", l.Addr().String(), "paths", requestPaths)
	select {
	case err := <-done:
		h.gate.shut()
		return fmt.Errorf("listen for Slack's requests: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if srv.Shutdown(stopping) != nil {
		_ = srv.Close() // requests that are still incomplete were not stored
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		h.Log.WarnContext(ctx, "the server for Slack's requests did not stop cleanly", "error", err)
	}
	h.gate.shut()
	return nil
}

// answer is the response to a request. An error response contains only the status, so an unknown sender does not learn
// the reason.
type answer struct {
	status  int
	payload any // nil: empty body
}

// serve responds to one request.
func (h *HTTP) serve(w http.ResponseWriter, r *http.Request) {
	a := h.answer(w, r)
	if h.Count != nil {
		h.Count(a.status)
	}
	w.Header().Set("Cache-Control", "no-store")
	if a.status >= http.StatusBadRequest {
		if a.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		w.Header().Set("Connection", "close")
		http.Error(w, http.StatusText(a.status), a.status)
		return
	}
	if a.payload == nil {
		w.WriteHeader(a.status)
		return
	}
	body, err := json.Marshal(a.payload)
	if err != nil {
		h.Log.Error("a response to Slack can't be written", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body) // an error is ignored: if Slack has closed the connection, it sends events again
}

// answer decides how to respond to a request. Before the signature is verified, the function uses only the path, the
// method and the headers. The only exception is Slack's unsigned check of the certificate (looksAtTLS).
func (h *HTTP) answer(w http.ResponseWriter, r *http.Request) answer {
	if !slices.Contains(requestPaths, r.URL.Path) {
		return answer{status: http.StatusNotFound}
	}
	if r.Method != http.MethodPost {
		return answer{status: http.StatusMethodNotAllowed}
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != typeJSON && media != typeForm {
		return answer{status: http.StatusUnsupportedMediaType}
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, h.SigningSecret())
	if errors.Is(err, slack.ErrMissingHeaders) && (r.URL.Path == CommandsPath || r.URL.Path == EventsPath) && media == typeForm && looksAtTLS(r) {
		return answer{status: http.StatusOK}
	}
	if err != nil {
		return h.rejectUnsigned(err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return answer{status: unread(err)}
	}
	_, _ = verifier.Write(body) // writing to a hash never fails
	if err := verifier.Ensure(); err != nil {
		return h.rejectUnsigned(err)
	}
	h.senders.noteVerified(h.Now())
	return h.deliver(r, media, body)
}

// looksAtTLS reports whether an unsigned request is Slack's check of the certificate. readRequest reads the same check
// with a signature.
func looksAtTLS(r *http.Request) bool {
	r.Body = http.MaxBytesReader(nil, r.Body, 1<<10)
	return r.ParseForm() == nil && r.PostForm.Get(certificateCheck) == "1"
}

// unread returns the status for a body that could not be read.
func unread(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// rejectUnsigned rejects a request that is not from Slack, or whose time differs too much from this machine's time. The
// operator is told about requests that claim to be from Slack.
func (h *HTTP) rejectUnsigned(cause error) answer {
	why := "its signature does not match: is SLACK_SIGNING_SECRET the Signing Secret of this app?"
	switch {
	case errors.Is(cause, slack.ErrMissingHeaders):
		return answer{status: http.StatusUnauthorized} // such requests are common at a public address
	case errors.Is(cause, slack.ErrExpiredTimestamp):
		why = "its time is more than five minutes off: is this machine's clock right?"
	}
	if n := h.senders.refuse(time.Now(), why); n > 0 {
		h.Log.Warn("a request that claims to be from Slack was refused, because "+why, "requests", n)
	}
	return answer{status: http.StatusUnauthorized}
}

// deliver receives a request. The function acknowledges the request only when the delivery is durable.
func (h *HTTP) deliver(r *http.Request, media string, body []byte) answer {
	q, err := readRequest(media, body)
	if err != nil {
		h.Log.Error("Slack sent a request that can't be read", "path", r.URL.Path, "bytes", len(body), "error", err)
		return answer{status: http.StatusBadRequest}
	}
	if q.path != r.URL.Path && r.URL.Path != EventsPath {
		h.Log.Error("Slack sent a request to the wrong path; change the Request URL in the app's settings", "path", r.URL.Path, "belongs_to", q.path)
		return answer{status: http.StatusBadRequest}
	}
	if q.challenge != "" {
		h.Log.Info("a Request URL was verified, by Slack or by countersign doctor", "path", r.URL.Path)
		return answer{http.StatusOK, map[string]string{"challenge": q.challenge}}
	}
	if q.ping {
		return answer{status: http.StatusOK}
	}
	if n := r.Header.Get("X-Slack-Retry-Num"); n != "" { // only logged: a retry may be the first copy that arrives
		h.Log.Info("Slack retries a delivery that was not acknowledged in time", "attempt", n, "reason", r.Header.Get("X-Slack-Retry-Reason"))
	}
	if q.once && !h.replays.first(nameOf(r, body), time.Now()) {
		h.Log.Warn("a request came a second time and was refused", "kind", string(q.kind))
		return answer{status: http.StatusConflict}
	}
	if !h.gate.enter() {
		return answer{status: http.StatusServiceUnavailable}
	}
	defer h.gate.leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeWait) // stores the delivery even if Slack has closed the connection
	defer cancel()
	payload, err := h.receive(ctx, Delivery{Kind: q.kind, Payload: q.payload, ReceivedAt: h.clock.Next(h.Now())}, &h.began)
	if err != nil {
		return answer{status: http.StatusServiceUnavailable}
	}
	return answer{http.StatusOK, payload}
}
