package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// Local returns a client of a gateway in the same process. The client calls the gateway's handler directly.
func Local(gateway http.Handler, token string) *Client {
	return &Client{Patience: time.Minute, address: "http://localhost", token: token, http: &http.Client{Transport: local{gateway}}}
}

type local struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (l local) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, notSentError{err}
	}
	if req.Body == nil {
		req = req.Clone(req.Context())
		req.Body = http.NoBody
	}
	w := &answerWriter{header: http.Header{}}
	l.handler.ServeHTTP(w, req)
	if w.status == 0 { // the handler gave up, because the context has ended
		if err := context.Cause(req.Context()); err != nil {
			return nil, err
		}
		w.status = http.StatusOK
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req,
	}, nil
}

// answerWriter keeps the answer of a handler.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answerWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
