package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strconv"
	"sync"

	"countersign/agent"
	"countersign/agent/jsonobject"
	"countersign/internal/redact"
)

// tap processes every message of one connection as raw bytes. tap inserts the exact arguments into outgoing calls,
// and keeps the exact bytes of results and lists. The tap drops unsolicited messages, because they would pile up in
// the SDK.
type tap struct {
	log       *slog.Logger
	secrets   redact.Values
	maxResult int
	changed   func() // called when the server announces a changed list
	relisted  func(json.RawMessage)

	mu        sync.Mutex
	flights   map[string]*flight   // by token
	pending   map[string]*outgoing // requests to the server without an answer, by id
	questions map[string]*question // questions of the server without an answer, by id
	dropped   int
	passed    int // number of notifications that were passed to the SDK
}

// outgoing is a request to the server that has no answer yet.
type outgoing struct {
	method string
	flight *flight
}

// question is a question of the server to a person. It has the bytes of the form's schema.
type question struct {
	flight *flight // the call to which the question belongs; nil: unknown
	schema json.RawMessage
}

const (
	// maxQuestions is the maximum number of open requests of a server, and of questions in one result. Further requests
	// are dropped without an answer. Further questions in a result are declined.
	maxQuestions = 16
	// maxPassed is the maximum number of notifications that are passed to the SDK per connection.
	maxPassed = 10_000
	// questionKey is the name in _meta under which the tap passes the id of a question to the SDK.
	questionKey = "countersign/question"
	// executionKey is the name in _meta under which a call sends the execution's id to the server.
	executionKey = "countersign/execution"
	// refusedCode is the error code that the SDK gets if the tap rejects a result. A server may also send this code. The
	// field refused of the answer shows that the tap has set it.
	refusedCode = -32603
)

func newTap(log *slog.Logger, secrets redact.Values, maxResult int, changed func(), relisted func(json.RawMessage)) *tap {
	return &tap{
		log: log, secrets: secrets, maxResult: maxResult, changed: changed, relisted: relisted,
		flights: map[string]*flight{}, pending: map[string]*outgoing{}, questions: map[string]*question{},
	}
}

// begin registers a call before it is sent, so that the tap can assign messages to the call.
func (t *tap) begin(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flights[f.token] = f
}

// end removes a call.
func (t *tap) end(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flights, f.token)
	for id, p := range t.pending {
		if p.flight == f {
			delete(t.pending, id)
		}
	}
}

// The method out processes an outgoing message of the SDK, and returns the bytes to send. For a tool call, it also
// returns the flight of the call.
func (t *tap) out(raw []byte) ([]byte, *flight, error) {
	o, err := jsonobject.Read(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the message to the server: %w", err)
	}
	id, method := string(o.Get("id")), o.Text("method")
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case method == "":
		delete(t.questions, id)
		return raw, nil, nil
	case id == "":
		if method == "notifications/cancelled" {
			delete(t.pending, string(o.Object("params").Get("requestId")))
		}
		return raw, nil, nil
	}
	if method == "tools/call" {
		return t.calls(o, id)
	}
	if method == "tools/list" { // a late answer to an earlier request must not count as this page
		maps.DeleteFunc(t.pending, func(_ string, p *outgoing) bool { return p.method == method })
	}
	t.pending[id] = &outgoing{method: method}
	return raw, nil, nil
}

// calls inserts the approved bytes of the arguments into an outgoing call.
func (t *tap) calls(o jsonobject.Object, id string) ([]byte, *flight, error) {
	params := o.Object("params")
	f := t.flights[params.Object("_meta").Text("progressToken")]
	if f == nil {
		return nil, nil, errors.New("a call that the bot did not make")
	}
	t.pending[id] = &outgoing{method: "tools/call", flight: f}
	return o.With("params", params.With("arguments", f.args).Bytes()).Bytes(), f, nil
}

// The method "in" processes a message of the server. It returns the message for the SDK, or nil if the message is
// dropped. The parameter "of" is the call on whose stream the message came, or nil if there is no such call.
func (t *tap) in(raw []byte, of *flight) []byte {
	o, err := readMessage(raw)
	if err != nil {
		return t.unfit(o, err)
	}
	o, raw = t.masked(o, raw)
	id, method := o.Get("id"), o.Text("method")
	switch {
	case o.Has("method") && id != nil && string(id) != "null":
		return t.asked(o, string(id), method, of)
	case o.Has("method"):
		return t.told(o, raw, method)
	case o.Has("result") && o.Has("error"):
		return t.unfit(o, errors.New("it has both a result and an error"))
	case (o.Has("result") || o.Has("error")) && id != nil:
		return t.answered(o, raw, string(id))
	}
	t.drop("not a question, an answer or a notification")
	return nil
}

// unfit handles an invalid message. If the message answers a call, unfit ends the call with an error.
func (t *tap) unfit(o jsonobject.Object, why error) []byte {
	id := string(o.Get("id"))
	if !o.Has("method") && id != "" {
		if p := t.take(id); p != nil {
			return p.refuse(id, "the server's answer can't be used: "+why.Error())
		}
	}
	t.drop(why.Error())
	return nil
}

// take returns and removes the request to which an answer belongs. A second answer to the same request finds no
// request.
func (t *tap) take(id string) *outgoing {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pending[id]
	delete(t.pending, id)
	return p
}

// refuse rejects the answer to a request. The SDK gets an error in place of the answer.
func (p *outgoing) refuse(id, why string) []byte {
	if p.flight != nil {
		p.flight.answer.CompareAndSwap(nil, &answer{refused: why})
	}
	return failed(id, why)
}

func failed(id, why string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, refusedCode, quoted(why))
}

// answered handles the server's answer to a request.
func (t *tap) answered(o jsonobject.Object, raw []byte, id string) []byte {
	p := t.take(id)
	if p == nil {
		t.drop("an answer to a request that was not made")
		return nil
	}
	result := o.Get("result")
	switch {
	case p.flight != nil && o.Has("error"):
		p.flight.answer.Store(readError(o.Object("error")))
		return raw
	case p.flight != nil && len(result) > t.maxResult:
		return p.refuse(id, fmt.Sprintf("its result has %d bytes, and %d are allowed: ask for less at a time, or raise max_result of the server", len(result), t.maxResult))
	case p.flight != nil:
		return t.finished(o, id, p, result)
	case p.method == "tools/list" && result != nil:
		t.relisted(result)
		// The caching hint is removed, because the next read must reach the server.
		if list, err := jsonobject.Read(result); err == nil {
			return o.With("result", list.Without("ttlMs").Bytes()).Bytes()
		}
	}
	return raw
}

// finished handles a call's result. The SDK gets an empty result, because the flight has the real result. If the
// result contains questions of the server, the SDK gets the questions.
func (t *tap) finished(o jsonobject.Object, id string, p *outgoing, result json.RawMessage) []byte {
	r, err := jsonobject.Read(result)
	if err != nil {
		return p.refuse(id, "the server's answer can't be used: its result is not an object")
	}
	if r.Has("inputRequests") || r.Text("resultType") == "input_required" {
		return o.With("result", t.markQuestions(r, p.flight).Bytes()).Bytes()
	}
	p.flight.answer.Store(&answer{result: result})
	short := jsonobject.Object{{Name: "content", Value: json.RawMessage("[]")}}
	if kind := r.Get("resultType"); kind != nil {
		short = append(short, jsonobject.Member{Name: "resultType", Value: kind})
	}
	return o.With("result", short.Bytes()).Bytes()
}

// readError parses an error of the server.
func readError(o jsonobject.Object) *answer {
	code, err := strconv.ParseInt(string(o.Get("code")), 10, 64)
	if err != nil {
		code = refusedCode
	}
	return &answer{code: code, message: o.Text("message"), data: o.Get("data")}
}

// told handles a notification of the server.
func (t *tap) told(o jsonobject.Object, raw []byte, method string) []byte {
	params := o.Object("params")
	switch method {
	case "notifications/progress":
		t.progress(params)
		return nil
	case "notifications/message":
		t.log.Debug("a log message of an MCP server", "level", params.Text("level"), "text", line(string(params.Get("data"))))
		return nil
	case "notifications/tools/list_changed":
		t.changed()
		return nil
	case "notifications/cancelled", "notifications/elicitation/complete", "notifications/subscriptions/acknowledged":
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.passed++; t.passed <= maxPassed {
			return raw
		}
		return nil
	}
	t.drop("a notification of an unknown kind")
	return nil
}

// progress passes the server's progress report to the run.
func (t *tap) progress(params jsonobject.Object) {
	t.mu.Lock()
	f := t.flights[params.Text("progressToken")]
	t.mu.Unlock()
	if f == nil || f.progress == nil {
		t.drop("progress of a call that is not running")
		return
	}
	f.progress(agent.Progress{Done: number(params.Get("progress")), Total: number(params.Get("total")), Text: line(params.Text("message"))})
}

func number(raw json.RawMessage) float64 {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(n, 0) || n < 0 {
		return 0
	}
	return n
}

// asked handles a request of the server, such as a question to a person.
func (t *tap) asked(o jsonobject.Object, id, method string, of *flight) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.questions) >= maxQuestions {
		t.count("more questions than may be open at a time")
		return nil
	}
	q := &question{flight: of}
	t.questions[id] = q
	if method != "elicitation/create" {
		return o.Bytes()
	}
	params := o.Object("params")
	q.schema = params.Get("requestedSchema")
	return o.With("params", marked(params, id).Bytes()).Bytes()
}

// markQuestions registers the questions in a result, and adds their keys to the result.
func (t *tap) markQuestions(r jsonobject.Object, f *flight) jsonobject.Object {
	requests := r.Object("inputRequests")
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, m := range requests {
		ask, err := jsonobject.Read(m.Value)
		if err != nil || ask.Text("method") != "elicitation/create" || i >= maxQuestions {
			continue
		}
		params, key := ask.Object("params"), f.token+"/"+m.Name
		t.questions[key] = &question{flight: f, schema: params.Get("requestedSchema")}
		requests[i].Value = ask.With("params", marked(params, key).Bytes()).Bytes()
	}
	return r.With("inputRequests", requests.Bytes())
}

func marked(params jsonobject.Object, key string) jsonobject.Object {
	return params.With("_meta", params.Object("_meta").With(questionKey, quoted(key)).Bytes())
}

// whose returns the question with a key, and the call to which it belongs. The call is the call on whose stream the
// question came. If the question came on another stream, it belongs to the only call in progress. If there is not
// exactly one call in progress, the call is nil.
func (t *tap) whose(key string) (*question, *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.questions[key]
	if q == nil {
		return nil, nil
	}
	if q.flight != nil {
		return q, t.flights[q.flight.token]
	}
	if len(t.flights) == 1 {
		for _, f := range t.flights {
			return q, f
		}
	}
	return q, nil
}

// forget removes a question whose call is known.
func (t *tap) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.questions[key]; q != nil && q.flight != nil {
		delete(t.questions, key)
	}
}

// drop counts a dropped message. For each connection, the first five dropped messages are logged, and then every
// 10,000th dropped message.
func (t *tap) drop(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(why)
}

func (t *tap) count(why string) {
	if t.dropped++; t.dropped <= 5 || t.dropped%10_000 == 0 {
		t.log.Warn("a message of an MCP server was ignored", "why", why, "so_far", t.dropped)
	}
}

// oneLine replaces line breaks by spaces. In JSON, line breaks occur only between tokens, never within a text.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	out := bytes.Clone(raw)
	for i, c := range out {
		if c == '\n' || c == '\r' {
			out[i] = ' '
		}
	}
	return out
}
