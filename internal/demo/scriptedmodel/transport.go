package scriptedmodel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Transport returns a RoundTripper that reaches the service without a network. Tests with testing/synctest need this
// RoundTripper, because a real listener would stop the clock of the test. Answers stream as they do over a network. The
// goroutine that serves a request ends when the answer is complete, when the client closes the body, or when the
// request's context ends.
func (s *Server) Transport() http.RoundTripper { return transport{s} }

type transport struct{ server *Server }

var errBrokenOff = errors.New("scriptedmodel: the connection was broken")

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &pipeWriter{header: http.Header{}, body: writer, started: make(chan struct{})}
	inner := r.Clone(r.Context())
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	// When the context ends, reads and writes fail, as they do over a network.
	release := context.AfterFunc(r.Context(), func() {
		_ = writer.CloseWithError(r.Context().Err()) // never fails
	})
	go func() {
		defer func() {
			release()
			_ = inner.Body.Close() // a RoundTripper must close the body; the error is ignored
			err := r.Context().Err()
			if cause := recover(); cause != nil {
				err = errBrokenOff
				if abort, ok := cause.(error); !ok || !errors.Is(abort, http.ErrAbortHandler) {
					err = fmt.Errorf("scriptedmodel: the service panicked: %v", cause)
				}
			}
			w.WriteHeader(http.StatusOK)
			_ = writer.CloseWithError(err) // never fails
		}()
		t.server.ServeHTTP(w, inner)
	}()
	select {
	case <-w.started:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: reader, ContentLength: -1, Request: r}, nil
}

// pipeWriter is a ResponseWriter whose body is a pipe.
type pipeWriter struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	once         sync.Once
	started      chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

func (w *pipeWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

// Flush does nothing, because writes are not buffered.
func (w *pipeWriter) Flush() {}
