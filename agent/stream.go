package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"countersign/internal/tracing"
)

// Limits on data from the model's endpoint, in bytes.
const (
	maxStreamLine = 1 << 20  // one event
	maxStream     = 16 << 20 // one answer, with all events and comments
	maxErrorBody  = 64 << 10 // the body of an error response
)

// Reasons why the client stops reading an answer.
var (
	errIdle    = errors.New("the model sent nothing for too long")
	errSlow    = errors.New("the model took too long to answer")
	errTooMuch = errors.New("the model's answer is too long")
)

// notes keeps the parts of a request that the library go-openai can't send, and the parts of a response that it does
// not return.
type notes struct {
	added       map[string]string // see chatRequest
	reasons     bool              // see chatRequest
	status      int
	contentType string
	retryAfter  string
	date        string
	alive       func() // called when data arrives
}

type notesKey struct{}

// doer sends the requests of the library go-openai. doer completes the messages of a request, stores notes on the
// response, limits the size of the response, and passes on only the data lines of a stream. doer drops keep-alive
// comments, because go-openai accepts only a few of them.
type doer struct {
	client *http.Client
	key    *atomic.Pointer[string] // replaces the key in the request, unless its value is nil
}

func (d doer) Do(r *http.Request) (*http.Response, error) {
	if key := d.key.Load(); key != nil {
		r.Header.Set("Authorization", "Bearer "+*key)
	}
	tracing.Inject(r.Context(), tracing.Header(r.Header))
	n, _ := r.Context().Value(notesKey{}).(*notes)
	if n == nil {
		n = &notes{}
	}
	if r.Method == http.MethodPost {
		if err := complete(r, n.added, n.reasons); err != nil {
			return nil, err
		}
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	n.status, n.contentType = resp.StatusCode, resp.Header.Get("Content-Type")
	n.retryAfter, n.date = resp.Header.Get("Retry-After"), resp.Header.Get("Date")
	if resp.StatusCode != http.StatusOK || r.Method != http.MethodPost {
		resp.Body = bounded{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
		return resp, nil
	}
	body := io.Reader(resp.Body)
	if kind, _, _ := mime.ParseMediaType(n.contentType); kind == "application/json" {
		body = errorAsEvent(body)
	}
	resp.Body = &dataLines{lines: bufio.NewReaderSize(body, 64<<10), body: resp.Body, alive: n.alive, left: maxStream}
	return resp, nil
}

// complete changes the messages of the model that are in a request's history. added and reasons are the fields of
// chatRequest.
//
// go-openai omits empty texts. But some servers refuse a message without content, and some refuse null. So complete adds
// an empty text. If the model has sent reasoning, a server may require reasoning in each message of the model, so complete
// also adds an empty reasoning.
func complete(r *http.Request, added map[string]string, reasons bool) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var request map[string]json.RawMessage
	var messages []map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &request), json.Unmarshal(request["messages"], &messages)); err != nil {
		return err
	}
	for _, m := range messages {
		if string(m["role"]) != `"assistant"` {
			continue
		}
		if m["content"] == nil {
			m["content"] = json.RawMessage(`""`)
		}
		if reasons && m["reasoning_content"] == nil {
			m["reasoning_content"] = json.RawMessage(`""`)
		}
		if m["tool_calls"] == nil {
			continue
		}
		var calls []callPiece
		if err := json.Unmarshal(m["tool_calls"], &calls); err != nil {
			return err
		}
		for i := range calls {
			calls[i].Added = json.RawMessage(added[calls[i].ID])
		}
		if m["tool_calls"], err = json.Marshal(calls); err != nil {
			return err
		}
	}
	if request["messages"], err = json.Marshal(messages); err != nil {
		return err
	}
	if body, err = json.Marshal(request); err != nil {
		return err
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, err = r.GetBody()
	return err
}

// Some endpoints send an error with status 200 instead of a stream. errorAsEvent turns such an error into the only
// event of a stream. Any other body remains as it is.
func errorAsEvent(body io.Reader) io.Reader {
	raw, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if err != nil || json.Unmarshal(raw, &answer) != nil || len(answer.Error) == 0 || string(answer.Error) == "null" {
		return io.MultiReader(bytes.NewReader(raw), body)
	}
	event := bytes.NewBufferString("data: ")
	_ = json.Compact(event, raw) // raw is valid JSON
	event.WriteString("\n\n")
	return event
}

type bounded struct {
	io.Reader
	io.Closer
}

// dataLines reads the "data:" lines of a stream of server-sent events.
type dataLines struct {
	lines *bufio.Reader
	body  io.Closer
	alive func()
	left  int
	ready []byte
}

func (d *dataLines) Read(p []byte) (int, error) {
	for len(d.ready) == 0 {
		line, err := d.line()
		if d.alive != nil && len(line) > 0 {
			d.alive()
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			d.ready = line
			if data = bytes.TrimSpace(data); bytes.HasPrefix(data, []byte(`{"error":`)) {
				// go-openai looks for these bytes, and would lose an error that is only a text. A space prevents this.
				d.ready = fmt.Appendf(nil, "data: { %s\n", data[1:])
			}
			continue
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, d.ready)
	d.ready = d.ready[n:]
	return n, nil
}

// line reads one whole line. A last line without a line end is not a complete event, so line discards it and returns
// the reader's error.
func (d *dataLines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := d.lines.ReadSlice('\n')
		d.left -= len(part)
		if d.left < 0 || len(line)+len(part) > maxStreamLine {
			return nil, errTooMuch
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, err
		}
	}
}

func (d *dataLines) Close() error { return d.body.Close() }

// watch ends the context of a model call if the whole answer takes too long, or if no data arrives for too long after
// the first data. A model may read a long prompt or reason for minutes before it sends anything.
type watch struct {
	ctx   context.Context
	stop  func() // releases the context and the timer of the model call
	timer *time.Timer
	idle  time.Duration
}

// afterFinish is how long the client waits for more data after the answer is complete.
const afterFinish = 2 * time.Second

func newWatch(ctx context.Context, whole, idle time.Duration) *watch {
	ctx, cancelWhole := context.WithTimeoutCause(ctx, whole, fmt.Errorf("%w (%s)", errSlow, whole))
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{ctx: ctx, idle: idle, timer: time.AfterFunc(whole, func() { cancel(fmt.Errorf("%w (%s)", errIdle, idle)) })}
	w.timer.Stop()
	w.stop = func() {
		w.timer.Stop()
		cancel(nil)
		cancelWhole()
	}
	return w
}

// alive starts the idle timer again. It is called when data arrives.
func (w *watch) alive() { w.timer.Reset(w.idle) }

// whole marks the answer as complete.
func (w *watch) whole() {
	w.idle = min(w.idle, afterFinish)
	w.timer.Reset(w.idle)
}
