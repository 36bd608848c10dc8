package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"countersign/internal/demo/workspace/delivery"
)

// apiCall is one call of the bot that reached Slack.
type apiCall struct {
	method, channel string
	outboxID        string // id of the outbox message that the Slack message shows
	part            int
	at, answered    time.Time
	ts              string // ts of the message, if Slack's answer has one
	status          int
	retryAfter      string
	done            bool // Slack carried out the call
	form            url.Values
}

// callFate is how a call ends.
type callFate int

const (
	callFine    callFate = iota
	callFails            // Slack answers with an error, and does nothing
	callUnheard          // Slack carries out the call, but the answer is lost
	callRefused          // Slack answers with status 429
	callFatal            // Slack carries out the call, and then the bot is killed
	callUnknown          // there is no such method
	callOver             // the message is not being streamed any more
	callMissing          // HTTP 404
	callHTML             // the answer is a proxy's HTML page, with status 200
	callEmpty            // the answer is empty, with status 200
)

// The method "watched" records each call of the bot, and ends the call in the way that the test chooses.
func (b *synctestHarness) watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, ok := strings.CutPrefix(r.URL.Path, "/api/")
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		c := apiCall{method: method, channel: form.Get("channel"), at: time.Now(), form: form}
		c.outboxID, c.part = outboxIDOf(form)
		b.mu.Lock()
		decide := b.decide
		b.mu.Unlock()
		what := callFine
		if decide != nil {
			what = decide(c)
		}
		answer := httptest.NewRecorder()
		switch what {
		case callFails:
			http.Error(answer, "Slack is down", http.StatusServiceUnavailable)
		case callRefused:
			answer.Header().Set("Retry-After", "30")
			http.Error(answer, `{"ok":false,"error":"ratelimited"}`, http.StatusTooManyRequests)
		case callMissing:
			http.NotFound(answer, r)
		case callHTML:
			fmt.Fprint(answer, "<html>a proxy</html>")
		case callEmpty:
		case callUnknown, callOver:
			fmt.Fprintf(answer, `{"ok":false,"error":%q}`, map[callFate]string{callUnknown: "unknown_method", callOver: "message_not_in_streaming_state"}[what])
		default:
			h.ServeHTTP(answer, r)
			c.done = bytes.Contains(answer.Body.Bytes(), []byte(`"ok":true`))
		}
		c.answered, c.status, c.retryAfter = time.Now(), answer.Code, answer.Header().Get("Retry-After")
		b.noted(c, answer.Body.Bytes())
		switch what {
		case callUnheard:
			panic(http.ErrAbortHandler)
		case callFatal:
			b.death <- struct{}{}
			<-r.Context().Done()
			return
		}
		for k, v := range answer.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	})
}

// The method "noted" records a call.
func (b *synctestHarness) noted(c apiCall, answer []byte) {
	if b.note == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = append(b.calls, c)
		return
	}
	var posted struct{ TS string }
	_ = json.Unmarshal(answer, &posted)
	c.ts = posted.TS
	b.note(c)
}

// mishap returns what happens to a delivery attempt.
func (b *synctestHarness) mishap(a delivery.Attempt) delivery.Mishap {
	if b.fates == nil {
		return delivery.Mishap{}
	}
	return b.fates(a)
}

// outboxIDOf reads the metadata of a Slack message. outboxIDOf returns the id of the outbox message that the Slack
// message shows.
func outboxIDOf(form url.Values) (outboxID string, part int) {
	var meta struct {
		Payload struct {
			OutboxID string `json:"surface"`
			Part     int
		} `json:"event_payload"`
	}
	if json.Unmarshal([]byte(form.Get("metadata")), &meta) != nil {
		return "", 0
	}
	return meta.Payload.OutboxID, meta.Payload.Part
}

// The method "becomes" sets the function that decides how the bot's later calls end. nil means that all calls succeed.
// The bot's calls use the function concurrently.
func (b *synctestHarness) becomes(of func(apiCall) callFate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decide = of
}

// The method "made" lists the bot's matching calls since a time.
func (b *synctestHarness) made(since time.Time, fits func(apiCall) bool) (out []apiCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if !c.at.Before(since) && fits(c) {
			out = append(out, c)
		}
	}
	return out
}
