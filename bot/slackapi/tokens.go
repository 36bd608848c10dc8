package slackapi

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// tokenWriter replaces the old tokens in calls after a rotation of tokens. slack-go keeps the tokens that a client was
// created with. tokenWriter writes the current tokens into the header Authorization or into the form of a call.
type tokenWriter struct {
	next    http.RoundTripper
	rotated atomic.Pointer[map[string]string] // maps the tokens with which the client was made to the tokens in use; nil: the tokens are the same
}

// rotate replaces the tokens of all later calls.
func (w *tokenWriter) rotate(replacements map[string]string) { w.rotated.Store(&replacements) }

// RoundTrip makes a call with the tokens in use.
func (w *tokenWriter) RoundTrip(req *http.Request) (*http.Response, error) {
	rotated := w.rotated.Load()
	if rotated == nil {
		return w.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	if old, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		if now := (*rotated)[old]; now != "" {
			req.Header.Set("Authorization", "Bearer "+now)
		}
	}
	if req.Body == nil || req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return w.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	if form, err := url.ParseQuery(string(body)); err == nil {
		if now := (*rotated)[form.Get("token")]; now != "" {
			form.Set("token", now)
			body = []byte(form.Encode())
		}
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return w.next.RoundTrip(req)
}
