package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

// requestPaths are the paths of Slack's requests. The kind of a request is read from its signed body; the path, which
// is not signed, must match it.
var requestPaths = []string{EventsPath, InteractionsPath, OptionsPath, CommandsPath}

// Limits of requests. Slack gives up after 3 s. Unknown senders get no more time or space than the largest delivery
// needs over a bad connection.
const (
	headerWait  = 5 * time.Second
	requestWait = 10 * time.Second // headers and body
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

// serveRequests serves Slack's requests over HTTP until ctx ends. It completes the requests that have begun.
func (b *Bot) serveRequests(ctx context.Context) error {
	l, err := b.Listen()
	if err != nil {
		return fmt.Errorf("listen for Slack's requests: %w", err)
	}
	srv := &http.Server{
		Handler: requests{b}, ReadHeaderTimeout: headerWait, ReadTimeout: requestWait, WriteTimeout: answerWait, IdleTimeout: idleWait,
		MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(b.Log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	b.intake.open()
	b.Log.Info("listening for Slack's requests", "address", l.Addr().String(), "paths", requestPaths)
	select {
	case err := <-done:
		b.intake.shut()
		return fmt.Errorf("listen for Slack's requests: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if srv.Shutdown(stopping) != nil {
		_ = srv.Close() // nothing was stored of requests that are still incomplete
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		b.Log.Warn("the server for Slack's requests did not end in good order", "error", err)
	}
	b.intake.shut()
	return nil
}

// requests handles Slack's requests over HTTP.
type requests struct{ b *Bot }

// answer is the response to a request. An error response contains only the status, so that an unknown sender does not
// learn what was wrong.
type answer struct {
	status  int
	payload any // nil: empty body
}

func (q requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := q.answer(w, r)
	if q.b.CountRequest != nil {
		q.b.CountRequest(a.status)
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
		q.b.Log.Error("an answer to Slack can't be written", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body) // if Slack has gone, it redelivers events
}

// answer decides how to respond to a request. It trusts nothing in the request before the signature is verified.
func (q requests) answer(w http.ResponseWriter, r *http.Request) answer {
	if !slices.Contains(requestPaths, r.URL.Path) {
		return answer{status: http.StatusNotFound}
	}
	if r.Method != http.MethodPost {
		return answer{status: http.StatusMethodNotAllowed}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != typeJSON && kind != typeForm {
		return answer{status: http.StatusUnsupportedMediaType}
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, q.b.SigningSecret)
	if errors.Is(err, slack.ErrMissingHeaders) && r.URL.Path == CommandsPath && kind == typeForm && looksAtTLS(r) {
		return answer{status: http.StatusOK}
	}
	if err != nil {
		return q.stranger(err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return answer{status: unread(err)}
	}
	_, _ = verifier.Write(body) // a hash takes everything
	if err := verifier.Ensure(); err != nil {
		return q.stranger(err)
	}
	q.b.intake.verified(time.Now())
	return q.deliver(r, kind, body)
}

// looksAtTLS reports whether a request is Slack's occasional check of the certificate of a command's URL. Such a
// request has no signature, and contains no command.
func looksAtTLS(r *http.Request) bool {
	r.Body = http.MaxBytesReader(nil, r.Body, 1<<10)
	return r.ParseForm() == nil && r.PostForm.Get("ssl_check") == "1"
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

// stranger rejects a request that is not from Slack, or whose time is too far off. The operator is told about those
// that claim to be from Slack.
func (q requests) stranger(cause error) answer {
	why := "its signature does not fit: is SLACK_SIGNING_SECRET the Signing Secret of this app?"
	switch {
	case errors.Is(cause, slack.ErrMissingHeaders):
		return answer{status: http.StatusUnauthorized} // ordinary noise at a public address
	case errors.Is(cause, slack.ErrExpiredTimestamp):
		why = "its time is more than five minutes off: is this machine's clock right?"
	}
	if n := q.b.intake.refused(time.Now(), why); n > 0 {
		q.b.Log.Warn("a request that should be Slack's was refused, because "+why, "requests", n)
	}
	return answer{status: http.StatusUnauthorized}
}

// deliver receives a request. It acknowledges the request only when it is durable.
func (q requests) deliver(r *http.Request, kind string, body []byte) answer {
	d, err := readRequest(kind, body)
	if err != nil {
		q.b.Log.Error("Slack sent a request that can't be read", "path", r.URL.Path, "bytes", len(body), "error", err)
		return answer{status: http.StatusBadRequest}
	}
	if d.path != r.URL.Path {
		q.b.Log.Error("Slack sent a request to the wrong place; change the Request URL in the app's settings", "path", r.URL.Path, "belongs to", d.path)
		return answer{status: http.StatusBadRequest}
	}
	if d.challenge != "" {
		q.b.Log.Info("Slack has verified the URL for events")
		return answer{http.StatusOK, map[string]string{"challenge": d.challenge}}
	}
	if n := r.Header.Get("X-Slack-Retry-Num"); n != "" { // it may be the first to arrive
		q.b.Log.Info("Slack delivers again what was not acknowledged in time", "attempt", n, "reason", r.Header.Get("X-Slack-Retry-Reason"))
	}
	if d.once && !q.b.intake.first(nameOf(r, body), time.Now()) {
		q.b.Log.Warn("a request came a second time and was refused", "kind", string(d.kind))
		return answer{status: http.StatusConflict}
	}
	if !q.b.intake.enter() {
		return answer{status: http.StatusServiceUnavailable}
	}
	defer q.b.intake.leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeWait) // also if Slack has closed the connection
	defer cancel()
	a, err := q.b.receive(ctx, d.kind, d.payload, q.b.inOrder.next(q.b.Now()))
	if err != nil {
		q.b.Log.Error("a delivery could not be stored, so it is not acknowledged and Slack sends it again if it is an event", "kind", string(d.kind), "error", err)
		return answer{status: http.StatusServiceUnavailable}
	}
	return answer{http.StatusOK, a.payload}
}
