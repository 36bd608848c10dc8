package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

var errBroken = errors.New("the connection broke")

// inProcess calls a handler without a network. If the handler aborts, the result is an error, or a body that ends with
// an error.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	in := r.Clone(r.Context())
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	defer func() {
		if cause := recover(); cause != nil {
			if err, ok := cause.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			if rec.Body.Len() == 0 {
				resp, err = nil, errBroken
				return
			}
			resp = rec.Result()
			resp.Body = io.NopCloser(io.MultiReader(resp.Body, broken{}))
		}
	}()
	h.ServeHTTP(rec, in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return rec.Result(), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// answered returns a response with this status, header and body. The request itself is not carried out.
func answered(status int, header, body string) *http.Response {
	rec := httptest.NewRecorder()
	if name, value, ok := strings.Cut(header, ": "); ok {
		rec.Header().Set(name, value)
	}
	rec.WriteHeader(status)
	io.WriteString(rec, body)
	return rec.Result()
}

// These are the faults of a call to Slack.
const (
	faultBusy     = "429"     // the call is answered with Retry-After, and not carried out
	faultServer   = "503"     // the call is answered with an error of the server, and not carried out
	faultNoWay    = "no way"  // the connection breaks before the call is carried out
	faultNoAnswer = "unheard" // the call is carried out, but the answer does not arrive
	faultRefused  = "refused" // Slack refuses the call, with the code in more
	faultHang     = "hang"    // no answer comes until the caller gives up
)

// slackWire is the network between one process and Slack.
type slackWire struct{ p *life }

func (w slackWire) RoundTrip(r *http.Request) (*http.Response, error) {
	s := w.p.simulation
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if strings.HasPrefix(r.URL.Path, "/response/") {
		method = "response_url"
	}
	if method == "auth.test" { // called once, under a lock that all other goroutines need, so the call can't wait at the gate
		return inProcess{s.ws.Handler()}.RoundTrip(r)
	}
	v, err := w.p.wait(r.Context(), atSlack, method+" "+sum(body))
	if err != nil {
		return nil, err
	}
	switch v.fault {
	case faultBusy:
		return answered(http.StatusTooManyRequests, "Retry-After: "+strconv.Itoa(v.more.(int)), `{"ok":false,"error":"ratelimited"}`), nil
	case faultServer:
		return answered(http.StatusServiceUnavailable, "", "down"), nil
	case faultNoWay:
		return nil, errBroken
	case faultRefused:
		return answered(http.StatusOK, "Content-Type: application/json", fmt.Sprintf(`{"ok":false,"error":%q}`, v.more)), nil
	case faultHang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	resp, err := inProcess{s.ws.Handler()}.RoundTrip(r)
	if v.hold {
		if _, err := w.p.wait(r.Context(), atBack, method); err != nil {
			return nil, err
		}
	}
	if v.fault == faultNoAnswer {
		return nil, errBroken
	}
	return resp, err
}

// modelWire is the network between one process and the model.
type modelWire struct{ p *life }

func (w modelWire) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := readAll(r); err != nil {
		return nil, err
	}
	v, err := w.p.wait(r.Context(), atModel, "")
	if err != nil {
		return nil, err
	}
	if w.p.simulation.operator.paused.Load() {
		w.p.simulation.violate("the model is called while everything is paused")
	}
	switch v.fault {
	case faultNoWay:
		return nil, errBroken
	case faultHang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	resp, err := inProcess{w.p.simulation.model}.RoundTrip(r.WithContext(context.WithValue(r.Context(), lotKey{}, v)))
	if err == nil && resp.StatusCode == http.StatusBadRequest && v.fault == "" {
		said, _ := io.ReadAll(resp.Body)
		w.p.simulation.violate("the model was asked something that is not valid: %s", said)
	}
	if v.hold {
		if _, err := w.p.wait(r.Context(), atBack, atModel); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// lotKey is the context key for the lot of a request to the model. The lot says how the request ends.
type lotKey struct{}

// readAll reads a request's body. readAll replaces the body, so that the next handler can read the body too.
func readAll(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// sum returns a short hash of some bytes.
func sum(b []byte) string {
	h := fnv.New32a()
	h.Write(b)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
