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
	"countersign/internal/redact"
)

// tap looks at every message of one connection, as it is on the wire. It puts the exact arguments into what goes out, takes results and lists as the bytes
// that they are, and keeps from the SDK what nobody waits for, so that nothing that a server sends unasked piles up.
type tap struct {
	log       *slog.Logger
	secrets   redact.Values
	maxResult int
	changed   func() // the server says that its list is another
	relisted  func(json.RawMessage)

	mu        sync.Mutex
	flights   map[string]*flight   // by token
	pending   map[string]*outgoing // questions to the server, by id
	questions map[string]*question // the server's, by id
	dropped   int
	passed    int // notifications that went on to the SDK
}

// outgoing is a question that the server has not answered yet.
type outgoing struct {
	method string
	flight *flight
}

// question is what a server wants to know of a person, with the bytes of its form.
type question struct {
	flight *flight // whose run it is known to belong to; nil: it is not
	schema json.RawMessage
}

const (
	// maxQuestions is how many questions of a server may be open at once; it is told nothing about the others.
	maxQuestions = 16
	// maxPassed is how many notifications go on to the SDK on one connection, of the kinds that mean something to it.
	maxPassed = 10_000
	// questionKey names a question in what is given to the SDK.
	questionKey = "countersign/question"
	// executionKey tells the server the execution's id.
	executionKey = "countersign/execution"
	// refusedCode is the error that stands for a result that was not taken. No server's error is taken for it: the flight's answer counts.
	refusedCode = -32603
)

func newTap(log *slog.Logger, secrets redact.Values, maxResult int, changed func(), relisted func(json.RawMessage)) *tap {
	return &tap{
		log: log, secrets: secrets, maxResult: maxResult, changed: changed, relisted: relisted,
		flights: map[string]*flight{}, pending: map[string]*outgoing{}, questions: map[string]*question{},
	}
}

// begin lets a call's messages be known.
func (t *tap) begin(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flights[f.token] = f
}

// end forgets a call.
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

// out takes a message that the SDK wants to send. It returns the bytes to send and the call that it belongs to, if it is one of a tool.
func (t *tap) out(raw []byte) ([]byte, *flight, error) {
	o, err := readObject(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the message to the server: %w", err)
	}
	id, method := string(o.get("id")), o.text("method")
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case method == "":
		delete(t.questions, id)
		return raw, nil, nil
	case id == "":
		if method == "notifications/cancelled" {
			delete(t.pending, string(o.object("params").get("requestId")))
		}
		return raw, nil, nil
	}
	if method == "tools/call" {
		return t.calls(o, id)
	}
	if method == "tools/list" { // one page is read at a time: an answer to an earlier one, which nobody waits for any more, is not taken for it
		maps.DeleteFunc(t.pending, func(_ string, p *outgoing) bool { return p.method == method })
	}
	t.pending[id] = &outgoing{method: method}
	return raw, nil, nil
}

// calls puts the exact arguments into a call that goes out.
func (t *tap) calls(o object, id string) ([]byte, *flight, error) {
	params := o.object("params")
	f := t.flights[params.object("_meta").text("progressToken")]
	if f == nil {
		return nil, nil, errors.New("a call that nobody made")
	}
	t.pending[id] = &outgoing{method: "tools/call", flight: f}
	return o.with("params", params.with("arguments", f.args).bytes()).bytes(), f, nil
}

// in takes a message of the server and returns what the SDK is to see of it; nil if it is nothing. of is the call on whose own stream it
// came, if that is known.
func (t *tap) in(raw []byte, of *flight) []byte {
	o, err := readMessage(raw)
	if err != nil {
		return t.unfit(o, err)
	}
	o, raw = t.masked(o, raw)
	id, method := o.get("id"), o.text("method")
	switch {
	case o.has("method") && id != nil && string(id) != "null":
		return t.asked(o, string(id), method, of)
	case o.has("method"):
		return t.told(o, raw, method)
	case o.has("result") && o.has("error"):
		return t.unfit(o, errors.New("it is a result and an error at once"))
	case (o.has("result") || o.has("error")) && id != nil:
		return t.answered(o, raw, string(id))
	}
	t.drop("neither a question, an answer nor a notification")
	return nil
}

// unfit is a message that can't be taken. Where it answers a call, that call fails at once.
func (t *tap) unfit(o object, why error) []byte {
	id := string(o.get("id"))
	if !o.has("method") && id != "" {
		if p := t.take(id); p != nil {
			return p.refuse(id, "the server's answer can't be taken: "+why.Error())
		}
	}
	t.drop(why.Error())
	return nil
}

// take finds the question that an answer belongs to. A second answer belongs to none.
func (t *tap) take(id string) *outgoing {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pending[id]
	delete(t.pending, id)
	return p
}

// refuse ends a question with an error that stands for an answer that was not taken.
func (p *outgoing) refuse(id, why string) []byte {
	if p.flight != nil {
		p.flight.answer.CompareAndSwap(nil, &answer{refused: why})
	}
	return failed(id, why)
}

func failed(id, why string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, refusedCode, quoted(why))
}

// answered is an answer to a question.
func (t *tap) answered(o object, raw []byte, id string) []byte {
	p := t.take(id)
	if p == nil {
		t.drop("an answer to a question that nobody asked")
		return nil
	}
	result := o.get("result")
	switch {
	case p.flight != nil && o.has("error"):
		p.flight.answer.Store(readError(o.object("error")))
		return raw
	case p.flight != nil && len(result) > t.maxResult:
		return p.refuse(id, fmt.Sprintf("its result has %d bytes, and %d are allowed: ask for less at once, or raise max_result of the server", len(result), t.maxResult))
	case p.flight != nil:
		return t.finished(o, id, p, result)
	case p.method == "tools/list" && result != nil:
		t.relisted(result)
		if list, err := readObject(result); err == nil { // a list that may be kept would keep the next look at it from the server
			return o.with("result", list.without("ttlMs").bytes()).bytes()
		}
	}
	return raw
}

// finished is a call's result. The SDK needs to know of it only what makes it go on: that there is one, or what the server wants to know first.
func (t *tap) finished(o object, id string, p *outgoing, result json.RawMessage) []byte {
	r, err := readObject(result)
	if err != nil {
		return p.refuse(id, "the server's answer can't be taken: its result is no object")
	}
	if r.has("inputRequests") || r.text("resultType") == "input_required" {
		return o.with("result", t.markQuestions(r, p.flight).bytes()).bytes()
	}
	p.flight.answer.Store(&answer{result: result})
	short := object{{"content", json.RawMessage("[]")}}
	if kind := r.get("resultType"); kind != nil {
		short = append(short, member{"resultType", kind})
	}
	return o.with("result", short.bytes()).bytes()
}

// readError reads an error of the server.
func readError(o object) *answer {
	code, err := strconv.ParseInt(string(o.get("code")), 10, 64)
	if err != nil {
		code = refusedCode
	}
	return &answer{code: code, message: o.text("message"), data: o.get("data")}
}

// told is a notification.
func (t *tap) told(o object, raw []byte, method string) []byte {
	params := o.object("params")
	switch method {
	case "notifications/progress":
		t.progress(params)
		return nil
	case "notifications/message":
		t.log.Debug("an MCP server says something", "level", params.text("level"), "text", line(string(params.get("data"))))
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
	t.drop("a notification that means nothing here")
	return nil
}

// progress tells a run how far its server says it is.
func (t *tap) progress(params object) {
	t.mu.Lock()
	f := t.flights[params.text("progressToken")]
	t.mu.Unlock()
	if f == nil || f.progress == nil {
		t.drop("progress of a call that is not under way")
		return
	}
	f.progress(agent.Progress{Done: number(params.get("progress")), Total: number(params.get("total")), Text: line(params.text("message"))})
}

func number(raw json.RawMessage) float64 {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(n, 0) || n < 0 {
		return 0
	}
	return n
}

// asked is a question of the server.
func (t *tap) asked(o object, id, method string, of *flight) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.questions) >= maxQuestions {
		t.count("more questions at once than it may have open")
		return nil
	}
	q := &question{flight: of}
	t.questions[id] = q
	if method != "elicitation/create" {
		return o.bytes()
	}
	params := o.object("params")
	q.schema = params.get("requestedSchema")
	return o.with("params", marked(params, id).bytes()).bytes()
}

// markQuestions lets the questions within a result be known.
func (t *tap) markQuestions(r object, f *flight) object {
	requests := r.object("inputRequests")
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, m := range requests {
		ask, err := readObject(m.value)
		if err != nil || ask.text("method") != "elicitation/create" || i >= maxQuestions {
			continue
		}
		params, key := ask.object("params"), f.token+"/"+m.name
		t.questions[key] = &question{flight: f, schema: params.get("requestedSchema")}
		requests[i].value = ask.with("params", marked(params, key).bytes()).bytes()
	}
	return r.with("inputRequests", requests.bytes())
}

func marked(params object, key string) object {
	return params.with("_meta", params.object("_meta").with(questionKey, quoted(key)).bytes())
}

// whose finds the question behind its key, and the run that it belongs to: the one on whose stream it came, or the only one under way.
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

// asking forgets a question that came within a result.
func (t *tap) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.questions[key]; q != nil && q.flight != nil {
		delete(t.questions, key)
	}
}

// drop counts a message that is not taken. The first of each connection are in the log.
func (t *tap) drop(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(why)
}

func (t *tap) count(why string) {
	if t.dropped++; t.dropped <= 5 || t.dropped%10_000 == 0 {
		t.log.Warn("a message of an MCP server was not taken", "why", why, "so_far", t.dropped)
	}
}

// oneLine makes of a message with line breaks between its values one without. Within texts JSON has none.
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
